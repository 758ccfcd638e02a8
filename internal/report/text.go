package report

import (
	"io"
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
	t := summaryTable(s, " ["+confidence(s)+" interval]")
	for _, interval := range []string{" [" + confidence(s) + "]", ""} {
		if !p.fits(0, t) {
			t = summaryTable(s, interval)
		}
	}
	p.tightTable(0, t)
}

func summaryTable(s *study.Study, interval string) table {
	common := samePrimary(s.Verdicts)
	title := metricName(common)
	if common == "" {
		title = "change"
	}
	t := table{head: []string{"factor", "cell", "acts", "right", "worth it", title + interval, ""}}
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
			if interval != "" {
				change = effectWords(m)
			}
			if common == "" {
				change = metricName(m.Name) + " " + change
			}
		}
		t.add(span{shortContrast(v), strong}, span{cells[i], plain}, shortWord(v.Acts.Answer),
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
	p.notes(v)
	p.advice(v)
	p.proof(v, len(s.Verdicts) > 1)
}

// metrics is the table of what was measured.
func (p *page) metrics(s *study.Study, v study.Verdict) {
	t := metricsTable(s, v)
	if len(t.rows) == 0 {
		return
	}
	p.tightTable(4, t)
}

// tightTable writes a table, and shortens what it says of useless intervals if
// it would not fit.
func (p *page) tightTable(indent int, t table) {
	if !p.fits(indent, t) {
		for _, r := range t.rows {
			for i := range r {
				r[i].text = strings.Replace(r[i].text, noBound, shortBound, 1)
			}
		}
	}
	p.table(indent, t)
}

func metricsTable(s *study.Study, v study.Verdict) table {
	t := table{head: []string{"", "", sides(v), "change [" + confidence(s) + " interval]", ""}}
	for _, m := range v.Worth.Metrics {
		if effectWords(m) == "" && v.Interaction {
			continue
		}
		pair := pairWords(m)
		if v.Interaction { // a difference of differences has no two sides
			pair = ""
		}
		answer := shortWord(m.Answer)
		if m.Answer == "" {
			answer.text = ""
		}
		t.add(span{rowName(m.Name), plain}, answer, span{pair, plain}, span{effectWords(m), strong}, span{blocksWords(m), plain})
	}
	return t
}

// notes says what puts the metrics in doubt, each doubt once.
func (p *page) notes(v study.Verdict) {
	for _, n := range doubtsOf(v) {
		p.flow([]span{{"    ! ", doubt}}, 6, span{n, doubt})
	}
}

// doubtsOf lists the warnings of a verdict's metrics. What several metrics have
// in common is said once, with their names.
func doubtsOf(v study.Verdict) []string {
	var texts []string
	names := map[string][]string{}
	tested, cpu := 0, 0
	for _, m := range v.Worth.Metrics {
		if !metricInfo(m.Name).Count {
			tested++
		}
		if isCPU(m.Name) {
			cpu++
		}
		for _, w := range m.Warnings {
			if names[w] == nil {
				texts = append(texts, w)
			}
			names[w] = append(names[w], metricName(m.Name))
		}
	}
	for i, text := range texts {
		n, who := len(names[text]), strings.Join(names[text], ", ")
		if n == cpu && !strings.Contains(who, metricName(study.Goodput)) {
			who = "CPU"
		}
		if (n < tested || n == 1) && !strings.Contains(text, who) {
			texts[i] = who + ": " + text
		}
	}
	return texts
}

func isCPU(metric string) bool { return strings.HasPrefix(metric, "cpu_") }

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

func (p *page) advice(v study.Verdict) {
	text := adviceWords(v)
	if text == "" {
		return
	}
	p.flow([]span{{"  => ", strong}}, 5, span{text, strong})
	if cmd := adviceCommand(v.Advice); cmd != "" {
		p.command(5, cmd)
	}
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
			t.add(span{k.Arm, plain}, span{cells[i], plain}, span{metricName(m.Name), plain},
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
	all := warnings(s)
	if len(s.Verdicts) == 0 { // verdicts say it themselves
		all = append(all, setupFacts(s)...)
	}
	all = append(append(all, environmentFacts(s)...), noiseFacts(s, true)...)
	p.facts(append(append(all, pinnedCount(s.Environment.Hosts)...), endFact(s), originFact(s)))
}

// facts writes labelled lines. A label that repeats is written once.
func (p *page) facts(facts []fact) {
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
