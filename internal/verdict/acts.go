package verdict

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// Limits of a change of a ratio of counters.
const (
	changed   = 1.3  // and more: it changed
	unchanged = 1.15 // and less: it did not
	fewBlocks = 2    // that a "no" takes: one slot may be odd
)

// acts answers whether the knob does anything.
func (w *view) acts() study.Answer {
	proof := w.featureProof()
	if a, stuck := w.stuck(); stuck {
		a.Proof = append(a.Proof, proof...)
		return a
	}
	a := study.Answer{Answer: study.CannotTell, Proof: proof}
	if w.c.Interaction {
		a.Text = "an interaction has no counter of its own; its factors have verdicts of their own"
		return a
	}
	found := promisesOf(w.c.Knob)
	if len(found) == 0 {
		a.Text = w.unpromised()
		return a
	}
	for _, p := range found {
		w.keep(p, &a)
	}
	return a
}

// stuck answers for a contrast with an arm that could not be set up. If it is
// another knob that did not move, nothing is known about this one.
func (w *view) stuck() (study.Answer, bool) {
	var text, otherText string
	for _, t := range w.terms {
		for _, c := range w.s.Checks {
			if c.Arm != t.Arm {
				continue
			}
			for _, k := range c.Knobs {
				switch {
				case k.Moved:
				case w.concerns(k):
					text = firstOf(text, stays(k))
				default:
					otherText = firstOf(otherText, fmt.Sprintf("not measured: arm %s cannot be set up: %s", c.Arm, stays(k)))
				}
			}
		}
	}
	switch {
	case text != "":
		return study.Answer{Answer: study.No, Text: text}, true
	case otherText != "":
		return study.Answer{Answer: study.CannotTell, Text: otherText}, true
	default:
		return study.Answer{}, false
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func stays(k study.Moved) string {
	return fmt.Sprintf("%s stays %s: %s", k.Knob, firstOf(k.Got, "as it was"), firstOf(k.Reason, "it did not move"))
}

// concerns reports whether a setting is of the knob that the contrast is about.
func (w *view) concerns(k study.Moved) bool {
	return w.c.Interaction || k.Knob == w.c.Knob || isOneOf(k.Knob, partsOf(w.c.Knob))
}

// unpromised says why a knob without a promise cannot be proved to act.
func (w *view) unpromised() string {
	switch wayOf(w.c.Knob).kind {
	case kindCommand:
		return "a command's effect cannot be read back"
	case kindFeature:
		return "the feature bits changed; no counter shows what they do"
	case kindCoalesce, kindRing, kindLink, kindSysctl:
		return "the value was read back; no counter shows what it does"
	default:
		return ""
	}
}

// keep looks whether a promise is kept and notes it in the answer. A yes
// stands, a no gives way to a yes.
func (w *view) keep(p promise, a *study.Answer) {
	role := w.sender()
	if p.end == receiving {
		role = other(role)
	}
	switch {
	case p.family != "" && p.family != w.c.Cell.Family:
		a.Text = firstOf(a.Text, fmt.Sprintf("%s is about %s, and this is %s", w.c.Knob, p.family, w.c.Cell.Family))
		return
	case p.atEnd && role != knobEnd:
		a.Text = firstOf(a.Text, fmt.Sprintf("%s acts on what its end %s, and here the %s does that",
			w.c.Knob, map[end]string{sending: "sends", receiving: "receives"}[p.end], role))
		return
	}
	concluded := false
	for _, r := range p.ratios {
		answer, proof, ok := w.ask(p, r, role)
		if !ok {
			continue
		}
		if !slices.Contains(a.Proof, proof) { // sg+tso promises the same twice
			a.Proof = append(a.Proof, proof)
		}
		if r.shown || concluded {
			continue
		}
		concluded = answer != study.CannotTell
		switch {
		case a.Answer == study.Yes || a.Answer == study.No && answer != study.Yes:
		case concluded || a.Text == "":
			a.Answer, a.Text = answer, proof.Text
		}
	}
	a.Text = firstOf(a.Text, "the counters that would show it were not measured")
}

// ask reads one ratio in both arms.
func (w *view) ask(p promise, r ratio, role string) (answer string, proof study.Proof, ok bool) {
	r = r.of(w.c.Cell.Family)
	t := w.table(positive(r.read(role)))
	if len(t.rows) == 0 {
		return "", proof, false
	}
	base, treated := t.sides()
	up := w.direction()
	change := math.Exp(bounded(up * stats.Median(t.ratios())))
	answer, why := w.judge(p, r, role, judged{change, math.Max(base, treated), len(t.rows)})
	text := fmt.Sprintf("%s %s: %s", r.unit, r.means, pair(base, treated))
	if answer == study.No || change < unchanged && change > 1/unchanged {
		text = "both arms " + fmt.Sprintf(r.both, short(treated))
	}
	if why != "" {
		text += ": " + why
	}
	return answer, study.Proof{
		Layer: study.LayerCounters, Source: r.source(role), Baseline: base, Arm: treated, Text: text,
	}, true
}

// judged is what a ratio shows: the factor by which it rose in the promised
// direction, the larger of its two values, and the number of blocks.
type judged struct {
	change, level float64
	blocks        int
}

func (w *view) judge(p promise, r ratio, role string, j judged) (answer, why string) {
	same := j.change < unchanged && j.change > 1/unchanged
	flat := r.unit != "bytes" && j.level < unchanged
	switch {
	case r.shown:
		return study.CannotTell, ""
	case j.change > changed:
		return study.Yes, ""
	case j.change < 1/changed:
		return study.CannotTell, "it moved against what the knob promises"
	case !same:
		return study.CannotTell, "too small a change to tell"
	case p.scales && !w.farApart():
		return study.CannotTell, "the two values are too close to tell"
	case j.blocks < fewBlocks:
		return study.CannotTell, "one block is too few to tell"
	case flat:
		return answerOf(r.flat), r.flatText
	case r.maskedBy != "" && w.featureOn(role, r.maskedBy):
		return study.CannotTell, r.maskedBy + " aggregates in both arms"
	default:
		return answerOf(r.same), r.sameText
	}
}

func answerOf(f finding) string {
	if f == doesNotAct {
		return study.No
	}
	return study.CannotTell
}

// direction returns +1 if the arm has the knob on, or its larger value, and −1
// if the baseline has.
func (w *view) direction() float64 {
	base, errBase := strconv.ParseFloat(w.c.Baseline, 64)
	treated, errTreated := strconv.ParseFloat(w.c.Arm, 64)
	switch {
	case w.c.Arm == "off" || errBase == nil && errTreated == nil && treated < base:
		return -1
	default:
		return 1
	}
}

// farApart reports whether two values differ so much that a ratio which is
// proportional to them would change.
func (w *view) farApart() bool {
	base, errBase := strconv.ParseFloat(w.c.Baseline, 64)
	treated, errTreated := strconv.ParseFloat(w.c.Arm, 64)
	if errBase != nil || errTreated != nil || !(base > 0) || !(treated > 0) {
		return false
	}
	return max(base, treated)/min(base, treated) > changed
}

// featureOn reports whether a feature of an end is on, or not known to be off.
func (w *view) featureOn(role, name string) bool {
	h := w.host(role)
	return h == nil || !strings.HasPrefix(h.Features[name], "off")
}

// of fills in the counters of a family.
func (r ratio) of(family string) ratio {
	names := strings.NewReplacer("{ip}", "Ip", "{ext}", "IpExt")
	if family == "ipv6" {
		names = strings.NewReplacer("{ip}", "Ip6", "{ext}", "Ip6")
	}
	r.over = slices.Clone(r.over)
	for i := range r.over {
		r.over[i] = names.Replace(r.over[i])
	}
	r.label, r.under = names.Replace(r.label), names.Replace(r.under)
	return r
}

// read returns the ratio of a slot. A counter that is not in the evidence did
// not rise; a ratio without any of its counters, or over nothing, was not
// measured.
func (r ratio) read(role string) figure {
	return func(s *study.Slot) (float64, bool) {
		over, under := 0.0, s.Evidence[role+"."+r.under]
		for _, name := range r.over {
			over += s.Evidence[role+"."+name]
		}
		return over / under, over > 0 && under > 0
	}
}

// sources are where counters come from, by the first word of their name.
var sources = map[string]string{
	"Tcp": "/proc/net/snmp", "Ip": "/proc/net/snmp", "Udp": "/proc/net/snmp",
	"TcpExt": "/proc/net/netstat", "IpExt": "/proc/net/netstat",
	"Ip6": "/proc/net/snmp6", "Udp6": "/proc/net/snmp6",
	"link": "rtnetlink", "ethtool": "ethtool -S", "qstats": "netdev-genl",
	"nic": "soft NIC", "wire": "every frame on the wire",
}

func sourceOf(counter string) string {
	first, _, _ := strings.Cut(counter, ".")
	return firstOf(sources[first], "evidence")
}

func (r ratio) source(role string) string {
	return fmt.Sprintf("%s: %s (%s) / %s (%s)", role, firstOf(r.label, r.over[0]), sourceOf(r.over[0]), r.under, sourceOf(r.under))
}

// short writes a mean count: one decimal is enough below 100.
func short(x float64) string {
	if x < 99.95 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return unit.Number(x)
}

func pair(a, b float64) string { return short(a) + " -> " + short(b) }
