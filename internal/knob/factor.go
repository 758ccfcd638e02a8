package knob

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/sys/sysctl"
)

// A Kind says what a factor is changed through.
type Kind string

// The kinds of factors.
const (
	KindFeature  Kind = "feature"  // features of the device, on or off together
	KindCoalesce Kind = "coalesce" // interrupt coalescing
	KindRing     Kind = "ring"     // descriptor rings
	KindLink     Kind = "link"     // mtu, txqueuelen, gso_max_size …
	KindSysctl   Kind = "sysctl"   // net.*
	KindCommand  Kind = "command"  // a pair of commands
)

// Values of toggles and commands, and the state of a group of features that is
// neither.
const (
	on    = "on"
	off   = "off"
	mixed = "mixed"
)

// A Factor is a knob with the values to compare.
type Factor struct {
	Name      string    `json:"name"`      // as given, such as "sg+tso", "rx-usecs", "cmd:noop"
	Kind      Kind      `json:"kind"`      //
	Members   []string  `json:"members"`   // features or patterns; one value; the commands for on and off
	Values    []string  `json:"values"`    // the first is what the others are compared with
	Direction Direction `json:"direction"` // the way data must flow for it to matter
}

// A Setting gives a factor one of its values, or another.
type Setting struct {
	Factor Factor `json:"factor"`
	Value  string `json:"value"`
}

// A SyntaxError says what is wrong with a factor of the command line.
type SyntaxError struct{ Arg, Reason string }

func (e *SyntaxError) Error() string { return fmt.Sprintf("factor %q: %s", e.Arg, e.Reason) }

// Parse reads factors as a user writes them. Each argument is one of
//
//	tso            a toggle, by a short name or the kernel's
//	sg+tso         toggles that are one factor, changed together
//	tso,gro        toggles that are a factor each
//	mtu=1500,9000  a number or sysctl, and its values
//	cmd:x='a','b'  two shell commands, for on and for off
//
// known are feature names to accept besides those of Linux 6.18, as the
// device's own kernel has them.
func Parse(args []string, known ...string) ([]Factor, error) {
	var all []Factor
	for _, arg := range args {
		factors, err := parseArg(arg, known)
		if err != nil {
			return nil, err
		}
		for _, f := range factors {
			if slices.ContainsFunc(all, func(o Factor) bool { return o.Name == f.Name }) {
				return nil, &SyntaxError{f.Name, "given twice"}
			}
			all = append(all, f)
		}
	}
	return all, nil
}

func parseArg(arg string, known []string) ([]Factor, error) {
	if rest, ok := strings.CutPrefix(arg, "cmd:"); ok {
		f, err := parseCommand(arg, rest)
		return []Factor{f}, err
	}
	if name, list, ok := strings.Cut(arg, "="); ok {
		f, err := parseValues(arg, name, strings.Split(list, ","), known)
		return []Factor{f}, err
	}
	var factors []Factor
	for name := range strings.SplitSeq(arg, ",") {
		f, err := parseToggle(name, known)
		if err != nil {
			return nil, err
		}
		factors = append(factors, f)
	}
	return factors, nil
}

// parseToggle reads toggles joined by plus signs, or one switch.
func parseToggle(name string, known []string) (Factor, error) {
	if slices.Contains(switches, name) {
		return parseValues(name, name, []string{off, on}, known)
	}
	f := Factor{Name: name, Kind: KindFeature, Values: []string{off, on}}
	for part := range strings.SplitSeq(name, "+") {
		feature, d, ok := findFeature(part, known)
		switch {
		case part == "":
			return Factor{}, &SyntaxError{name, "a name is missing"}
		case ok && slices.Contains(f.Members, feature):
			return Factor{}, &SyntaxError{name, part + " is in it twice"}
		case ok:
			f.Members, f.Direction = append(f.Members, feature), f.Direction.join(d)
		case kindOf(part) != "" && part != name:
			return Factor{}, &SyntaxError{name, part + " is no feature: only features change together"}
		case kindOf(part) != "":
			return Factor{}, &SyntaxError{name, "needs values to compare: " + part + "=A,B"}
		default:
			return Factor{}, unknown(part, known)
		}
	}
	return f, nil
}

// findFeature returns the feature or pattern behind a name.
func findFeature(name string, known []string) (string, Direction, bool) {
	if t, ok := findToggle(name); ok {
		return t.Feature, t.Direction, true
	}
	if slices.Contains(kernelFeatures, name) || slices.Contains(known, name) {
		return name, featureDirection(name), true
	}
	return "", "", false
}

// featureDirection goes by the toggle that has the feature, else by its name.
func featureDirection(name string) Direction {
	for _, t := range Toggles().All() {
		if ok, _ := path.Match(t.Feature, name); ok {
			return t.Direction
		}
	}
	switch {
	case strings.HasPrefix(name, "tx-"):
		return TX
	case strings.HasPrefix(name, "rx-"):
		return RX
	}
	return Both
}

// parseValues reads a knob with the values given to it.
func parseValues(arg, name string, values, known []string) (Factor, error) {
	f := Factor{Name: name, Kind: kindOf(name), Members: []string{name}}
	f.Direction = valueDirection(name, f.Kind)
	check := canonical
	if f.Kind == "" {
		toggle, err := parseToggle(name, known)
		if err != nil {
			return Factor{}, err
		}
		f, check = toggle, onOff
		f.Values = nil
	}
	if f.Kind == KindSysctl {
		canon, err := sysctl.Canonical(name)
		if err != nil {
			return Factor{}, &SyntaxError{arg, err.Error()}
		}
		f.Name, f.Members = canon, []string{canon} // one setting, one name: it is saved and restored by it
	}
	for _, v := range values {
		v, reason := check(name, v)
		switch {
		case reason != "":
			return Factor{}, &SyntaxError{arg, "a value of " + name + " " + reason}
		case v == "":
			return Factor{}, &SyntaxError{arg, "a value is missing"}
		case slices.Contains(f.Values, v):
			return Factor{}, &SyntaxError{arg, "the value " + v + " is given twice"}
		}
		f.Values = append(f.Values, v)
	}
	if len(f.Values) < 2 {
		return Factor{}, &SyntaxError{arg, "needs two values or more to compare"}
	}
	return f, nil
}

func onOff(_, value string) (string, string) {
	if value != on && value != off {
		return "", "is on or off"
	}
	return value, ""
}

// parseCommand reads NAME=ON,OFF, each command in quotes or bare. A shell takes
// the quotes off, so bare is the usual form; commands with commas need quotes
// that the shell leaves.
func parseCommand(arg, rest string) (Factor, error) {
	name, list, ok := strings.Cut(rest, "=")
	if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		return Factor{}, &SyntaxError{arg, "is not of the form cmd:NAME='ON-COMMAND','OFF-COMMAND'"}
	}
	commands, ok := splitQuoted(list)
	if !ok {
		return Factor{}, &SyntaxError{arg, "a quote is not closed, or not followed by a comma"}
	}
	if len(commands) != 2 {
		return Factor{}, &SyntaxError{arg, fmt.Sprintf("has %d commands, not 2; put quotes that the shell leaves around commands with commas", len(commands))}
	}
	for _, c := range commands {
		if strings.TrimSpace(c) == "" || strings.ContainsRune(c, 0) {
			return Factor{}, &SyntaxError{arg, "a command is empty; true does nothing"}
		}
	}
	return Factor{Name: "cmd:" + name, Kind: KindCommand, Members: commands, Values: []string{off, on}, Direction: Both}, nil
}

// splitQuoted splits at commas outside quotes. A quote counts only at the start
// of an item, and ends at the next quote of its kind.
func splitQuoted(list string) ([]string, bool) {
	var items []string
	for {
		item, rest, more := strings.Cut(list, ",")
		if list != "" && (list[0] == '\'' || list[0] == '"') {
			end := strings.IndexByte(list[1:], list[0])
			if end < 0 {
				return nil, false
			}
			item, rest = list[1:1+end], list[2+end:]
			more = rest != ""
			if more && rest[0] != ',' {
				return nil, false
			}
			rest = strings.TrimPrefix(rest, ",")
		}
		items = append(items, item)
		if !more {
			return items, true
		}
		list = rest
	}
}
