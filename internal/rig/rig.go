package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/host"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/lab"
	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/probe"
	"github.com/offlab/offlab/internal/runner"
	"github.com/offlab/offlab/internal/study"
)

// A Rig runs slots in a lab. It implements runner.Rig.
type Rig struct {
	lab     *lab.Lab
	factors map[string]knob.Factor
	now     string            // the arm that the device is in; empty: unknown
	path    string            // the path that both hosts are in
	found   map[string]int    // values of the card's settings, by factor, at the start
	state   map[string]string // features of each arm's check, by arm, to see a slot that differs
	idle    [2]float64        // CPUs busy while nothing ran: device, peer
}

// New claims the device and prepares both hosts.
func New(ctx context.Context, l *lab.Lab) (*Rig, []string, error) {
	r := &Rig{lab: l, path: string(study.PathBase), factors: map[string]knob.Factor{}, found: map[string]int{}, state: map[string]string{}}
	claimed, err := l.Device.Claim(ctx, l.Device.Dev)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", l.Device.Name, err)
	}
	for _, e := range r.ends() {
		if err := e.Watch(ctx, e.Dev); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return r, claimed.Notes, nil
}

// Adopt makes the study's factors known to the device's host and returns the
// value that each has now.
func (r *Rig) Adopt(ctx context.Context, fs []knob.Factor) ([]string, error) {
	values := make([]string, len(fs))
	var rest []knob.Factor
	var at []int
	for i, f := range fs {
		r.factors[f.Name] = f
		s, ok := r.nicKnob(f)
		if !ok {
			rest, at = append(rest, f), append(at, i)
			continue
		}
		v, err := r.adoptNIC(ctx, f, s)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	found, err := r.lab.Device.Adopt(ctx, rest)
	if err != nil {
		return nil, err
	}
	for k, v := range found {
		values[at[k]] = v
	}
	return values, nil
}

// Restore puts the device back.
func (r *Rig) Restore(ctx context.Context) error { return r.lab.Device.Restore(ctx) }

// settings turns those of a plan into those of knobs of the device's host.
func (r *Rig) settings(arm study.Arm) []knob.Setting {
	var out []knob.Setting
	for _, s := range arm.Settings {
		if _, ofCard := r.found[s.Knob]; ofCard {
			continue
		}
		out = append(out, knob.Setting{Factor: r.factors[s.Knob], Value: s.Value})
	}
	return out
}

// Check brings an arm about and reports what moved.
func (r *Rig) Check(ctx context.Context, arm study.Arm) (study.ArmCheck, error) {
	rep, err := r.lab.Device.Apply(ctx, r.settings(arm))
	if err != nil {
		r.now = ""
		return study.ArmCheck{}, gone(err)
	}
	card, err := r.checkNIC(ctx, arm)
	if err != nil {
		r.now = ""
		return study.ArmCheck{}, err
	}
	r.now = arm.Name
	c := study.ArmCheck{Arm: arm.Name, Knobs: append(rep.Settings, card...), Dragged: rep.Dragged}
	r.state[arm.Name] = fingerprint(c)
	return c, nil
}

// fingerprint is what an arm did, as one string to compare.
func fingerprint(c study.ArmCheck) string {
	var b strings.Builder
	for _, k := range c.Knobs {
		fmt.Fprintf(&b, "%s=%s;", k.Knob, k.Got)
	}
	for _, d := range c.Dragged {
		fmt.Fprintf(&b, "%s:%s;", d.Name, d.To)
	}
	return b.String()
}

// Run runs one slot.
func (r *Rig) Run(ctx context.Context, s runner.Spec) (study.Slot, error) {
	slot := study.Slot{SettleS: s.SettleS, Metrics: map[string]float64{}, Evidence: map[string]float64{}}
	if s.Arm.Name != r.now {
		want := r.state[s.Arm.Name]
		c, err := r.Check(ctx, s.Arm)
		if err != nil {
			return slot, err
		}
		if got := fingerprint(c); got != want {
			slot.Void = fmt.Sprintf("arm %s came out as %q, at first it was %q", s.Arm.Name, got, want)
			r.state[s.Arm.Name] = want
			r.now = ""
			return slot, nil
		}
	}
	run, cancel := context.WithTimeout(ctx, seconds(s.SettleS+s.MeasureS)+slotTimeout)
	defer cancel()
	err := r.setPath(run, s.Cell.Path)
	if err == nil {
		err = r.watched(run, s, &slot)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return slot, ctx.Err()
	case agent.KindOf(err) == agent.KindGone:
		return slot, gone(err)
	}
	slot.Void = err.Error()
	return slot, r.alive(ctx, err)
}

// ends returns the hosts of the lab.
func (r *Rig) ends() []*lab.End {
	if r.lab.Sink == nil {
		return []*lab.End{r.lab.Device, r.lab.Peer}
	}
	return []*lab.End{r.lab.Device, r.lab.Peer, r.lab.Sink}
}

// onDevice is what a path asks of the devices: the forwarded one is a way of the
// data, and nothing of theirs.
func onDevice(path string) string {
	if path == string(study.PathForwarded) {
		return string(study.PathBase)
	}
	return path
}

// setPath brings a path about at both ends.
func (r *Rig) setPath(ctx context.Context, path string) error {
	path = onDevice(path)
	if path == r.path {
		return nil
	}
	r.path = ""
	for _, e := range []*lab.End{r.lab.Device, r.lab.Peer} {
		if _, err := e.SetPath(ctx, host.PathSetup{Device: e.Dev, Path: path}); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	r.path = path
	return nil
}

// Paths brings every path about once, before anything is measured, and returns
// how each was.
func (r *Rig) Paths(ctx context.Context, paths []string) ([]string, error) {
	var notes []string
	for _, path := range paths {
		path = onDevice(path)
		for _, e := range []*lab.End{r.lab.Device, r.lab.Peer} {
			res, err := e.SetPath(ctx, host.PathSetup{Device: e.Dev, Path: path})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			if e == r.lab.Device && path != string(study.PathBase) {
				notes = append(notes, "path "+path+": "+res.By)
			}
		}
	}
	r.path = ""
	return notes, r.setPath(ctx, string(study.PathBase))
}

// slotTimeout bounds what a slot takes beside settling and measuring.
const slotTimeout = 20 * time.Second

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// gone marks errors after which no slot can run.
func gone(err error) error {
	if k := agent.KindOf(err); k == agent.KindGone || k == agent.KindBusy {
		return fmt.Errorf("%w: %w", runner.ErrGone, err)
	}
	return err
}

// alive asks both agents for a sign of life after a slot failed: a void slot is
// one thing, a lost host another.
func (r *Rig) alive(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()
	for _, e := range []*lab.End{r.lab.Device, r.lab.Peer} {
		if _, err := e.Client.Info(ctx); err != nil {
			return fmt.Errorf("%w: %s: %w (after: %w)", runner.ErrGone, e.Name, err, cause)
		}
	}
	return nil
}

// A pairing says which end of a slot sends.
type pairing struct{ sender, receiver *lab.End }

// pair returns the ends of a cell. On the forwarded path the data passes through
// the device's host: what the device receives goes on to the sink, what it sends
// comes from there.
func (r *Rig) pair(c study.Cell) pairing {
	near := r.lab.Device
	if c.Path == string(study.PathForwarded) {
		near = r.lab.Sink
	}
	if c.Direction == "rx" {
		return pairing{r.lab.Peer, near}
	}
	return pairing{near, r.lab.Peer}
}

// spec turns the plan's load into that of the load package.
func spec(s runner.Spec) load.Spec {
	family := 4
	if s.Cell.Family == "ipv6" {
		family = 6
	}
	return load.Spec{
		Load: s.Cell.Load, Family: family, Streams: s.Load.Streams, Verify: s.Load.Verify,
		MSS: s.Load.MSS, Congestion: s.Load.Congestion, Token: load.NewToken(),
	}
}

// measure starts the load, lets it settle, and reads both ends before and after
// the measured time.
func (r *Rig) measure(ctx context.Context, s runner.Spec, slot *study.Slot) error {
	p := r.pair(s.Cell)
	addr, err := p.receiver.Addr(s.Cell.Family)
	if err != nil {
		return err
	}
	ls := spec(s)
	if r.lab.NIC != nil {
		ls.SetupTimeout = setupTimeout(ls.Streams)
	}
	at, err := p.receiver.Listen(ctx, ls, addr)
	if err != nil {
		return fmt.Errorf("%s: %w", p.receiver.Name, err)
	}
	defer r.stop(p, slot)
	if err := p.sender.Dial(ctx, ls, at); err != nil {
		unconnected(slot, err)
		return fmt.Errorf("%s: %w", p.sender.Name, err)
	}
	if err := wait(ctx, s.SettleS); err != nil {
		return err
	}
	before, err := r.moments(ctx, p)
	if err != nil {
		return err
	}
	if err := wait(ctx, s.MeasureS); err != nil {
		return err
	}
	after, err := r.moments(ctx, p)
	if err != nil {
		return err
	}
	r.fill(slot, s, before, after)
	return nil
}

// wait lets the load run undisturbed.
func wait(ctx context.Context, s float64) error {
	t := time.NewTimer(seconds(s))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// A both is what sender and receiver counted at one moment.
type both struct {
	sender, receiver host.Moment
	device           probe.Snapshot // of the router, on the forwarded path
	nic              []map[string]uint64
}

// moments asks both ends at once.
func (r *Rig) moments(ctx context.Context, p pairing) (m both, err error) {
	done := make(chan error, 1)
	go func() {
		var err error
		m.receiver, err = p.receiver.Moment(ctx)
		done <- named(p.receiver, err)
	}()
	m.sender, err = p.sender.Moment(ctx)
	if err := errors.Join(named(p.sender, err), <-done); err != nil {
		return m, err
	}
	if m.nic, err = r.nicCounters(ctx); err != nil || p.sender == r.lab.Device || p.receiver == r.lab.Device {
		return m, err
	}
	m.device, err = r.lab.Device.Probe(ctx)
	return m, named(r.lab.Device, err)
}

func named(e *lab.End, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", e.Name, err)
}

// stop ends both ends of the load, the sender first, and takes the receiver's
// samples. It has a context of its own: a slot that ran out of time is stopped
// too.
func (r *Rig) stop(p pairing, slot *study.Slot) {
	ctx, cancel := context.WithTimeout(context.Background(), slotTimeout)
	defer cancel()
	_, err1 := p.sender.Stop(ctx)
	end, err2 := p.receiver.Stop(ctx)
	slot.Samples = rates(end.Samples)
	if err := errors.Join(err1, err2); err != nil && slot.Void == "" {
		slot.Warnings = append(slot.Warnings, "the load could not be stopped: "+err.Error())
	}
}

// rates turns samples, which count from the start, into rates of each 100 ms.
func rates(samples []load.Sample) []float64 {
	var out []float64
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		if dt := (b.Elapsed - a.Elapsed).Seconds(); dt > 0 {
			out = append(out, float64(b.Bytes-a.Bytes)*8/dt)
		}
	}
	return out
}

// Idle measures, for a moment in which nothing runs, how busy both hosts are.
func (r *Rig) Idle(ctx context.Context, s float64) (warnings []string, err error) {
	ends := []*lab.End{r.lab.Device, r.lab.Peer}
	var before, after [2]probe.Snapshot
	for i, e := range ends {
		if before[i], err = e.Probe(ctx); err != nil {
			return nil, gone(err)
		}
	}
	if err := wait(ctx, s); err != nil {
		return nil, err
	}
	for i, e := range ends {
		if after[i], err = e.Probe(ctx); err != nil {
			return nil, gone(err)
		}
		w := probe.Delta(before[i], after[i])
		r.idle[i] = w.CPU.Busy() / w.Elapsed.Seconds()
	}
	return r.busyHost(), nil
}

// maxIdle is the share of a host that may be busy while nothing runs. Beyond it
// the work is not a background to be taken off: it gives way to the load.
const maxIdle = 0.1

// busyHost says that a host does other work.
func (r *Rig) busyHost() []string {
	var out []string
	for i, e := range []*lab.End{r.lab.Device, r.lab.Peer} {
		if r.idle[i] > maxIdle*float64(e.Info.CPUs) {
			out = append(out, fmt.Sprintf("%s was busy with other work, %.1f of its %d CPUs, before the load began: CPU figures hold some of it", e.Name, r.idle[i], e.Info.CPUs))
			if r.lab.Shared {
				break // it is one machine
			}
		}
	}
	return out
}

// Environment describes what the figures depend on.
func (r *Rig) Environment(ctx context.Context) (study.Environment, error) {
	l := r.lab
	env := study.Environment{
		Kernel: l.Device.Info.Kernel, CPUs: l.Device.Info.CPUs, Governor: l.Device.Info.Governor,
		Shared: l.Shared, Notes: slices.Clone(l.Notes),
	}
	for i, e := range []*lab.End{l.Device, l.Peer} {
		d, err := e.Client.Device(ctx, e.Dev)
		if err != nil {
			return env, fmt.Errorf("%s: %w", e.Name, gone(err))
		}
		h := study.Host{
			Name: e.Name, Role: [...]string{"device", "peer"}[i], Hostname: e.Info.Hostname,
			Kernel: e.Info.Kernel, CPUs: e.Info.CPUs, CPUModel: e.Info.Model,
			Device: d.Name, Driver: d.Driver, Firmware: d.Firmware, MTU: d.MTU,
			SpeedBPS: float64(d.SpeedMbit) * 1e6, Features: d.Features, Pinned: maps.Clone(e.Pinned),
			Idle: r.idle[i],
		}
		for _, a := range d.Addresses {
			h.Address = append(h.Address, a.String())
		}
		env.Hosts = append(env.Hosts, h)
	}
	return env, nil
}
