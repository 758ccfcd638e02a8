package knob

import (
	"fmt"
	"maps"
	"slices"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/sys/sysctl"
)

// A Report says what settings did to a device.
type Report struct {
	Settings []study.Moved  `json:"settings,omitempty"` // one for each setting, in order
	Dragged  []study.Change `json:"dragged,omitempty"`  // changed from the baseline although nobody asked
}

// overwriting are values that set others when they are written. They start from
// the baseline each time, so that the result does not depend on what was
// applied before.
var overwriting = []string{"gso_max_size", "gro_max_size"}

// Apply brings the device to what it was at [Claim] plus the settings, and reads
// everything back. No settings bring it back as it was. A setting that did not
// take effect is no error: the report says so, and why. An error says that the
// device is gone, that a right is missing, or that nothing can be read back.
func (s *Session) Apply(settings []Setting) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Report{}, ErrClosed
	}
	var factors []Factor
	for _, set := range settings {
		if err := set.check(); err != nil {
			return Report{}, err
		}
		if slices.ContainsFunc(factors, func(f Factor) bool { return f.Name == set.Factor.Name }) {
			return Report{}, &SyntaxError{set.Factor.Name, "is set twice in one arm"}
		}
		factors = append(factors, set.Factor)
	}
	if err := s.adopt(factors); err != nil {
		return Report{}, err
	}
	if err := s.dev.locate(); err != nil {
		return Report{}, err
	}
	refused, err := s.change(settings)
	if err != nil {
		return Report{}, err
	}
	now, err := s.dev.read(sysctlsOf(s.base.Values))
	if err != nil {
		return Report{}, err
	}
	return s.report(settings, now, refused), nil
}

// check refuses a value that the kind of factor cannot have.
func (set Setting) check() error {
	f := set.Factor
	switch f.Kind {
	case KindFeature, KindCommand:
		if set.Value != on && set.Value != off {
			return &SyntaxError{f.Name + "=" + set.Value, "is on or off"}
		}
	case KindCoalesce, KindRing, KindLink, KindSysctl:
		if v, why := canonical(f.Name, set.Value); why != "" || v != set.Value || kindOf(f.Name) != f.Kind {
			return &SyntaxError{f.Name + "=" + set.Value, "is no value of this knob"}
		}
		if name, err := sysctl.Canonical(f.Name); f.Kind == KindSysctl && (err != nil || name != f.Name) {
			return &SyntaxError{f.Name, "is not the name of a net sysctl"}
		}
	default:
		return &SyntaxError{f.Name, fmt.Sprintf("is of an unknown kind %q", f.Kind)}
	}
	return nil
}

// change makes the changes: commands, which may do anything, then values, which
// may make a driver reconsider features, then all features in one request.
func (s *Session) change(settings []Setting) (map[string]error, error) {
	refused := map[string]error{}
	if err := s.runCommands(settings, refused); err != nil {
		return nil, err
	}
	asked := map[string]string{}
	want := maps.Clone(s.base.Wanted)
	for _, set := range settings {
		switch set.Factor.Kind {
		case KindFeature:
			s.expand(set.Factor).ask(set.Value, want)
		case KindCoalesce, KindRing, KindLink, KindSysctl:
			asked[set.Factor.Name] = set.Value
		case KindCommand:
		}
	}
	rest := maps.Clone(s.base.Values)
	for name := range asked {
		if !slices.Contains(overwriting, name) {
			delete(rest, name)
		}
	}
	if _, err := s.dev.settle(rest); err != nil {
		return nil, err
	}
	now, err := s.dev.read(sysctlsOf(asked))
	if err != nil {
		return nil, err
	}
	why, err := s.dev.write(differing(asked, now.values))
	if err != nil {
		return nil, err
	}
	back := map[string]string{} // a previous arm may have set what this one cannot
	for name := range why {
		back[name] = s.base.Values[name]
	}
	if _, err := s.dev.settle(back); err != nil {
		return nil, err
	}
	maps.Copy(refused, why)
	return refused, s.dev.want(want)
}

// runCommands brings each pair of commands to the value asked for, and those
// not asked for back to their first.
func (s *Session) runCommands(settings []Setting, refused map[string]error) error {
	asked := map[string]Setting{}
	for _, set := range settings {
		if set.Factor.Kind == KindCommand {
			asked[set.Factor.Name] = set
		}
	}
	for _, c := range s.base.Commands {
		set, ok := asked[c.Name]
		if ok {
			note(refused, c.Name, s.command(set.Factor, set.Value))
			continue
		}
		if err := s.command(Factor{Name: c.Name, Members: []string{c.On, ""}}, on); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// report compares what is with what was asked and what was.
func (s *Session) report(settings []Setting, now snapshot, refused map[string]error) Report {
	var r Report
	asked := map[string]bool{}
	for _, set := range settings {
		m := study.Moved{Knob: set.Factor.Name, Asked: set.Value}
		if set.Factor.Kind == KindFeature {
			g := s.expand(set.Factor)
			s.featureReport(g, now, &m)
			for _, name := range g.members() {
				asked[name] = true
			}
		} else {
			s.valueReport(set.Factor, now, refused[set.Factor.Name], &m)
			asked[set.Factor.Name] = true
		}
		r.Settings = append(r.Settings, m)
	}
	for _, c := range compare(s.base, now) {
		if !asked[c.Name] {
			r.Dragged = append(r.Dragged, c)
		}
	}
	return r
}

func (s *Session) featureReport(g group, now snapshot, m *study.Moved) {
	m.Was, m.Got = g.state(s.baseline.features), g.state(now.features)
	m.Moved = m.Got == m.Asked
	if !m.Moved {
		m.Reason = g.reasons(m.Asked, now.features)
	}
	for _, name := range g.members() {
		if was, is := s.base.Active[name], now.features.Bits[name].String(); was != is {
			m.Bits = append(m.Bits, study.Change{Name: name, From: was, To: is})
		}
	}
}

func (s *Session) valueReport(f Factor, now snapshot, refusal error, m *study.Moved) {
	have, has := now.values[f.Name], true
	m.Was = s.base.Values[f.Name]
	if f.Kind == KindCommand {
		have, m.Was = s.commands[f.Name], on
	} else {
		_, has = now.values[f.Name]
	}
	m.Got = have
	m.Moved = m.Got == m.Asked
	switch {
	case !has:
		m.Reason = "the driver has no such parameter"
	case refusal != nil:
		m.Reason = refusal.Error()
	case m.Moved:
	case m.Got != m.Was: // a driver rounds, or keeps within its limits
		m.Moved, m.Reason = true, "the driver made it "+m.Got
	default:
		m.Reason = "the driver keeps " + m.Got
	}
}

// compare returns every difference of a device from a state: features in the
// kernel's order, then values by name.
func compare(st *state, now snapshot) []study.Change {
	var changes []study.Change
	for _, name := range now.features.Names {
		if was, is := st.Active[name], now.features.Bits[name].String(); was != is {
			changes = append(changes, study.Change{Name: name, From: was, To: is})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.Values)) {
		if was, is := st.Values[name], now.values[name]; was != is {
			changes = append(changes, study.Change{Name: name, From: was, To: is})
		}
	}
	return changes
}
