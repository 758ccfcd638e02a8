package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/offlab/offlab/internal/catalog"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/internal/softnic/model"
	"github.com/offlab/offlab/internal/sys/netns"
	"github.com/offlab/offlab/internal/unit"
)

const nicLong = `Is a network card in user space, until Ctrl-C: ports that are TAP devices, joined
in pairs by a wire. What the host of one port sends reaches the host of the
other as the card, its driver and the wire would deliver it. It makes the
devices; addresses, and setting them up, are the hosts'.

With --netns-pid each device goes to the network namespace of a process, such as
the shell of a namespace; without, both stay in this one.

On exit it prints what was counted at each station. It needs root, or a user
namespace.`

const nicExample = `  offlab nic --model generic --netns-pid $A,$B           # a cable between two namespaces
  offlab nic --model generic --rate 1G --delay 5ms --loss 0.001
  offlab nic --model generic --fault segment-order@p0    # broken at one port
  offlab nic --model generic --tap wire.pcapng           # and every frame in a file`

// nicFlags are the flags of nic, before they make sense together.
type nicFlags struct {
	models, faults []string
	ports          []string
	pids           []int
	sets           []string
	wire           softnic.Wire
	rate           unit.Rate
	seed           uint64
	queues, mtu    int
	napi           string
	tap            string
	json           bool
	own            bool
}

func (c *console) nicCommand() *cobra.Command {
	f := &nicFlags{}
	cmd := &cobra.Command{
		Use:     "nic",
		Short:   "Be a network card in user space",
		Long:    nicLong,
		Example: nicExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.nic(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.models, "model", []string{"generic"}, "card of each port; the last stands for all further ports")
	fl.StringArrayVar(&f.faults, "fault", nil, "break the card, at each port or at one: `NAME[@PORT]` (repeatable)")
	fl.StringSliceVar(&f.ports, "ports", []string{"p0", "p1"}, "names of the devices, in pairs")
	fl.IntSliceVar(&f.pids, "netns-pid", nil, "processes in whose network namespaces the devices go, in the order of the ports")
	fl.StringArrayVar(&f.sets, "set", nil, "change a setting: `[PORT.]NAME=VALUE`, one of "+settingNames()+" (repeatable)")
	fl.Var(&f.rate, "rate", "rate of the wire, such as 1G (default: no limit)")
	fl.DurationVar(&f.wire.Delay, "delay", 0, "delay of the wire, one way")
	fl.Float64Var(&f.wire.Loss, "loss", 0, "share of frames that the wire loses, 0 to 1")
	fl.Float64Var(&f.wire.Dup, "dup", 0, "share that arrives twice")
	fl.Float64Var(&f.wire.Reorder, "reorder", 0, "share that the next frame overtakes")
	fl.Float64Var(&f.wire.Corrupt, "corrupt", 0, "share with one bit changed")
	fl.IntVar(&f.wire.MTU, "wire-mtu", 0, "longest packet that the wire passes, in bytes (default: no limit)")
	fl.BoolVar(&f.wire.PassThrough, "pass-through", false, "hand super-packets on uncut where nobody can tell")
	fl.Uint64Var(&f.seed, "seed", 1, "what loss and the like are drawn from")
	fl.IntVar(&f.queues, "queues", 1, "queues of each device")
	fl.IntVar(&f.mtu, "mtu", 1500, "MTU of the devices")
	fl.StringVar(&f.napi, "napi", "auto", "how the hosts' kernels receive: "+strings.Join(napiNames, ", ")+
		"; threaded lets their GRO see several packets at a time")
	fl.StringVar(&f.tap, "tap", "", "write every frame on the wire to this pcapng `FILE`")
	fl.BoolVar(&f.json, "json", false, "print the counters as JSON")
	fl.BoolVar(&f.own, "own-namespace", false, "the process was born in a namespace of its own: mount its /sys")
	_ = fl.MarkHidden("own-namespace")
	for name, values := range map[string][]string{"model": entryNames(model.Models), "fault": entryNames(fault.Faults), "napi": napiNames} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// entryNames returns the names of a catalog.
func entryNames[E catalog.Entry](c catalog.Catalog[E]) (names []string) {
	for _, e := range c.All() {
		names = append(names, e.Name())
	}
	return names
}

// napiNames are the values of --napi, by softnic.NAPI.
var napiNames = []string{
	softnic.NAPIAuto: "auto", softnic.NAPIThreaded: "threaded", softnic.NAPIInline: "inline", softnic.NAPIOff: "off",
}

func settingNames() string {
	var names []string
	for _, s := range softnic.Settings() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (c *console) nic(ctx context.Context, f *nicFlags) error {
	cfg, hosts, err := f.config()
	if err != nil {
		return err
	}
	napi := slices.Index(napiNames, f.napi)
	if napi < 0 {
		return usagef("--napi %q: want one of %s", f.napi, strings.Join(napiNames, ", "))
	}
	if f.pids != nil && !f.own {
		return c.bornInNamespace(ctx)
	}
	if f.own {
		if err := netns.MountSys(); err != nil {
			return environment(err)
		}
	}
	// The ports' hosts could do nothing with a half-made card, so a file that
	// cannot be written is found out first.
	base := time.Now()
	cfg.Now = func() time.Duration { return time.Since(base) }
	file, capture, err := f.capture(&cfg)
	if err != nil {
		return err
	}
	taps, err := softnic.OpenTaps(cfg, hosts, softnic.TapOptions{Queues: f.queues, NAPI: softnic.NAPI(napi)})
	if err != nil {
		return environment(err)
	}
	err = c.serveNIC(ctx, f, cfg, taps)
	err = errors.Join(err, taps.Close())
	if capture != nil {
		frames, e := capture.Close()
		err = errors.Join(err, e, file.Close())
		fmt.Fprintf(c.err, "offlab nic: %d frames in %s\n", frames, f.tap)
	}
	return err
}

// bornInNamespace runs this program again, in a network namespace of its own:
// the devices are made there, whatever names are taken here.
func (c *console) bornInNamespace(ctx context.Context) error {
	code, err := netns.Options{Net: true}.Run(ctx, append(slices.Clone(c.args), "--own-namespace"), c.in, c.out, c.err)
	if err != nil {
		return environment(fmt.Errorf("no network namespace of its own: %w\nRun it as root, or in a user namespace with 'unshare -rn'", err))
	}
	if code != ExitOK {
		return status(code)
	}
	return nil
}

func (f *nicFlags) capture(cfg *softnic.Config) (*os.File, *softnic.Capture, error) {
	if f.tap == "" {
		return nil, nil, nil
	}
	file, err := os.Create(f.tap)
	if err != nil {
		return nil, nil, usagef("--tap: %v", err)
	}
	capture, err := softnic.NewCapture(file, f.ports, cfg.Now)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	cfg.Tap = capture.Tap
	return file, capture, nil
}

// serveNIC is the card, until the context ends.
func (c *console) serveNIC(ctx context.Context, f *nicFlags, cfg softnic.Config, taps *softnic.Taps) error {
	n, err := softnic.New(cfg, taps.Ports)
	if err != nil {
		return usage(err)
	}
	if err := f.apply(n); err != nil {
		return err
	}
	fmt.Fprintf(c.err, "offlab nic: %s; Ctrl-C ends it\n", f.describe(cfg))
	err = errors.Join(n.Run(ctx), n.Balance())
	if gone, ok := errors.AsType[*softnic.PortError](err); ok && errors.Is(err, softnic.ErrGone) {
		err = environment(fmt.Errorf("the device %s was removed, or its host has ended", gone.Port))
	}
	return errors.Join(c.printNIC(f, cfg, n), err, n.Close())
}

// describe says what is joined by what.
func (f *nicFlags) describe(cfg softnic.Config) string {
	var pairs []string
	for i := 0; i+1 < len(f.ports); i += 2 {
		pairs = append(pairs, fmt.Sprintf("%s (%s) - %s (%s)",
			f.ports[i], cardOf(cfg, i).Model.Name, f.ports[i+1], cardOf(cfg, i+1).Model.Name))
	}
	return strings.Join(pairs, ", ")
}

func cardOf(cfg softnic.Config, i int) softnic.Card { return cfg.Cards[min(i, len(cfg.Cards)-1)] }

// config makes sense of the flags.
func (f *nicFlags) config() (cfg softnic.Config, hosts []softnic.Host, err error) {
	f.wire.Rate = f.rate
	cfg = softnic.Config{Wire: f.wire, Seed: f.seed}
	switch {
	case len(f.ports) == 0 || len(f.ports)%2 != 0:
		return cfg, nil, usagef("--ports: %d names, want them in pairs", len(f.ports))
	case f.pids != nil && len(f.pids) != len(f.ports):
		return cfg, nil, usagef("--netns-pid: %d processes for %d ports", len(f.pids), len(f.ports))
	case f.queues < 1 || f.queues > maxQueues:
		return cfg, nil, usagef("--queues %d: want 1 to %d", f.queues, maxQueues)
	case len(f.models) > len(f.ports):
		return cfg, nil, usagef("--model: %d cards for %d ports", len(f.models), len(f.ports))
	}
	for i, port := range f.ports {
		m, err := model.Find(f.models[min(i, len(f.models)-1)])
		if err != nil {
			return cfg, nil, usage(err)
		}
		card := softnic.Card{Model: m, MTU: f.mtu}
		if card.Faults, err = f.faultsOf(port); err != nil {
			return cfg, nil, err
		}
		cfg.Cards = append(cfg.Cards, card)
		host := softnic.Host{Device: port}
		if f.pids != nil {
			host.PID = f.pids[i]
		}
		hosts = append(hosts, host)
	}
	// Whatever the devices are, the rest of the configuration is judged now.
	return cfg, hosts, usage(cfg.Check())
}

// maxQueues is MAX_TAP_QUEUES of Linux.
const maxQueues = 256

func (f *nicFlags) faultsOf(port string) (list []softnic.Fault, err error) {
	for _, text := range f.faults {
		name, at, only := strings.Cut(text, "@")
		if only && !slices.Contains(f.ports, at) {
			return nil, usagef("--fault %s: no port %q (have %s)", text, at, strings.Join(f.ports, ", "))
		}
		one, err := fault.Find(name)
		if err != nil {
			return nil, usage(err)
		}
		if !only || at == port {
			list = append(list, one)
		}
	}
	return list, nil
}

// apply changes the settings that --set names.
func (f *nicFlags) apply(n *softnic.NIC) error {
	for _, text := range f.sets {
		name, value, ok := strings.Cut(text, "=")
		v, err := strconv.Atoi(value)
		if !ok || err != nil {
			return usagef("--set %s: want [PORT.]NAME=NUMBER", text)
		}
		port, setting, one := strings.Cut(name, ".")
		if !one {
			port, setting = "", name
		}
		if one && !slices.Contains(f.ports, port) {
			return usagef("--set %s: no port %q (have %s)", text, port, strings.Join(f.ports, ", "))
		}
		for i, p := range f.ports {
			if port != "" && p != port {
				continue
			}
			if err := n.Set(i, softnic.Setting(setting), v); err != nil {
				return usage(err)
			}
		}
	}
	return nil
}

// usage is what was found out from the arguments.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usagef("%v", err)
}

// nicPort is one port in the JSON output.
type nicPort struct {
	Name     string            `json:"name"`
	Model    string            `json:"model"`
	Stations map[string]uint64 `json:"stations"`
	Driver   map[string]uint64 `json:"driver"` // by the driver's names
}

// printNIC prints the counters of each port.
func (c *console) printNIC(f *nicFlags, cfg softnic.Config, n *softnic.NIC) error {
	var ports []nicPort
	for i, name := range f.ports {
		p := nicPort{Name: name, Model: cardOf(cfg, i).Model.Name, Stations: map[string]uint64{}, Driver: map[string]uint64{}}
		counts := n.Counts(i)
		for _, s := range softnic.Stations() {
			p.Stations[s.String()] = counts[s]
		}
		for _, d := range n.DriverCounters(i) {
			p.Driver[d.Name] = d.Value
		}
		ports = append(ports, p)
	}
	if f.json {
		enc := json.NewEncoder(c.out)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"ports": ports, "balanced": n.Balance() == nil})
	}
	return printStations(c.out, ports)
}

// printStations prints a table without the rows that are 0 at all ports.
func printStations(out io.Writer, ports []nicPort) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, p := range ports {
		fmt.Fprintf(w, "\t%s", p.Name)
	}
	fmt.Fprintln(w, "\t")
	for _, s := range softnic.Stations() {
		name := s.String()
		if !slices.ContainsFunc(ports, func(p nicPort) bool { return p.Stations[name] != 0 }) {
			continue
		}
		fmt.Fprint(w, name)
		for _, p := range ports {
			fmt.Fprintf(w, "\t%d", p.Stations[name])
		}
		fmt.Fprintln(w, "\t")
	}
	return w.Flush()
}
