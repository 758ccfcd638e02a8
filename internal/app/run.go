package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/agent/transport"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/lab"
	"github.com/offlab/offlab/internal/rig"
	"github.com/offlab/offlab/internal/runner"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// Program is what the parts need to know of the running program.
type Program struct {
	Version string
	Exe     string // its own path
	State   string // directory of state files and studies
	Now     func() time.Time
}

// Request is a study as the command line asks for it.
type Request struct {
	Command   string // the command line itself
	Factors   []string
	Lab       string // softnic, veth or hosts
	NIC       study.NICPlan
	Device    string
	Peer      string
	PeerDev   string
	PeerAddr  string
	Push      bool
	Side      string // device or peer
	Raw       bool
	Cross     bool
	Paths     []string
	Families  []string
	Direction string // tx, rx or both; empty: what each knob is about
	Streams   int
	Verify    bool
	MSS       int
	CC        string
	Budget    time.Duration
	Settle    time.Duration
	Measure   time.Duration // 0: from the budget
	Alpha     float64
	Seed      uint32
	Output    string
	Resume    string
}

// Labs lists the labs there are.
var Labs = []string{"softnic", "veth", "hosts"}

// Observer sees a study as it runs.
type Observer struct {
	Stage    func(string)          // what is being done before the first slot
	Progress func(runner.Progress) // slot by slot
	Warn     func(string)
}

// A Result is a study and where it is kept.
type Result struct {
	Study  *study.Study
	Output *Output
}

// slotOverhead is the first guess of what a slot takes beside settling and
// measuring, in seconds; it is learnt from the slots. Features of a virtual
// device change in a millisecond, those of a card may take its link down.
const slotOverhead = 0.05

// idleTime is how long both hosts are watched while nothing runs, in seconds.
const idleTime = 0.5

// Run runs a study. The result holds what was learnt also when the error is not
// nil; it is nil when nothing was.
func Run(ctx context.Context, p Program, q Request, o Observer) (*Result, error) {
	res, err := open(p, q)
	if err != nil {
		return nil, err
	}
	err = execute(ctx, p, fromPlan(q, res.Study), o, res)
	if err != nil && len(res.Study.Slots) == 0 {
		return nil, errors.Join(err, res.Output.Drop())
	}
	return res, err
}

// execute builds the lab, runs the study in it and takes it down again.
func execute(ctx context.Context, p Program, q Request, o Observer, res *Result) (err error) {
	factors, err := knob.Parse(q.Factors)
	if err != nil {
		return usage(err)
	}
	o.Stage("starting the hosts")
	l, err := openLab(ctx, p, q, factors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	o.Stage("reading the device")
	r, notes, err := rig.New(ctx, l)
	if err != nil {
		return err
	}
	// The context may be over by the time things are put back.
	defer func() {
		back, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Restore(back))
	}()
	l.Notes = append(l.Notes, notes...)
	s := res.Study
	o.Stage("bringing the paths about")
	notes, err = r.Paths(ctx, q.Paths)
	if err != nil {
		return err
	}
	l.Notes = append(l.Notes, notes...)
	if err := arrange(ctx, r, s, q, factors); err != nil {
		return err
	}
	if err := describe(ctx, r, s, len(s.Slots) > 0); err != nil {
		return err
	}
	return runner.Run(ctx, s, r, runner.Options{
		Now: p.Now, Observe: o.Progress, Warn: o.Warn, Journal: res.Output, Overhead: slotOverhead,
	})
}

// open starts a new study, or takes up one that did not end.
func open(p Program, q Request) (*Result, error) {
	if q.Resume != "" {
		out, s, err := Reopen(q.Resume, p.State)
		if err != nil {
			return nil, err
		}
		return &Result{s, out}, nil
	}
	s := &study.Study{
		Schema: study.Schema, Version: p.Version, Created: p.Now().UTC().Truncate(time.Second), Seed: q.Seed,
		Plan: study.Plan{
			Command: q.Command, Lab: q.Lab, NIC: q.NIC, Device: q.Device, Peer: q.Peer, PeerDev: q.PeerDev, PeerAddr: q.PeerAddr,
			Side: q.Side, Raw: q.Raw, Factors: q.Factors, Cross: q.Cross, Paths: q.Paths, Families: q.Families, Toward: q.Direction, Alpha: q.Alpha,
			BudgetS: q.Budget.Seconds(), SettleS: q.Settle.Seconds(), MeasureS: q.Measure.Seconds(),
			Load: study.Load{Streams: q.Streams, Verify: q.Verify, MSS: q.MSS, Congestion: q.CC},
		},
	}
	out, err := Create(q.Output, p.State, p.Now(), q.Factors[0])
	if err != nil {
		return nil, err
	}
	return &Result{s, out}, nil
}

// fromPlan makes the request of a resumed study that of its plan. A new budget
// counts from now.
func fromPlan(q Request, s *study.Study) Request {
	if q.Resume == "" {
		return q
	}
	p := s.Plan
	q.Factors, q.Lab, q.Device, q.Peer, q.PeerDev, q.PeerAddr = p.Factors, p.Lab, p.Device, p.Peer, p.PeerDev, p.PeerAddr
	q.Side, q.Raw, q.Cross, q.Families, q.Direction = p.Side, p.Raw, p.Cross, p.Families, p.Toward
	q.Paths, q.NIC = p.Paths, p.NIC
	if q.Budget > 0 {
		s.Plan.BudgetS = s.Ended.Elapsed + q.Budget.Seconds()
	}
	return q
}

// wantsWire reports whether the veth lab must stand in for a wire: the device
// under test receives in some cell.
func wantsWire(q Request, factors []knob.Factor) bool {
	return !q.Raw && slices.ContainsFunc(factors, func(f knob.Factor) bool {
		return slices.Contains(directions(q, f), "rx")
	})
}

// directions returns the directions in which a factor is studied. A knob that is
// not about one of them is studied sending, unless asked for: two directions
// take twice the time.
func directions(q Request, f knob.Factor) []string {
	tx, rx := string(knob.TX), string(knob.RX)
	switch {
	case q.Direction == string(knob.Both):
		return []string{tx, rx}
	case q.Direction != "":
		return []string{q.Direction}
	case f.Direction == knob.RX:
		return []string{rx}
	default:
		return []string{tx}
	}
}

func openLab(ctx context.Context, p Program, q Request, factors []knob.Factor) (*lab.Lab, error) {
	wire := wantsWire(q, factors)
	firmware := slices.ContainsFunc(factors, func(f knob.Factor) bool { return f.Name == "lro" || f.Name == "gro-hw" })
	o := lab.Options{Exe: p.Exe, Version: p.Version, State: p.State}
	var l *lab.Lab
	var err error
	switch q.Lab {
	case "veth":
		l, err = lab.Veth(ctx, o, wire)
	case "softnic":
		l, err = lab.Softnic(ctx, o, lab.Card{
			Model: q.NIC.Model, Faults: q.NIC.Faults, Seed: uint64(q.Seed), Firmware: firmware,
			Forward: slices.Contains(q.Paths, string(study.PathForwarded)),
			Wire:    softnic.Wire{Rate: unit.Rate(q.NIC.RateBPS), Delay: time.Duration(q.NIC.DelayS * float64(time.Second)), Loss: q.NIC.Loss, Corrupt: q.NIC.Corrupt},
		})
	case "hosts":
		l, err = openHosts(ctx, o, q)
	default:
		return nil, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("unknown lab %q (have %v)", q.Lab, Labs)}
	}
	return l, err
}

func openHosts(ctx context.Context, o lab.Options, q Request) (*lab.Lab, error) {
	t, err := transport.Parse(q.Peer)
	if err != nil {
		return nil, err
	}
	t.Push = q.Push
	r := lab.Real{Dev: q.Device, Peer: t, PeerDev: q.PeerDev}
	if q.PeerAddr != "" {
		if r.PeerAddr, err = netip.ParseAddr(q.PeerAddr); err != nil {
			return nil, usage(fmt.Errorf("--peer-addr: %w", err))
		}
	}
	l, err := lab.Hosts(ctx, o, r)
	if err == nil && q.Side == "peer" {
		l.Swap()
	}
	return l, err
}

// arrange makes the plan's arms and contrasts from the values that the device
// has.
func arrange(ctx context.Context, r *rig.Rig, s *study.Study, q Request, factors []knob.Factor) error {
	current, err := r.Adopt(ctx, factors)
	if err != nil {
		return err
	}
	var fs []runner.Factor
	for i, f := range factors {
		fs = append(fs, runner.Factor{Name: f.Name, Values: f.Values, Current: current[i], Directions: directions(q, f)})
	}
	plan := s.Plan
	err = runner.Arrange(&plan, fs, runner.Shape{
		Cross: q.Cross, Paths: q.Paths, Families: q.Families, Loads: []string{"bulk"},
	})
	if err != nil {
		return usage(err)
	}
	if len(s.Slots) == 0 {
		s.Plan = plan
		return nil
	}
	return sameArms(s.Plan, plan)
}

// sameArms refuses to go on with a study on a device that has changed since.
func sameArms(old, now study.Plan) error {
	same := slices.EqualFunc(old.Arms, now.Arms, func(a, b study.Arm) bool {
		return a.Name == b.Name && slices.Equal(a.Settings, b.Settings)
	})
	if !same {
		return &agent.Error{Kind: agent.KindEnv, Text: "the device is not in the state in which the study began: the arms would differ"}
	}
	return nil
}

// describe fills in the environment. A resumed study must find the one it had.
func describe(ctx context.Context, r *rig.Rig, s *study.Study, resumed bool) error {
	busy, err := r.Idle(ctx, idleTime)
	if err != nil {
		return err
	}
	s.Warnings = append(s.Warnings, busy...)
	env, err := r.Environment(ctx)
	if err != nil {
		return err
	}
	if resumed && (env.Kernel != s.Environment.Kernel || env.CPUs != s.Environment.CPUs) {
		return &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf(
			"the study began on %s with %d CPUs, this is %s with %d", s.Environment.Kernel, s.Environment.CPUs, env.Kernel, env.CPUs)}
	}
	if !resumed {
		s.Environment = env
	}
	return nil
}

func usage(err error) error { return &agent.Error{Kind: agent.KindUsage, Text: err.Error()} }
