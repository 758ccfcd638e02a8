package report

import (
	"io"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

func renderText(w io.Writer, s *study.Study, o Options) error {
	p := &page{width: o.width(), color: o.Color}
	if len(s.Verdicts) == 0 {
		p.noVerdict(s)
	}
	if len(s.Verdicts) > 1 {
		p.summary(s)
	}
	for i, v := range s.Verdicts {
		if i > 0 || len(s.Verdicts) > 1 {
			p.blank()
		}
		p.verdict(s, v)
	}
	p.blank()
	p.context(s)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// labelled is the column at which text begins that stands behind a label.
const labelled = 12

// label makes the lead of a line: indented by two, and padded to the column
// where text begins.
func label(s string) span {
	s = shorten(clean(s), labelled-4)
	return span{"  " + s + strings.Repeat(" ", labelled-2-width(s)), faint}
}

// summary is the table of several verdicts, one row each. Where the intervals
// have no room they are left to the details.
func (p *page) summary(s *study.Study) {
	p.say(0, span{unit.Plural(int64(len(s.Verdicts)), "verdict"), strong})
	t := summaryTable(s, true)
	if !p.fits(0, t) {
		t = summaryTable(s, false)
	}
	p.table(0, t)
}

func summaryTable(s *study.Study, intervals bool) table {
	common := samePrimary(s.Verdicts)
	title := metricName(common)
	if common == "" {
		title = "change"
	}
	if intervals {
		title += " [" + confidence(s) + " interval]"
	}
	t := table{head: []string{"factor", "cell", "acts", "right", "worth it", title, ""}}
	var all []study.Cell
	for _, v := range s.Verdicts {
		all = append(all, v.Cell)
	}
	cells := variedCells(all)
	if strings.Join(cells, "") == "" {
		t.head[1] = ""
	}
	for i, v := range s.Verdicts {
		change, n := "", ""
		if m, ok := primaryOf(v); ok && v.Worth.Answer != "" {
			change, n = unit.Percent(m.Effect), blocksWords(m)
			if intervals {
				change = effectWords(m)
			}
			if common == "" {
				change = metricName(m.Name) + " " + change
			}
		}
		t.add(nil, span{shortContrast(v), strong}, span{cells[i], plain}, shortWord(v.Acts.Answer),
			shortWord(v.Right.Answer), shortWord(v.Worth.Answer), span{change, plain}, span{n, plain})
	}
	return t
}

// samePrimary returns the metric that decides all verdicts that have one, or
// nothing if they differ.
func samePrimary(vs []study.Verdict) string {
	name := ""
	for _, v := range vs {
		switch p := v.Worth.Primary; {
		case p == "":
		case name == "":
			name = p
		case name != p:
			return ""
		}
	}
	return name
}

// variedCells names cells by what differs between them; where
// nothing does, there is nothing to say.
func variedCells(cells []study.Cell) []string {
	out := make([]string, len(cells))
	for _, part := range []func(study.Cell) string{
		func(c study.Cell) string { return c.Path },
		func(c study.Cell) string { return or(familyWords[c.Family], c.Family) },
		func(c study.Cell) string { return c.Load },
		func(c study.Cell) string { return or(directionWords[c.Direction], c.Direction) },
	} {
		varies := false
		for _, c := range cells {
			varies = varies || part(c) != part(cells[0])
		}
		for i, c := range cells {
			if varies {
				out[i] = strings.TrimSpace(out[i] + " " + part(c))
			}
		}
	}
	return out
}

// verdict writes one verdict: the comparison, the three answers, the figures,
// the advice and the proof.
func (p *page) verdict(s *study.Study, v study.Verdict) {
	p.say(0, span{contrastWords(v), strong}, span{" · " + cellWords(v.Cell), plain})
	answers := []struct {
		label  string
		answer span
		text   string
	}{
		{"acts", answerWord(v.Acts.Answer), actsWords(v)},
		{"right", answerWord(v.Right.Answer), rightWords(v)},
		{"worth it", answerWord(v.Worth.Answer), worthWords(s, v)},
	}
	column := 0
	for _, a := range answers {
		if w := width(a.answer.text); w <= len("inconclusive") {
			column = max(column, w)
		}
	}
	for _, a := range answers {
		pad := strings.Repeat(" ", max(0, column-width(a.answer.text))+gap)
		p.flow([]span{label(a.label), a.answer, {pad, plain}}, labelled+column+gap, span{a.text, plain})
	}
	p.metrics(s, v)
	p.advice(v.Advice)
	p.proof(v.Acts, v.Right)
}

// metrics is the table of what was measured.
func (p *page) metrics(s *study.Study, v study.Verdict) {
	var t table
	t.head = []string{"", "", sides(v), "change [" + confidence(s) + " interval]", ""}
	for _, m := range v.Worth.Metrics {
		var notes []span
		for _, w := range m.Warnings {
			notes = append(notes, span{w, doubt})
		}
		pair := pairWords(m)
		if v.Interaction { // a difference of differences has no two sides
			pair = ""
		}
		answer := shortWord(m.Answer)
		if m.Answer == "" {
			answer.text = ""
		}
		t.add(notes, span{metricName(m.Name), plain}, answer, span{pair, plain},
			span{effectWords(m), strong}, span{blocksWords(m), plain})
	}
	if len(t.rows) > 0 {
		p.table(4, t)
	}
}

// sides names the two values whose figures a table compares.
func sides(v study.Verdict) string {
	if v.Interaction {
		return ""
	}
	if width(v.Baseline) > 10 || width(v.Arm) > 10 {
		return "baseline -> arm"
	}
	return quoted(v.Baseline) + " -> " + quoted(v.Arm)
}

func (p *page) advice(a study.Advice) {
	text := adviceWords(a)
	if text == "" {
		return
	}
	p.flow([]span{{"  => ", strong}}, 5, span{text, strong})
	if cmd := adviceCommand(a); cmd != "" {
		p.command(5, cmd)
	}
}

// proof lists the proofs of answers, each with its layer and source. What an
// answer has said already is not said again, and counters that stood still are
// gathered in one line.
func (p *page) proof(answers ...study.Answer) {
	var still, sources []string
	title := "proof"
	write := func(layer, text, source string) {
		const column = 10
		layer = shorten(clean(layer), column-1)
		lead := span{layer + strings.Repeat(" ", column-width(layer)), faint}
		p.flow([]span{label(title), lead}, labelled+column, span{text + " ", plain}, span{bracket(source), faint})
		title = ""
	}
	for _, a := range answers {
		for _, pr := range a.Proof {
			switch {
			case pr.Layer == study.LayerCounters && pr.Baseline == 0.0 && pr.Arm == 0.0:
				name, _, _ := strings.Cut(pr.Text, ":")
				still, sources = append(still, name), append(sources, pr.Source)
			case pr.Text == a.Text && pr.Text != "":
				write(pr.Layer, "as said above", pr.Source)
			default:
				write(pr.Layer, proofWords(pr), pr.Source)
			}
		}
	}
	if len(still) > 0 {
		write(study.LayerCounters, "0 in both arms: "+strings.Join(still, ", "), joinSources(sources))
	}
}

// joinSources lists sources, and what begins the same way only once: "both
// ends: a" and "both ends: b" are "both ends: a; b".
func joinSources(sources []string) string {
	var out []string
	last := ""
	for _, s := range sources {
		who, what, found := strings.Cut(s, ": ")
		if found && who == last {
			s = what
		} else if found {
			last = who
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

func bracket(source string) string {
	if source == "" {
		return ""
	}
	return "[" + source + "]"
}

// noVerdict says why there is nothing to say, and what was measured all the
// same.
func (p *page) noVerdict(s *study.Study) {
	p.say(0, span{"no verdict", strong}, span{": " + or(endWords[s.Ended.Why], s.Ended.Why) + parenthesis(s.Ended.Text), plain})
	if s.Ended.Why == study.EndInterrupted || s.Ended.Why == "" {
		p.say(2, span{"what was measured is kept: offlab run --resume FILE goes on from here", plain})
	}
	keys := s.Plan.BlockSlots()
	var all []study.Cell
	for _, k := range keys {
		all = append(all, k.Cell)
	}
	cells := variedCells(all)
	t := table{head: []string{"arm", "", "", "median", "min .. max", ""}}
	for i, k := range keys {
		for _, m := range study.Metrics {
			sp := armSpread(s, []string{k.Arm}, k.Cell, m.Name, nil)
			if sp.n == 0 || m.Count {
				continue
			}
			t.add(nil, span{k.Arm, plain}, span{cells[i], plain}, span{metricName(m.Name), plain},
				span{unit.Value(sp.median, m.Unit), strong}, span{unit.Range(sp.min, sp.max, m.Unit), plain},
				span{"n=" + unit.Plural(int64(sp.n), "slot"), plain})
		}
	}
	if len(t.rows) > 0 {
		p.say(0, span{"measured so far", strong})
		if len(cells) > 0 && cells[0] == "" {
			p.say(2, span{cellWords(keys[0].Cell), plain})
		}
		p.table(2, t)
	}
}

// context says what all verdicts rest on, what puts them in doubt first.
func (p *page) context(s *study.Study) {
	p.facts("", warnings(s))
	p.facts("setting up", setupFacts(s))
	p.facts("measured on", append(environmentFacts(s), noiseFacts(s)...))
	p.facts("", []fact{endFact(s), originFact(s)})
}

// facts writes labelled lines under a heading. A label that repeats is written
// once.
func (p *page) facts(heading string, facts []fact) {
	if heading != "" && len(facts) > 0 {
		p.say(0, span{heading, strong})
	}
	column := labelled
	for _, f := range facts {
		column = max(column, min(width(clean(f.label))+4, p.width/3))
	}
	last := ""
	for _, f := range facts {
		name := "  " + f.label
		if f.label == last {
			name = ""
		}
		last = f.label
		p.flow([]span{{p.shorten(name, column-gap), faint}}, column, span{f.text, f.style})
	}
}
