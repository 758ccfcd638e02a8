package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/agent/transport"
	"github.com/offlab/offlab/internal/app"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/report"
	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/internal/softnic/model"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/sys/netns"
	"github.com/offlab/offlab/internal/unit"
)

const runLong = `Runs a study and gives a verdict for each factor.

A factor is a knob to be turned: a feature by its short name (tso, gro, lro,
sg, tx, rx, ...) or by the kernel's name; sg+tso turns two together; tso,gro
are two factors; name=a,b,c compares values (rx-usecs=0,50, mtu=1500,9000,
net.ipv4.tcp_congestion_control=cubic,reno); cmd:NAME='on','off' runs commands.
'offlab list knobs' prints them all. Without a factor: tso and gro.

Without --dev the study runs on the built-in lab: network namespaces joined by a
card in user space (--lab softnic), which --nic and --fault choose, or by a veth
pair (--lab veth). It needs root, or unprivileged user namespaces.`

const runExample = `  offlab run                                            # built-in lab, tso and gro
  offlab run tso --budget 40s -o s.json                 # keep the study
  offlab run sg+tso gro -6 --streams 4                  # IPv6, four streams
  offlab run tso --dev eth0 --peer ssh://root@b         # your own card
  offlab run rx-usecs=0,50 --dev eth0 --peer exec:'ip netns exec b offlab agent'
  offlab run gro --side peer --dev eth0 --peer ssh://root@b --push`

// runFlags are the flags of run, before they make sense together.
type runFlags struct {
	q           app.Request
	four, six   bool
	verify      string
	paths       string
	rate        unit.Rate
	delay       time.Duration
	budget      string
	settle      string
	measure     string
	outputs     []string
	format      string
	json, quiet bool
	seed        int64
}

func (c *console) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:     "run [FACTOR...]",
		Short:   "Run a study: does the knob act, is it right, is it worth it",
		Long:    runLong,
		Example: runExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), f, args) },
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return knobNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.q.Lab, "lab", "", "built-in lab: softnic (default without --dev) or veth")
	fl.StringVar(&f.q.NIC.Model, "nic", "", "model of the soft NIC (default generic; offlab list models)")
	fl.StringArrayVar(&f.q.NIC.Faults, "fault", nil, "break the soft NIC; repeatable (offlab list faults)")
	fl.Var(&f.rate, "wire-rate", "rate of the soft NIC's wire, such as 1G (default: no limit)")
	fl.DurationVar(&f.delay, "wire-delay", 0, "delay of the soft NIC's wire, one way")
	fl.Float64Var(&f.q.NIC.Loss, "wire-loss", 0, "share of frames that the wire loses, 0 to 1")
	fl.Float64Var(&f.q.NIC.Corrupt, "wire-corrupt", 0, "share of frames in which the wire changes a bit, 0 to 1")
	fl.StringVar(&f.q.Device, "dev", "", "device of this machine to test, with --peer")
	fl.StringVar(&f.q.Peer, "peer", "", "far end: ssh://[user@]host or exec:'COMMAND'")
	fl.StringVar(&f.q.PeerDev, "peer-dev", "", "device of the peer (default: by its route)")
	fl.StringVar(&f.q.PeerAddr, "peer-addr", "", "address of the peer (default: by its route)")
	fl.BoolVar(&f.q.Push, "push", false, "copy this offlab to the peer of ssh:// for the run")
	fl.StringVar(&f.q.Side, "side", "device", "whose knobs are turned: device or peer")
	fl.BoolVar(&f.q.Raw, "raw", false, "leave the sender of the veth lab as it is: no stand-in for a wire")
	fl.BoolVar(&f.q.Cross, "factorial", false, "cross the factors and report their interactions")
	fl.StringVar(&f.paths, "path", "base", "ways to test, joined by commas: base, vlan:ID, qinq:OUTER,INNER, forwarded")
	fl.BoolVarP(&f.four, "ipv4", "4", false, "IPv4 (default)")
	fl.BoolVarP(&f.six, "ipv6", "6", false, "IPv6; with -4 both")
	fl.StringVar(&f.q.Direction, "direction", "", "data as the device sees it: tx, rx or both (default: what each knob is about, else tx)")
	fl.IntVar(&f.q.Streams, "streams", 1, "TCP connections, 1 to 1000")
	fl.StringVar(&f.verify, "verify", "on", "the receiver checks every byte: on or off")
	fl.IntVar(&f.q.MSS, "mss", 0, "largest TCP segment in bytes (default: the path's)")
	fl.StringVar(&f.q.CC, "cc", "", "TCP congestion control (default: the system's)")
	fl.StringVar(&f.budget, "budget", "60s", "time for the whole study")
	fl.StringVar(&f.settle, "settle", "200ms", "time before each measurement, for the load to reach its pace")
	fl.StringVar(&f.measure, "measure", "", "time measured in each slot (default: from the budget, 0.5 s to 5 s)")
	fl.Float64Var(&f.q.Alpha, "alpha", 0.05, "probability of a wrong verdict, for the whole study")
	fl.Int64Var(&f.seed, "seed", -1, "seed of the random order (default: random, and printed)")
	fl.StringArrayVarP(&f.outputs, "output", "o", nil, "write the study (.json) or a report (.txt, .md, .mail); repeatable")
	fl.StringVar(&f.q.Resume, "resume", "", "go on with the study in this file; its plan is used")
	fl.StringVar(&f.format, "format", "text", "what to print: "+strings.Join(formatNames(), ", "))
	fl.BoolVar(&f.json, "json", false, "the same as --format json")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	for name, values := range map[string][]string{
		"lab": {"softnic", "veth"}, "side": {"device", "peer"}, "direction": {"tx", "rx", "both"}, "verify": {"on", "off"}, "format": formatNames(),
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// run makes sense of the flags, runs the study and prints the report.
func (c *console) run(ctx context.Context, f *runFlags, args []string) error {
	reports, err := f.resolve(c.args, args)
	if err != nil {
		return err
	}
	format, err := report.Find(f.format)
	if err != nil {
		return usagef("%v", err)
	}
	if (f.q.Lab == "veth" || f.q.Lab == "softnic") && !netns.IsRoot() {
		return c.asRootOfOwn(ctx)
	}
	p, err := c.program()
	if err != nil {
		return err
	}
	for _, path := range reports {
		if err := app.CanWrite(path); err != nil {
			return usagef("cannot write %s: %v", path, err)
		}
	}
	bar := newProgress(c, f.quiet)
	res, runErr := app.Run(ctx, p, f.q, bar.observer())
	bar.done()
	if res == nil {
		return runErr
	}
	return c.finish(ctx, res, runErr, format, reports)
}

// finish writes what was learnt, whatever the end.
func (c *console) finish(ctx context.Context, res *app.Result, runErr error, format report.Format, reports []string) error {
	s := res.Study
	if len(s.Verdicts) == 0 && runErr != nil {
		return runErr
	}
	ended := s.Ended.Why == study.EndDecided || s.Ended.Why == study.EndBudget || s.Ended.Why == study.EndSettled
	kept := res.Output.Journal()
	if ended {
		path, err := res.Output.Finish(func(w io.Writer) error { return study.Encode(w, s) })
		if err != nil {
			return err
		}
		kept = path
	}
	if err := format.Render(c.out, s, c.look()); err != nil {
		return err
	}
	for _, path := range reports {
		f, _ := report.FindByPath(path)
		if err := app.WriteFile(path, func(w io.Writer) error { return f.Render(w, s, report.Options{}) }); err != nil {
			return err
		}
	}
	if ended {
		fmt.Fprintf(c.err, "study: %s\n", kept)
	} else {
		fmt.Fprintf(c.err, "the study did not end; go on with: offlab run --resume %s\n", kept)
	}
	switch {
	case ctx.Err() != nil:
		return errors.Join(status(ExitInterrupt), runErr)
	case runErr != nil:
		return runErr
	}
	return verdictStatus(s)
}

// verdictStatus is the exit status that the verdicts ask for.
func verdictStatus(s *study.Study) error {
	for _, v := range s.Verdicts {
		if v.Right.Answer == study.Wrong || v.Worth.Answer == study.Worse {
			return status(ExitVerdict)
		}
	}
	return nil
}

// resolve checks the flags and completes the request. It returns the reports to
// be written beside the study.
func (f *runFlags) resolve(line, args []string) (reports []string, err error) {
	q := &f.q
	q.Command = "offlab " + quote(line)
	if f.json {
		f.format = "json"
	}
	if err := f.durations(); err != nil {
		return nil, err
	}
	if f.seed < 0 {
		f.seed = int64(rand.Uint32())
	}
	if f.seed > 1<<32-1 {
		return nil, usagef("--seed %d: want 0 to 4294967295", f.seed)
	}
	q.Seed = uint32(f.seed)
	if q.Resume != "" {
		if len(args) > 0 {
			return nil, usagef("--resume goes on with the plan in the file: give no factors")
		}
		q.Lab = "" // the plan's
		return f.split()
	}
	if q.Factors = args; len(args) == 0 {
		q.Factors = []string{"tso", "gro"}
	}
	if _, err := knob.Parse(q.Factors); err != nil {
		return nil, usagef("%v", err)
	}
	if err := f.ends(); err != nil {
		return nil, err
	}
	if err := f.traffic(); err != nil {
		return nil, err
	}
	return f.split()
}

func (f *runFlags) durations() error {
	for _, d := range []struct {
		flag, value string
		to          *time.Duration
		least       time.Duration
	}{
		{"budget", f.budget, &f.q.Budget, time.Second},
		{"settle", f.settle, &f.q.Settle, 0},
		{"measure", f.measure, &f.q.Measure, 50 * time.Millisecond},
	} {
		if d.value == "" {
			continue
		}
		v, err := unit.ParseDuration(d.value)
		if err != nil {
			return usagef("--%s: %v", d.flag, err)
		}
		if v < d.least {
			return usagef("--%s %s: want at least %v", d.flag, d.value, d.least)
		}
		*d.to = v
	}
	return nil
}

// ends checks the flags that say between whom the study is.
func (f *runFlags) ends() error {
	q := &f.q
	switch {
	case q.Device != "" && q.Lab != "":
		return usagef("--dev %s is a device of this machine, --lab %s is a lab of its own: give one", q.Device, q.Lab)
	case q.Device != "" && q.Peer == "":
		return usagef("--dev %s needs a far end: --peer ssh://host, or --peer exec:'ip netns exec x offlab agent'", q.Device)
	case q.Device == "" && (q.Peer != "" || q.PeerDev != "" || q.PeerAddr != "" || q.Push):
		return usagef("a peer needs a device here: --dev DEV")
	case q.Device != "":
		q.Lab = "hosts"
	case q.Lab == "":
		q.Lab = "softnic"
	case q.Lab != "veth" && q.Lab != "softnic":
		return usagef("unknown lab %q (have softnic, veth)", q.Lab)
	}
	if err := f.card(); err != nil {
		return err
	}
	if q.Side != "device" && q.Side != "peer" {
		return usagef("--side %s: want device or peer", q.Side)
	}
	if q.Peer != "" {
		if _, err := transport.Parse(q.Peer); err != nil {
			return err
		}
	}
	return nil
}

// card checks the flags of the soft NIC.
func (f *runFlags) card() error {
	n := &f.q.NIC
	if f.q.Lab != "softnic" {
		if n.Model != "" || len(n.Faults) > 0 || f.rate > 0 || f.delay > 0 || n.Loss > 0 || n.Corrupt > 0 {
			return usagef("--nic, --fault and --wire-... are about the soft NIC, the study is not on it")
		}
		return nil
	}
	if n.Model == "" {
		n.Model = "generic"
	}
	if _, err := model.Find(n.Model); err != nil {
		return usagef("--nic: %v", err)
	}
	for _, name := range n.Faults {
		if _, err := fault.Find(name); err != nil {
			return usagef("--fault: %v", err)
		}
	}
	if n.Loss < 0 || n.Loss > 1 || n.Corrupt < 0 || n.Corrupt > 1 || f.delay < 0 {
		return usagef("--wire-loss and --wire-corrupt are shares from 0 to 1, --wire-delay not negative")
	}
	n.RateBPS, n.DelayS = float64(f.rate), f.delay.Seconds()
	return nil
}

// traffic checks the flags that say what travels.
func (f *runFlags) traffic() error {
	q := &f.q
	q.Families = []string{"ipv4"}
	switch {
	case f.four && f.six:
		q.Families = []string{"ipv4", "ipv6"}
	case f.six:
		q.Families = []string{"ipv6"}
	}
	q.Paths = study.SplitPaths(f.paths)
	for _, p := range q.Paths {
		parsed, err := study.ParsePath(p)
		if err != nil {
			return usagef("--path: %v", err)
		}
		if parsed.Kind == study.PathForwarded && q.Lab != "softnic" {
			return usagef("--path forwarded needs a router and a host behind it: --lab softnic has them")
		}
		if parsed.Kind != study.PathBase && q.Lab == "hosts" {
			return usagef("--path %s needs a built-in lab: on real hosts make the device yourself and give it to --dev", p)
		}
	}
	switch f.verify {
	case "on", "off":
		q.Verify = f.verify == "on"
	default:
		return usagef("--verify %s: want on or off", f.verify)
	}
	switch {
	case q.Streams < 1 || q.Streams > 1000:
		return usagef("--streams %d: want 1 to 1000", q.Streams)
	case !slices.Contains([]string{"", "tx", "rx", "both"}, q.Direction):
		return usagef("--direction %s: want tx, rx or both", q.Direction)
	case q.MSS != 0 && (q.MSS < 48 || q.MSS > 65495):
		return usagef("--mss %d: want 48 to 65495 bytes", q.MSS)
	case q.Alpha <= 0 || q.Alpha >= 0.5:
		return usagef("--alpha %v: want more than 0 and less than 0.5", q.Alpha)
	}
	return nil
}

// split tells the study file from reports by their names.
func (f *runFlags) split() (reports []string, err error) {
	for _, path := range f.outputs {
		format, ok := report.FindByPath(path)
		switch {
		case !ok:
			return nil, usagef("-o %s: the name must end in one of %s", path, strings.Join(suffixes(), ", "))
		case format.Name() == "json" && f.q.Output == "":
			f.q.Output = path
		default:
			reports = append(reports, path)
		}
	}
	return reports, nil
}

// quote writes arguments as a shell would take them.
func quote(args []string) string {
	var out []string
	for _, a := range args {
		if a == "" || strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%", r)
		}) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// look is how reports look on this console.
func (c *console) look() report.Options {
	return report.Options{Width: min(terminalWidth(c.out, 80), 100), Color: isTerminal(c.out) && c.getenv("NO_COLOR") == ""}
}

// asRootOfOwn runs the same command as root of a user namespace of its own, in
// which the lab can make its network namespaces.
func (c *console) asRootOfOwn(ctx context.Context) error {
	code, err := netns.Reexec(ctx, c.args, c.in, c.out, c.err)
	if err != nil {
		return &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf(
			"the built-in lab needs root, or a user namespace, which this system refuses (%v).\n"+
				"Run it as root, or allow user namespaces: sysctl -w user.max_user_namespaces=10000, and on Debian\n"+
				"kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0", err)}
	}
	if code != 0 {
		return status(code)
	}
	return nil
}

func formatNames() []string {
	var names []string
	for _, f := range report.Formats.All() {
		names = append(names, f.Name())
	}
	return names
}

func suffixes() []string {
	var out []string
	for _, f := range report.Formats.All() {
		out = append(out, f.Extension())
	}
	return out
}

func knobNames() []string {
	var names []string
	for _, t := range knob.Toggles().All() {
		names = append(names, t.Name()+"\t"+t.About())
	}
	return append(names, knob.ValueNames()...)
}
