package feature

import "strings"

// A State is what user space sees of a device's features.
type State struct {
	HW       Set // a user may ask for a change
	Wanted   Set // a user asked for it, or it was on at registration
	Active   Set // on
	NoChange Set // nobody can change it
}

// Fixed reports whether asking for the feature changes nothing.
func (s State) Fixed(f Feature) bool { return !s.HW.Has(f) || s.NoChange.Has(f) }

// Show writes one feature in the way of ethtool -k: "off [requested on]".
func (s State) Show(f Feature) string {
	text := onOff(s.Active.Has(f))
	switch {
	case s.Fixed(f):
		return text + " [fixed]"
	case s.Active.Has(f) != s.Wanted.Has(f):
		return text + " [requested " + onOff(s.Wanted.Has(f)) + "]"
	}
	return text
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// A Line is a line of what ethtool -K prints under "Actual changes:".
type Line struct {
	Feature Feature
	On      bool
	Note    string // "", "requested on", "requested off" or "not requested"
}

// String writes the line as ethtool does.
func (l Line) String() string {
	text := l.Feature.String() + ": " + onOff(l.On)
	if l.Note != "" {
		text += " [" + l.Note + "]"
	}
	return text
}

// Report returns what ethtool -K prints after it asked for the features in
// value and against the others in mask: what changed, and what was asked and
// did not come. Where there is nothing to note it prints nothing
// (show_feature_changes, netlink/features.c, ethtool 6.1).
func Report(before, after State, value, mask Set) []Line {
	changed := Set{before.Active[0] ^ after.Active[0], before.Active[1] ^ after.Active[1]}
	missed := Set{value[0] ^ after.Active[0], value[1] ^ after.Active[1]}.Intersect(mask)
	var lines []Line
	noted := false
	for f := range changed.Union(missed).All() {
		l := Line{Feature: f, On: after.Active.Has(f)}
		switch {
		case missed.Has(f):
			l.Note = "requested " + onOff(value.Has(f))
		case !mask.Has(f):
			l.Note = "not requested"
		}
		noted = noted || l.Note != ""
		lines = append(lines, l)
	}
	if !noted {
		return nil
	}
	return lines
}

// Broken returns the first rule that keeps a feature off in a state, and false
// where none does.
func (s State) Broken(f Feature) (Rule, bool) {
	for _, r := range rules {
		if r.Drops.Has(f) && r.Broken(s.Active.Union(r.Of.Intersect(s.Wanted.With(f)))) {
			return r, true
		}
	}
	return Rule{}, false
}

// Explain says why the kernel's own rules keep a feature off in a state, with
// the state of what it needs and the source, and "" where they do not. What the
// device cannot turn on is left out unless nothing else would do.
func (s State) Explain(f Feature) string {
	r, ok := s.Broken(f)
	if !ok {
		return ""
	}
	if len(r.Needs) == 0 {
		return "excluded by " + s.with(r.Without.Intersect(s.Active)) + " (" + Source + ")"
	}
	var can, all []string
	for _, need := range r.Needs {
		words := s.with(need)
		all = append(all, words)
		if s.Active.Union(s.HW.Diff(s.NoChange)).Contains(need) {
			can = append(can, words)
		}
	}
	if len(can) == 0 {
		can = all
	}
	return "needs " + strings.Join(can, "; or ") + " (" + Source + ")"
}

// with names features with their states.
func (s State) with(set Set) string {
	var parts []string
	for f := range set.All() {
		parts = append(parts, f.String()+", which is "+s.Show(f))
	}
	return strings.Join(parts, ", and ")
}
