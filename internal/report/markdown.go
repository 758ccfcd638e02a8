package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// A mdPage writes Markdown as GitHub, GitLab and most wikis read it.
type mdPage struct{ b strings.Builder }

func (p *mdPage) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// row writes a table row of cells that are Markdown already.
func (p *mdPage) row(cells ...string) { p.printf("| %s |\n", strings.Join(cells, " | ")) }

// head writes the head of a table.
func (p *mdPage) head(cells ...string) {
	p.b.WriteByte('\n')
	p.row(cells...)
	p.printf("|%s\n", strings.Repeat(" --- |", len(cells)))
}

func renderMarkdown(w io.Writer, s *study.Study, _ Options) error {
	p := &mdPage{}
	switch len(s.Verdicts) {
	case 0:
		p.noVerdict(s)
	case 1:
	default:
		p.summary(s)
	}
	for i, v := range s.Verdicts {
		if i > 0 || len(s.Verdicts) > 1 {
			p.b.WriteByte('\n')
		}
		p.verdict(s, v)
	}
	p.context(s)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func bold(s span) string {
	if s.text == "-" || s.text == "" {
		return s.text
	}
	return "**" + mdText(s.text) + "**"
}

func (p *mdPage) summary(s *study.Study) {
	p.printf("## offlab: %s\n", unit.Plural(int64(len(s.Verdicts)), "verdict"))
	p.head("factor", "cell", "acts", "right", "worth it", "metric", "change ["+confidence(s)+" interval]", "n")
	for _, v := range s.Verdicts {
		name, change, n := "", "", ""
		if m, ok := primaryOf(v); ok && v.Worth.Answer != "" {
			name, change, n = metricName(m.Name), effectWords(m), unit.Plural(int64(m.Blocks), "block")
		}
		p.row(mdText(contrastWords(v)), mdText(cellWords(v.Cell)), bold(answerWord(v.Acts.Answer)), bold(answerWord(v.Right.Answer)),
			bold(answerWord(v.Worth.Answer)), mdText(name), mdText(change), n)
	}
}

func (p *mdPage) verdict(s *study.Study, v study.Verdict) {
	p.printf("## %s\n\nCell: %s\n", mdText(contrastWords(v)), mdText(cellWords(v.Cell)))
	p.head("question", "answer", "why")
	p.row("acts", bold(answerWord(v.Acts.Answer)), mdText(actsWords(v)))
	p.row("right", bold(answerWord(v.Right.Answer)), mdText(rightWords(v)))
	p.row("worth it", bold(answerWord(v.Worth.Answer)), mdText(worthWords(s, v)))
	p.metrics(s, v)
	if text := adviceWords(v); text != "" {
		p.printf("\n**Advice:** %s\n", mdText(text))
		p.code(adviceCommand(v.Advice))
		if v.Advice.Persistent != "" && adviceCommand(v.Advice) != "" {
			p.printf("\nTo keep it over a reboot:\n")
			p.code(v.Advice.Persistent)
		}
	}
	if len(v.Acts.Proof)+len(v.Right.Proof) > 0 {
		p.head("proof", "layer", mdText(v.Baseline), mdText(v.Arm), "what", "source")
		p.proofs("acts", v.Acts)
		p.proofs("right", v.Right)
	}
}

func (p *mdPage) metrics(s *study.Study, v study.Verdict) {
	if len(v.Worth.Metrics) == 0 {
		return
	}
	p.head("metric", mdText(v.Baseline), mdText(v.Arm), "change ["+confidence(s)+" interval]", "n", "answer")
	for _, m := range v.Worth.Metrics {
		base, arm := quantity(m, m.Baseline), quantity(m, m.Arm)
		if v.Interaction {
			base, arm = "", ""
		}
		answer := strings.Join(append([]string{answerWord(m.Answer).text}, m.Warnings...), "; warning: ")
		p.row(mdText(metricName(m.Name)), mdText(base), mdText(arm), mdText(effectWords(m)), unit.Plural(int64(m.Blocks), "block"), mdText(answer))
	}
}

func (p *mdPage) proofs(question string, a study.Answer) {
	for _, pr := range a.Proof {
		base, arm := "", ""
		if pr.Baseline != nil || pr.Arm != nil {
			base, arm = proofPair(pr)
		}
		p.row(question, mdText(pr.Layer), mdText(base), mdText(arm), mdText(pr.Text), mdCode(pr.Source))
	}
}

// code writes commands or lines of a file as a block of their own. The fence
// is longer than any run of the same mark inside.
func (p *mdPage) code(text string) {
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(clean(line), " ")
	}
	text = strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	p.printf("\n%s\n%s\n%s\n", fence, text, fence)
}

func (p *mdPage) noVerdict(s *study.Study) {
	p.printf("## offlab: no verdict\n\nEnded: %s\n", mdText(or(endWords[s.Ended.Why], s.Ended.Why)+parenthesis(s.Ended.Text)))
	p.head("arm", "cell", "metric", "median", "min .. max", "n")
	for _, k := range s.Plan.BlockSlots() {
		for _, m := range study.Metrics {
			if sp := armSpread(s, []string{k.Arm}, k.Cell, m.Name, nil); sp.n > 0 && !m.Count {
				p.row(mdText(k.Arm), mdText(cellWords(k.Cell)), mdText(metricName(m.Name)), mdText(unit.Value(sp.median, m.Unit)),
					mdText(unit.Range(sp.min, sp.max, m.Unit)), unit.Plural(int64(sp.n), "slot"))
			}
		}
	}
}

func (p *mdPage) context(s *study.Study) {
	p.printf("\n### What it rests on\n")
	p.head("", "")
	for _, f := range warnings(s) {
		p.row("**"+f.label+"**", mdText(f.text))
	}
	for _, f := range setupFacts(s) {
		p.row("setting up "+mdCode(f.label), mdText(f.text))
	}
	for _, f := range append(append(environmentFacts(s), noiseFacts(s, false)...), pinnedFacts(s.Environment.Hosts)...) {
		p.row(f.label, mdText(f.text))
	}
	for _, f := range []fact{endFact(s), originFact(s)} {
		p.row(f.label, mdText(f.text))
	}
	p.printf("\nReproduce:\n")
	p.code(reproduce(s))
}
