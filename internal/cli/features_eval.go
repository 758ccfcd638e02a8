package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/feature/driver"
)

func (c *console) featuresEvalCommand() *cobra.Command {
	var register, asJSON bool
	cmd := &cobra.Command{
		Use:   "eval 'STATEMENTS' | FILE.c | -",
		Short: "Say what a driver's feature statements result in",
		Long: `Evaluates assignments to the feature sets of a device, as they stand in a
driver: in C or shortened, several lines, or a whole .c file, function by
function. What depends on a condition is "maybe"; what could not be followed is
told, with its line.

--register goes on to what the kernel's core does when the device is registered:
it adds the soft features and drops what lacks what it needs.`,
		Example: "  offlab features eval 'features = SG|IP_CSUM|IPV6_CSUM; features &= GRO; hw_features = features' --register\n" +
			"  offlab features eval 'net_dev->features &= ~NETIF_F_TSO;'\n" +
			"  offlab features eval drivers/net/ethernet/broadcom/bgmac.c --register --json",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.featuresEval(args[0], register, asJSON) },
	}
	cmd.Flags().BoolVar(&register, "register", false, "apply what registration does")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	wrapArgs(cmd)
	return cmd
}

func (c *console) featuresEval(arg string, register, asJSON bool) error {
	r, err := c.evaluate(arg)
	if err != nil {
		return err
	}
	view := evalView{Notes: r.Notes}
	for i := range r.Functions {
		view.Functions = append(view.Functions, viewOf(&r.Functions[i], register))
	}
	if asJSON {
		return writeJSON(c.out, view)
	}
	for i, f := range view.Functions {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		f.print(c.out)
	}
	printNotes(c.out, view.Notes)
	return nil
}

// evaluate takes a file where the argument names one, else statements.
func (c *console) evaluate(arg string) (*driver.Result, error) {
	text, name := arg, ""
	switch info, err := os.Stat(arg); {
	case arg == "-":
		b, err := io.ReadAll(c.in)
		if err != nil {
			return nil, err
		}
		text, name = string(b), "standard input"
	case err == nil && info.Mode().IsRegular():
		b, err := os.ReadFile(arg)
		if err != nil {
			return nil, usagef("%v", err)
		}
		text, name = string(b), arg
	case strings.HasSuffix(arg, ".c") || strings.HasSuffix(arg, ".h"):
		return nil, usagef("no file %s", arg)
	}
	if name != "" {
		r, err := driver.File(text)
		if err == nil {
			return r, nil
		}
		if arg != "-" || !errors.Is(err, driver.ErrNothing) {
			return nil, usagef("%s: %v", name, err)
		}
	}
	f, err := driver.Statements(text)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return &driver.Result{Functions: []driver.Function{*f}}, nil
}

// An evalView is what the command shows.
type evalView struct {
	Functions []functionView `json:"functions"`
	Notes     []driver.Note  `json:"notes,omitempty"`
}

type functionView struct {
	Name       string             `json:"name,omitempty"`
	Line       int                `json:"line,omitempty"`
	Role       string             `json:"role,omitempty"`
	Device     string             `json:"device,omitempty"`
	Fresh      bool               `json:"fresh"` // it starts with empty sets
	Registered bool               `json:"registered"`
	Steps      []stepView         `json:"steps"`
	Sets       map[string]setView `json:"sets"`
	Changes    []changeView       `json:"changes,omitempty"`
	Findings   []string           `json:"findings,omitempty"`
	Notes      []driver.Note      `json:"notes,omitempty"`

	order []string
}

type stepView struct {
	Line  int     `json:"line"`
	In    string  `json:"in,omitempty"`   // the function, if it was called by the one that is told
	When  string  `json:"when,omitempty"` // conditions around it that could not be decided
	Text  string  `json:"text"`
	Field string  `json:"field"`
	After setView `json:"after"` // of the field
}

// A setView is what is known of a set.
type setView struct {
	On    []string `json:"on"`
	Maybe []string `json:"maybe"`

	value driver.Value
}

func setOf(v driver.Value) setView {
	v = driver.Value{On: v.On.Intersect(feature.All), Maybe: v.Maybe.Intersect(feature.All)}
	return setView{v.On.Names(), v.Maybe.Names(), v}
}

type changeView struct {
	Field  string   `json:"field"`
	On     []string `json:"on,omitempty"`
	Off    []string `json:"off,omitempty"`
	Why    string   `json:"why"`
	Source string   `json:"source"`
}

func viewOf(f *driver.Function, register bool) functionView {
	o := f.Outcome()
	if register {
		o = f.Register()
	}
	v := functionView{
		Name: f.Name, Line: f.Line, Role: f.Role, Device: f.Device, Fresh: f.Fresh, Registered: o.Registered,
		Sets: map[string]setView{}, Findings: o.Findings(), Notes: f.Notes,
	}
	for _, s := range f.Steps {
		v.Steps = append(v.Steps, stepView{s.Line, s.In, s.When, s.Text, s.Field.String(), setOf(s.After)})
	}
	for _, field := range feature.Fields() {
		if set, ok := o.Sets[field]; ok {
			v.Sets[field.String()] = setOf(set)
			v.order = append(v.order, field.String())
		}
	}
	for _, c := range o.Changes {
		v.Changes = append(v.Changes, changeView{c.Field.String(), c.On.Names(), c.Off.Names(), c.Why, c.Source})
	}
	return v
}

func (v functionView) print(out io.Writer) {
	v.title(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for i, s := range v.Steps {
		label := fmt.Sprintf("%d:", s.Line)
		if v.Name == "" {
			label = fmt.Sprintf("%d.", i+1)
		}
		text := s.Text
		if s.In != "" {
			text += "  in " + s.In
		}
		if s.When != "" {
			text += "  if " + s.When
		}
		fmt.Fprintf(w, "  %s\t%s\n", label, text)
	}
	w.Flush() //nolint:errcheck // as for the other lines
	switch {
	case v.Registered:
		fmt.Fprintln(out, "after registration")
	case v.Fresh:
		fmt.Fprintln(out, "before registration (--register applies it)")
	default:
		fmt.Fprintln(out, "after it; what is not named here stays as it was")
	}
	w = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, name := range v.order {
		fmt.Fprintf(w, "  %s\t%s\n", name, describe(v.Sets[name].value))
	}
	w.Flush() //nolint:errcheck // as for the other lines
	for _, c := range v.Changes {
		fmt.Fprintf(out, "    %s:%s%s - %s (%s)\n", c.Field, signed(" +", c.On), signed(" -", c.Off), c.Why, c.Source)
	}
	if len(v.Findings) > 0 {
		fmt.Fprintln(out, "findings")
	}
	for _, text := range v.Findings {
		fmt.Fprintf(out, "  - %s\n", text)
	}
	printNotes(out, v.Notes)
}

func (v functionView) title(out io.Writer) {
	if v.Name == "" {
		fmt.Fprintln(out, "statements")
		return
	}
	fmt.Fprintf(out, "%s (line %d)", v.Name, v.Line)
	if v.Role != "" {
		fmt.Fprintf(out, ", .%s", v.Role)
	}
	fmt.Fprintf(out, ": %s\n", v.Device)
}

// describe writes a set: what is on, what may be, and, where nothing is known
// of the rest, what is off.
func describe(set driver.Value) string {
	parts, maybe := set.On.Names(), set.Maybe
	if off := feature.All.Diff(set.Can()); maybe.Len() > feature.All.Len()/2 {
		for f := range off.All() {
			parts = append(parts, "not "+f.String())
		}
		parts = append(parts, "the rest unknown")
	} else if !maybe.IsZero() {
		parts = append(parts, "maybe "+strings.Join(maybe.Names(), ", maybe "))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func signed(sign string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return sign + strings.Join(names, sign)
}

func printNotes(out io.Writer, notes []driver.Note) {
	if len(notes) > 0 {
		fmt.Fprintln(out, "not followed")
	}
	for _, n := range notes {
		fmt.Fprintf(out, "  line %d: %s\n", n.Line, n.Text)
	}
}
