package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/offlab/offlab/internal/app"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/report"
	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/internal/softnic/model"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

func (c *console) reportCommand() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "report [STUDY]",
		Short: "Make the report of a study again",
		Long: `Makes a report from a study file or from the journal of a study that did not
end. Without STUDY, or with "last": the newest study kept by offlab.

The exit status is that of the study's verdicts.`,
		Example: "  offlab report s.json\n  offlab report s.json --format mail\n  offlab report last -o report.md",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "last"
			if len(args) > 0 {
				path = args[0]
			}
			return c.report(path, format, output)
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "one of "+strings.Join(formatNames(), ", ")+" (default: text, or by the name given to -o)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *console) report(path, name, output string) error {
	f, err := pickFormat(name, output)
	if err != nil {
		return err
	}
	state := ""
	if path == "last" {
		p, err := c.program()
		if err != nil {
			return err
		}
		state = p.State
	}
	s, at, err := app.Load(path, state)
	var cut *study.TruncatedError
	switch {
	case errors.As(err, &cut) && s != nil:
		return fmt.Errorf("%w\nThe program was killed while it wrote that line. offlab run --resume %s cuts it off and goes on;\nhead -n %d %s > whole.journal keeps what is whole", err, at, cut.Line-1, at)
	case err != nil:
		return err
	}
	s.Verdicts = verdict.Make(s)
	if output == "" {
		if err := f.Render(c.out, s, c.look()); err != nil {
			return err
		}
		return verdictStatus(s)
	}
	if err := app.WriteFile(output, func(w io.Writer) error { return f.Render(w, s, report.Options{}) }); err != nil {
		return err
	}
	return verdictStatus(s)
}

func pickFormat(name, output string) (report.Format, error) {
	if name == "" && output != "" {
		f, ok := report.FindByPath(output)
		if !ok {
			return f, usagef("-o %s: the name must end in one of %s, or give --format", output, strings.Join(suffixes(), ", "))
		}
		return f, nil
	}
	if name == "" {
		name = "text"
	}
	f, err := report.Find(name)
	if err != nil {
		return f, usagef("%v", err)
	}
	return f, nil
}

func (c *console) restoreCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back whatever an interrupted study left changed",
		Long: `Puts back, on this host, whatever a study changed and could not put back: after
a crash of agent and guardian both. Run it where the study's agent ran, in the
same network namespace. A study that still runs is left alone.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if state == "" {
				p, err := c.program()
				if err != nil {
					return err
				}
				state = p.State
			}
			return c.restore(state)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "directory of state files (default: the user's)")
	return cmd
}

func (c *console) restore(state string) error {
	results, err := knob.Restore(state)
	for _, r := range results {
		fmt.Fprintln(c.out, r)
	}
	if err == nil && len(results) == 0 {
		fmt.Fprintln(c.out, "nothing to restore")
	}
	return err
}

func (c *console) listCommand() *cobra.Command {
	kinds := map[string]func(io.Writer){
		"faults": listFaults, "formats": listFormats, "knobs": listKnobs, "labs": listLabs,
		"loads": listLoads, "models": listModels, "paths": listPaths,
	}
	names := slices.Sorted(maps.Keys(kinds))
	return &cobra.Command{
		Use:       "list KIND",
		Short:     "List what there is: " + strings.Join(names, ", "),
		ValidArgs: names,
		Args:      cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, ok := kinds[args[0]]
			if !ok {
				return usagef("nothing to list by the name %q (have %s)", args[0], strings.Join(names, ", "))
			}
			w := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)
			list(w)
			return w.Flush()
		},
	}
}

func listKnobs(w io.Writer) {
	for _, t := range knob.Toggles().All() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name(), t.Direction, t.About())
	}
	for _, name := range knob.ValueNames() {
		fmt.Fprintf(w, "%s=A,B\t\ta number of the device\n", name)
	}
	fmt.Fprintf(w, "net.NAME=A,B\t\tany sysctl below net\n")
	fmt.Fprintf(w, "cmd:NAME='ON','OFF'\t\ta pair of shell commands\n")
	fmt.Fprintf(w, "any other feature by the name that ethtool -k prints\n")
}

func listFormats(w io.Writer) {
	for _, f := range report.Formats.All() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name(), f.Extension(), f.About())
	}
}

func listModels(w io.Writer) {
	for _, m := range model.Models.All() {
		fmt.Fprintf(w, "%s\t%s\n", m.Name(), m.About())
	}
}

func listFaults(w io.Writer) {
	for _, f := range fault.Faults.All() {
		fmt.Fprintf(w, "%s\t%s\n", f.Name(), f.About())
	}
}

func listPaths(w io.Writer) {
	fmt.Fprintln(w, "base\tthe device itself")
	fmt.Fprintln(w, "vlan:ID\tan 802.1Q tag")
	fmt.Fprintln(w, "qinq:OUTER,INNER\tan 802.1ad tag around an 802.1Q tag")
	fmt.Fprintln(w, "forwarded\tthrough the host of the device under test, on the soft NIC")
}

func listLabs(w io.Writer) {
	fmt.Fprintln(w, "softnic\ttwo network namespaces of this machine, or three, joined by a card in user space (the default)")
	fmt.Fprintln(w, "veth\ttwo network namespaces of this machine, joined by a veth pair")
	fmt.Fprintln(w, "hosts\ta device of this machine and a peer: --dev DEV --peer ssh://host or exec:'COMMAND'")
}

func listLoads(w io.Writer) {
	fmt.Fprintln(w, "bulk\tTCP as fast as it goes, every byte checked at the receiver")
}

func (c *console) agentCommand() *cobra.Command {
	o := app.AgentOptions{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Serve a controller over standard input and output",
		Long: `Serves a controller over standard input and output, in the network namespace it
is started in. A controller starts it: over ssh, or by exec:'COMMAND'. When the
stream ends, or nothing is heard for 30 s, it puts back what it changed and ends.`,
		Example: "  offlab run tso --dev v0 --peer exec:'ip netns exec b offlab agent'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.State == "" {
				p, err := c.program()
				if err != nil {
					return err
				}
				o.State = p.State
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			return app.Agent(cmd.Context(), app.Program{Version: version, Exe: exe}, o, c.in, closer{c.out})
		},
	}
	cmd.Flags().BoolVar(&o.Own, "own-namespace", false, "the process was born in a namespace of its own: mount its /sys")
	cmd.Flags().IntVar(&o.CPU, "cpu", -1, "stay on this CPU")
	cmd.Flags().StringVar(&o.State, "state", "", "directory of state files (default: the user's)")
	_ = cmd.Flags().MarkHidden("own-namespace")
	return cmd
}

// closer closes the writer if it can be closed.
type closer struct{ io.Writer }

func (c closer) Close() error {
	if w, ok := c.Writer.(io.Closer); ok {
		return w.Close()
	}
	return nil
}

func (c *console) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    knob.GuardCommand + " STATEFILE",
		Short:  "Wait for the end of an agent and restore what it left changed",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return knob.RunGuard(c.in, args[0])
		},
	}
}
