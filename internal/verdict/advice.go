package verdict

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// advice says what to do with the knob, relative to what it is now.
func (w *view) advice(v study.Verdict, broken side) study.Advice {
	if w.c.Interaction {
		return study.Advice{Action: study.Leave, Text: w.interactionText(v)}
	}
	decides := metric(v.Worth.Metrics, v.Worth.Primary)
	switch {
	case broken == arm:
		return w.recommend(w.c.Baseline, w.c.Arm+" is wrong"+faultIn(v))
	case broken == baseline:
		return w.recommend(w.c.Arm, w.c.Baseline+" is wrong"+faultIn(v))
	case v.Right.Answer == study.Wrong:
		return leave("both values are wrong")
	case v.Worth.Answer == study.Better:
		return w.recommend(w.c.Arm, w.because(decides))
	case v.Worth.Answer == study.Worse:
		return w.recommend(w.c.Baseline, w.because(decides))
	case v.Worth.Answer == study.Same:
		return leave("no reason to touch it: no material difference in " + title(decides))
	case v.Worth.Answer == study.Small:
		return leave("no reason to touch it: the difference is real but small: " + w.because(decides))
	default:
		return leave("not decided: " + more(decides))
	}
}

// faultIn names the fault that the answer to "is it right" tells of: " (collapse)".
func faultIn(v study.Verdict) string {
	text := v.Right.Text
	if _, after, ok := strings.Cut(text, brokenOne); ok {
		text = after
	}
	kind, _, _ := strings.Cut(text, ":")
	kind, _, _ = strings.Cut(kind, " per ")
	return " (" + kind + ")"
}

func leave(text string) study.Advice { return study.Advice{Action: study.Leave, Text: text} }

func more(m *study.Metric) string {
	switch {
	case m == nil || m.Blocks == 0:
		return "nothing was measured in both arms"
	case m.MoreBlocks == 0:
		return "how many more blocks it takes cannot be told yet"
	case m.MoreBlocks >= stats.MaxMoreBlocks:
		return "no number of blocks within reason would decide"
	}
	return "about " + unit.Plural(int64(m.MoreBlocks), "more block") + " would decide"
}

func title(m *study.Metric) string {
	if m != nil {
		for _, info := range study.Metrics {
			if info.Name == m.Name {
				return info.Title
			}
		}
	}
	return "any metric"
}

// because states the effect that decides.
func (w *view) because(m *study.Metric) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%s, %s against %s", effectText(m), w.c.Arm, w.c.Baseline)
}

// effectText gives a metric's effect with what is of use of its interval.
func effectText(m *study.Metric) string {
	low, high := m.Useful()
	return title(m) + " " + unit.Effect(m.Effect, low, high)
}

func (w *view) interactionText(v study.Verdict) string {
	m := metric(v.Worth.Metrics, v.Worth.Primary)
	switch v.Worth.Answer {
	case study.Same:
		return "the effects multiply as they are: decide on each factor by itself"
	case study.Better, study.Worse, study.Small:
		return fmt.Sprintf("together they are %s than the product of their effects, %s: decide on the factors together",
			map[string]string{study.Better: "better", study.Worse: "worse", study.Small: "a little different"}[v.Worth.Answer],
			effectText(m))
	case study.Inconclusive:
		return "not decided whether the effects multiply: " + more(m)
	default:
		return "decide on each factor by itself"
	}
}

// recommend advises a value.
func (w *view) recommend(value, why string) study.Advice {
	a := study.Advice{}
	var verb string
	present := w.present()
	switch {
	case value == "on" && present == "on":
		a.Action, verb = study.KeepOn, "keep on"
	case value == "on":
		a.Action, verb = study.TurnOn, "turn on"
	case value == "off" && present == "off":
		a.Action, verb = study.Leave, "leave off"
	case value == "off":
		a.Action, verb = study.TurnOff, "turn off"
	case value == present:
		a.Action, verb = study.Leave, fmt.Sprintf("leave %s at %s", w.c.Knob, value)
	case wayOf(w.c.Knob).kind == kindCommand:
		a.Action, verb = study.Set, "run "+w.commandOf(value)
	default:
		a.Action, verb = study.Set, fmt.Sprintf("set %s to %s", w.c.Knob, value)
	}
	if w.s.Plan.Side == rolePeer { // the device under test is that of the far end
		verb += " at the peer"
	}
	a.Text = verb + ": " + why
	if wayOf(w.c.Knob).kind == kindCommand {
		a.Command = w.commandOf(value)
		return a
	}
	device := w.device()
	a.Command = commandFor(w.c.Knob, value, device)
	a.Persistent = persistentFor(w.c.Knob, value, device)
	return a
}

// present returns the value that the knob has now: that of the side with an arm
// that does not set it. It is empty if both sides do.
func (w *view) present() string {
	for _, t := range w.terms {
		a, ok := w.s.Plan.FindArm(t.Arm)
		if !ok {
			continue
		}
		sets := false
		for _, s := range a.Settings {
			sets = sets || s.Knob == w.c.Knob
		}
		switch {
		case sets:
		case sideOf(t.Weight) == arm:
			return w.c.Arm
		default:
			return w.c.Baseline
		}
	}
	return ""
}

// device names the device that is changed.
func (w *view) device() string {
	p := w.s.Plan
	name := p.Device
	if w.s.Plan.Side == rolePeer { // the device under test is that of the far end
		name = p.PeerDev
	}
	if h := w.host(knobEnd); h != nil {
		name = firstOf(h.Device, name)
	}
	return cmp.Or(name, "DEV")
}

// commandOf returns the command of a value of a cmd knob. A value is the
// command itself, or on or off for the first and the second command of the
// factor as it was given: cmd:NAME='on-command','off-command'.
func (w *view) commandOf(value string) string {
	if value != "on" && value != "off" {
		return value
	}
	for _, f := range w.s.Plan.Factors {
		commands, ok := strings.CutPrefix(f, w.c.Knob+"=")
		if !ok {
			continue
		}
		parts := splitQuoted(commands)
		switch {
		case value == "on" && len(parts) > 0:
			return parts[0]
		case value == "off" && len(parts) > 1:
			return parts[1]
		}
	}
	return value
}

// splitQuoted splits at commas outside of single quotes, which it removes.
func splitQuoted(s string) []string {
	var parts []string
	var b strings.Builder
	quoted := false
	for _, r := range s {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ',' && !quoted:
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteRune(r)
		}
	}
	return append(parts, b.String())
}
