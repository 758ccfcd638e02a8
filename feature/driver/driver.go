package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/offlab/offlab/feature"
)

// A Note is something that was not followed.
type Note struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// A Step is one assignment.
type Step struct {
	Line  int
	In    string // the function, if it was called by the one that is told
	When  string // conditions around it that could not be decided
	Text  string
	Field feature.Field
	Op    string
	Named feature.Set // features that the right side names
	After Value       // of the field

	base   string
	before Value
}

// A Function is what one function does to one device.
type Function struct {
	Name   string // "" for statements
	Line   int
	Role   string // what the driver gives it as, such as "probe"
	Device string // how the text calls the device; "" for statements
	// Fresh says that the sets start empty, as those of a new device. Otherwise
	// what is not assigned is maybe.
	Fresh bool
	Sets  map[feature.Field]Value
	Steps []Step
	Notes []Note
}

// A Result is what a text does.
type Result struct {
	Functions []Function
	Notes     []Note // about no function
}

// ErrNothing says that a text has no assignment to a feature set.
var ErrNothing = errors.New("no assignment to features, hw_features, vlan_features, hw_enc_features, mpls_features, wanted_features or the like")

// A StatementError is a statement that cannot be read.
type StatementError struct {
	Line int
	Text string
}

func (e *StatementError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// Statements evaluates statements on a new device: "net_dev->features =
// NETIF_F_SG; hw_features = features". Names may be without the device and
// without NETIF_F_. A set that is cleared in part before anything else is taken
// for one that has been filled in elsewhere. A name that means nothing is an
// error.
func Statements(text string) (*Function, error) {
	src := preprocess(lex(text))
	r := newRun(src, nil)
	r.short, r.fresh = true, true
	r.block(statements(src.tokens, 0))
	list := r.results("", 0)
	switch {
	case r.err != nil:
		return nil, r.err
	case len(list) == 0:
		return nil, ErrNothing
	case len(list) > 1:
		names := make([]string, len(list))
		for i, f := range list {
			names[i] = f.Device
		}
		return nil, fmt.Errorf("the statements are about several devices: %s", strings.Join(names, ", "))
	}
	return &list[0], nil
}

// File evaluates each function of a C file that changes the sets of a device,
// those that others call as part of these.
func File(text string) (*Result, error) {
	src := preprocess(lex(text))
	src.constants()
	funcs := functions(src.tokens)
	table := map[string]*function{}
	for i := range funcs {
		table[funcs[i].name] = &funcs[i]
	}
	calls := callGraph(funcs, table)
	result := &Result{Notes: src.notes}
	roles := findRoles(src.tokens, table)
	fuel := maxFuel
	for i := range funcs {
		f := &funcs[i]
		if !calls.touches[f.name] || calls.called[f.name] {
			continue
		}
		r := newRun(src, table)
		r.fuel, r.touches, r.role = fuel, calls.touches, roles[f.name]
		r.fresh = makesDevice(f, r.role)
		r.call(f, nil, nil)
		fuel = r.fuel
		result.Functions = append(result.Functions, r.results(f.name, f.line)...)
	}
	if len(result.Functions) == 0 {
		return result, ErrNothing
	}
	return result, nil
}

// findRoles returns what the driver's tables call a function: ".probe = f".
func findRoles(list []token, table map[string]*function) map[string]string {
	roles := map[string]string{}
	for i := range len(list) - 3 {
		if list[i].text == "." && list[i+1].kind == 'i' && list[i+2].text == "=" && list[i+3].kind == 'i' {
			if f := table[list[i+3].text]; f != nil && roles[f.name] == "" {
				roles[f.name] = list[i+1].text
			}
		}
	}
	return roles
}

// makesDevice reports whether a function has a new device in its hands.
func makesDevice(f *function, role string) bool {
	if role == "probe" || role == "setup" {
		return true
	}
	return slices.ContainsFunc(f.tokens, func(t token) bool {
		return t.kind == 'i' && (strings.Contains(t.text, "alloc_etherdev") || strings.Contains(t.text, "alloc_netdev") || t.text == "ether_setup")
	})
}

type graph struct{ touches, called map[string]bool }

// callGraph finds the functions that assign to sets, themselves or through
// others, and those of them that such a function calls.
func callGraph(funcs []function, table map[string]*function) graph {
	g := graph{map[string]bool{}, map[string]bool{}}
	callers := map[string][]string{}
	for _, f := range funcs {
		for i, t := range f.tokens {
			if t.kind == 'i' && i+1 < len(f.tokens) && f.tokens[i+1].text == "(" && table[t.text] != nil && t.text != f.name {
				callers[t.text] = append(callers[t.text], f.name)
			}
			if assignsField(f.tokens, i) {
				g.touches[f.name] = true
			}
		}
	}
	work := make([]string, 0, len(funcs))
	for _, f := range funcs {
		if g.touches[f.name] {
			work = append(work, f.name)
		}
	}
	for len(work) > 0 {
		name := work[0]
		work = work[1:]
		for _, c := range callers[name] {
			g.called[name] = true
			if !g.touches[c] {
				g.touches[c] = true
				work = append(work, c)
			}
		}
	}
	return g
}

// assignsField reports whether the token is a member that is a set and is
// assigned to, or whose address is taken.
func assignsField(list []token, i int) bool {
	if _, ok := feature.FieldByName(list[i].text); !ok || i == 0 || i+1 >= len(list) {
		return false
	}
	return (list[i-1].text == "->" || list[i-1].text == ".") && assigns[list[i+1].text]
}
