package report

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// An htmlPage writes a page that needs nothing but itself. It is well-formed XML
// too, so that a test can read it strictly.
type htmlPage struct{ b strings.Builder }

// safe is text that is markup already; every other text is escaped.
type safe string

// printf writes markup. Strings among the arguments are neutralised and escaped
// for text and for attributes in double quotes.
func (p *htmlPage) printf(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case safe:
			args[i] = string(a)
		case string:
			args[i] = html.EscapeString(clean(a))
		}
	}
	fmt.Fprintf(&p.b, format, args...)
}

// htmlHead forbids the page to load or run anything, whatever it might hold.
const htmlHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>%s</title>
<style>
:root { color-scheme: light dark; --ink: #1a1c20; --faint: #5f6670; --line: #d5d9de; --page: #fff; --good: #1a7f37; --bad: #c0232c; --doubt: #8a5a00; --mark: #0b62c4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --faint: #9aa2ad; --line: #3a4048; --page: #14161a; --good: #4cc36a; --bad: #ff6b70; --doubt: #e0a526; --mark: #6ab0ff; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1, h2 { font-size: 1.5rem; margin: 2rem 0 .25rem; line-height: 1.25; overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
.cell, th, figcaption, .label { color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%%; margin: .75rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 500; }
.figures td { font-variant-numeric: tabular-nums; }
.label { white-space: nowrap; width: 7rem; }
.good, .bad, .doubt, .strong { font-weight: 700; }
.good { color: var(--good); } .bad { color: var(--bad); } .doubt { color: var(--doubt); }
.advice { font-size: 1.1rem; font-weight: 600; }
pre, code { font: .875rem/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: 4px; }
figure { margin: 1rem 0; }
svg { width: 100%%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--faint); }
.axis { stroke: var(--line); } .zero { stroke: var(--faint); } .rope { fill: var(--faint); fill-opacity: .13; }
.interval { fill: var(--mark); fill-opacity: .18; stroke: var(--mark); stroke-opacity: .5; }
.final { stroke: var(--mark); stroke-width: 2; } .effect { fill: none; stroke: var(--mark); stroke-width: 2; } .block { fill: var(--ink); fill-opacity: .75; }
</style>
</head>
<body>
<main>
`

// renderHTML writes the study as a page of its own: the answers, how the
// interval shrank, the figures, the proof and the machine.
func renderHTML(w io.Writer, s *study.Study, _ Options) error {
	p := &htmlPage{}
	title := "offlab: " + unit.Plural(int64(len(s.Verdicts)), "verdict")
	if len(s.Verdicts) == 1 {
		title = "offlab: " + contrastWords(s.Verdicts[0])
	}
	p.printf(htmlHead, title)
	switch len(s.Verdicts) {
	case 0:
		p.noVerdict(s)
	case 1:
	default:
		p.summary(s)
	}
	for i, v := range s.Verdicts {
		p.verdict(s, v, i)
	}
	p.context(s)
	p.b.WriteString("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, p.b.String())
	return err
}

var htmlClass = [...]string{plain: "plain", strong: "strong", faint: "label", good: "good", bad: "bad", doubt: "doubt"}

// badge writes an answer in the colour of what it means.
func badge(s span) safe {
	return safe(`<span class="` + htmlClass[s.style] + `">` + html.EscapeString(clean(s.text)) + `</span>`)
}

// table begins a table that scrolls by itself on a narrow screen.
func (p *htmlPage) table(head ...string) {
	p.printf("<div class=\"wide\"><table class=\"figures\">\n<tr>")
	for _, h := range head {
		p.printf("<th>%s</th>", h)
	}
	p.printf("</tr>\n")
}

func (p *htmlPage) row(cells ...any) {
	p.printf("<tr>"+strings.Repeat("<td>%s</td>", len(cells))+"</tr>\n", cells...)
}

func (p *htmlPage) end() { p.printf("</table></div>\n") }

func (p *htmlPage) summary(s *study.Study) {
	p.printf("<h1>offlab: %s</h1>\n", unit.Plural(int64(len(s.Verdicts)), "verdict"))
	p.table("factor", "cell", "acts", "right", "worth it", "metric", "change ["+confidence(s)+" interval]", "n")
	for i, v := range s.Verdicts {
		name, change, n := "", "", ""
		if m, ok := primaryOf(v); ok && v.Worth.Answer != "" {
			name, change, n = metricName(m.Name), effectWords(m), unit.Plural(int64(m.Blocks), "block")
		}
		link := safe(fmt.Sprintf("<a href=\"#v%d\">%s</a>", i, html.EscapeString(clean(contrastWords(v)))))
		p.row(link, cellWords(v.Cell), badge(answerWord(v.Acts.Answer)), badge(answerWord(v.Right.Answer)),
			badge(answerWord(v.Worth.Answer)), name, change, n)
	}
	p.end()
}

func (p *htmlPage) verdict(s *study.Study, v study.Verdict, i int) {
	p.printf("<h2 id=\"v%d\">%s</h2>\n<p class=\"cell\">%s</p>\n", i, contrastWords(v), cellWords(v.Cell))
	p.printf("<table>\n")
	for _, a := range []struct {
		question string
		answer   span
		text     string
	}{
		{"acts", answerWord(v.Acts.Answer), actsWords(v)},
		{"right", answerWord(v.Right.Answer), rightWords(v)},
		{"worth it", answerWord(v.Worth.Answer), worthWords(s, v)},
	} {
		p.printf("<tr><td class=\"label\">%s</td><td>%s</td><td>%s</td></tr>\n", a.question, badge(a.answer), a.text)
	}
	p.printf("</table>\n")
	if text := adviceWords(v); text != "" {
		p.printf("<p class=\"advice\">%s</p>\n", text)
		p.code(adviceCommand(v.Advice))
		if v.Advice.Persistent != "" && adviceCommand(v.Advice) != "" {
			p.printf("<p>To keep it over a reboot:</p>\n")
			p.code(v.Advice.Persistent)
		}
	}
	p.chart(s, v)
	p.metrics(s, v)
	p.proofs(v)
}

func (p *htmlPage) metrics(s *study.Study, v study.Verdict) {
	if len(v.Worth.Metrics) == 0 {
		return
	}
	p.table("metric", v.Baseline, v.Arm, "change ["+confidence(s)+" interval]", "n", "answer")
	for _, m := range v.Worth.Metrics {
		base, arm := quantity(m, m.Baseline), quantity(m, m.Arm)
		if v.Interaction {
			base, arm = "", ""
		}
		p.row(metricName(m.Name), base, arm, effectWords(m), unit.Plural(int64(m.Blocks), "block"), badge(answerWord(m.Answer)))
	}
	p.end()
	for _, d := range doubtsOf(v) {
		p.printf("<p>%s %s</p>\n", badge(span{"!", doubt}), d)
	}
}

func (p *htmlPage) proofs(v study.Verdict) {
	if len(v.Acts.Proof)+len(v.Right.Proof) == 0 {
		return
	}
	p.printf("<h3>Proof</h3>\n")
	p.table("of", "layer", v.Baseline, v.Arm, "what", "source")
	for i, a := range []study.Answer{v.Acts, v.Right} {
		for _, pr := range a.Proof {
			base, arm := "", ""
			if pr.Baseline != nil || pr.Arm != nil {
				base, arm = proofPair(pr)
			}
			p.row([]string{"acts", "right"}[i], pr.Layer, base, arm, pr.Text, pr.Source)
		}
	}
	p.end()
}

// code writes commands or lines of a file, each line as it is.
func (p *htmlPage) code(text string) {
	if text == "" {
		return
	}
	p.printf("<pre>")
	for line := range strings.SplitSeq(text, "\n") {
		p.printf("%s\n", strings.TrimRight(line, " \r"))
	}
	p.printf("</pre>\n")
}

func (p *htmlPage) noVerdict(s *study.Study) {
	p.printf("<h1>offlab: no verdict</h1>\n<p>Ended: %s</p>\n", or(endWords[s.Ended.Why], s.Ended.Why)+parenthesis(s.Ended.Text))
	p.table("arm", "cell", "metric", "median", "min .. max", "n")
	for _, k := range s.Plan.BlockSlots() {
		for _, m := range study.Metrics {
			if sp := armSpread(s, []string{k.Arm}, k.Cell, m.Name, nil); sp.n > 0 && !m.Count {
				p.row(k.Arm, cellWords(k.Cell), metricName(m.Name), unit.Value(sp.median, m.Unit),
					unit.Range(sp.min, sp.max, m.Unit), unit.Plural(int64(sp.n), "slot"))
			}
		}
	}
	p.end()
}

func (p *htmlPage) context(s *study.Study) {
	p.printf("<h3>What it rests on</h3>\n<table>\n")
	row := func(label string, f fact) {
		text := span{f.text, f.style}
		if f.style == faint {
			text.style = plain
		}
		p.printf("<tr><td class=\"label\">%s</td><td>%s</td></tr>\n", label, badge(text))
	}
	for _, f := range warnings(s) {
		row(f.label, f)
	}
	for _, f := range setupFacts(s) {
		row("setting up", fact{"", f.label + ": " + f.text, f.style})
	}
	facts := append(append(environmentFacts(s), noiseFacts(s, false)...), pinnedFacts(s.Environment.Hosts)...)
	for _, f := range append(facts, endFact(s), originFact(s)) {
		row(f.label, f)
	}
	p.printf("</table>\n<h3>Do it again</h3>\n")
	p.code(strings.Join(append(commandsOf(s), reproduce(s)), "\n"))
}
