package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/rtnl"
)

func (c *console) featuresCommand() *cobra.Command {
	var stack, asJSON bool
	cmd := &cobra.Command{
		Use:   "features DEV",
		Short: "Show the features of a device, what drags what, and why one is off",
		Long: `Shows the four sets that the kernel keeps of a device's features, grouped as
ethtool -k does: what a user may change, what is wanted, what is on, and what
nobody can change. Each feature that is off has its reason; each that would
take others along names them.

--stack walks down to the hardware - VLAN, bond, bridge, macvlan to what is
below them, tunnels along the route - and tells the layer where a feature is
lost. What a device hands to VLANs and tunnels on top of it (vlan_features,
hw_enc_features) is not to be seen from user space; where it must be the cause,
that is said.`,
		Example: "  offlab features eth0\n  offlab features bond0.100 --stack\n  offlab features eth0 --json\n" +
			"  offlab features eval 'features = SG|IP_CSUM; hw_features = features' --register",
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			m, err := openMachine()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			defer m.close()
			return m.names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return c.features(args[0], stack, asJSON) },
	}
	cmd.Flags().BoolVar(&stack, "stack", false, "walk down to the hardware")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.AddCommand(c.featuresEvalCommand())
	return cmd
}

// machine is the devices of this namespace.
type machine struct {
	eth   *ethtool.Handle
	rt    *rtnl.Handle
	links []rtnl.Link
}

func openMachine() (*machine, error) {
	m := &machine{}
	var err error
	if m.eth, err = ethtool.Open(); err != nil {
		return nil, environment(err)
	}
	if m.rt, err = rtnl.Open(); err != nil {
		return nil, errors.Join(environment(err), m.eth.Close())
	}
	if m.links, err = m.rt.Links(); err != nil {
		m.close()
		return nil, environment(err)
	}
	return m, nil
}

// environment is an error of the machine, not of ours.
func environment(err error) error { return &agent.Error{Kind: agent.KindEnv, Text: err.Error()} }

func (m *machine) close() {
	m.eth.Close() //nolint:errcheck // nothing was written
	m.rt.Close()  //nolint:errcheck // nothing was written
}

func (m *machine) names() []string {
	names := make([]string, len(m.links))
	for i, l := range m.links {
		names[i] = l.Name
	}
	return names
}

func (m *machine) link(name string) (rtnl.Link, error) {
	for _, l := range m.links {
		if l.Name == name {
			return l, nil
		}
	}
	return rtnl.Link{}, usagef("no device %q (have %s)", name, strings.Join(m.names(), ", "))
}

// A featureRow is one feature of a device.
type featureRow struct {
	Name     string   `json:"name"`
	C        string   `json:"c"`
	Group    string   `json:"group,omitempty"`
	HW       bool     `json:"hw"`
	Wanted   bool     `json:"wanted"`
	Active   bool     `json:"active"`
	NoChange bool     `json:"nochange"`
	State    string   `json:"state"` // as ethtool -k prints it
	Why      string   `json:"why,omitempty"`
	Drags    []string `json:"drags,omitempty"`
}

// A featureView is what the command shows.
type featureView struct {
	Device   string       `json:"device"`
	Kind     string       `json:"kind"`
	Driver   string       `json:"driver,omitempty"`
	Features []featureRow `json:"features"`
	Unknown  []string     `json:"unknown,omitempty"` // features that Linux 6.18 does not have
	Stack    []stackRow   `json:"stack,omitempty"`
	Lost     []lossRow    `json:"lost,omitempty"`
}

func (c *console) features(name string, stack, asJSON bool) error {
	m, err := openMachine()
	if err != nil {
		return err
	}
	defer m.close()
	link, err := m.link(name)
	if err != nil {
		return err
	}
	w := walker{m: m, done: map[int]*feature.Layer{}}
	top, err := w.layer(link, "")
	if err != nil {
		return environment(err)
	}
	view := featureView{Device: name, Kind: top.Kind, Features: rowsOf(top)}
	if d, err := m.eth.Driver(name); err == nil {
		view.Driver = d.Name
	}
	if f, err := m.eth.Features(name); err == nil {
		view.Unknown = unknownOf(f)
	}
	if stack {
		view.Stack, view.Lost = w.rows, lossesOf(top)
	}
	if asJSON {
		return writeJSON(c.out, view)
	}
	view.print(c.out)
	if stack {
		view.printStack(c.out, top)
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func unknownOf(f ethtool.Features) (list []string) {
	for _, name := range f.Names {
		if _, ok := feature.ByName(name); !ok {
			list = append(list, name)
		}
	}
	return list
}

func rowsOf(l *feature.Layer) []featureRow {
	var rows []featureRow
	s := l.State
	for _, g := range feature.Groups() {
		for _, f := range g.Features {
			row := featureRow{
				Name: f.String(), C: f.C(), Group: g.Name, HW: s.HW.Has(f), Wanted: s.Wanted.Has(f), Active: s.Active.Has(f),
				NoChange: s.NoChange.Has(f), State: s.Show(f), Why: l.Why(f),
			}
			if row.Active && !s.Fixed(f) {
				row.Drags = s.Drags(f).Names()
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// print writes the table. A heading of one feature is left out, as ethtool
// does.
func (v featureView) print(out io.Writer) {
	fmt.Fprintf(out, "%s: %s", v.Device, v.Kind)
	if v.Driver != "" && v.Driver != v.Kind {
		fmt.Fprintf(out, ", driver %s", v.Driver)
	}
	fmt.Fprint(out, "\n\n")
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "feature\thw\twanted\tactive\tnochange\tethtool -k\treason")
	size := map[string]int{}
	for _, r := range v.Features {
		size[r.Group]++
	}
	group := ""
	for _, r := range v.Features {
		indent := ""
		if r.Group != "" && size[r.Group] > 1 {
			indent = "  "
			if r.Group != group {
				fmt.Fprintf(w, "%s\t\t\t\t\t\t\n", r.Group)
			}
		}
		group = r.Group
		reason := r.Why
		if len(r.Drags) > 0 {
			reason = "turning it off drags " + strings.Join(r.Drags, ", ")
		}
		fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%s\t%s\t%s\n", indent, r.Name, dot(r.HW), dot(r.Wanted), dot(r.Active), dot(r.NoChange), r.State, reason)
	}
	w.Flush() //nolint:errcheck // as for the other lines
	if len(v.Unknown) > 0 {
		fmt.Fprintf(out, "\nnewer than Linux 6.18, and not shown: %s\n", strings.Join(v.Unknown, ", "))
	}
}

func dot(b bool) string {
	if b {
		return "x"
	}
	return "."
}
