package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
	"github.com/offlab/offlab/internal/verdict"
)

// renderMail writes what a reviewer of a patch asks for: what was compared, n,
// medians, the effect with its interval and alpha, the evidence that the knob
// acted, the machine, and the commands that do it again. A block of one verdict
// is read without scrolling.
func renderMail(w io.Writer, s *study.Study, o Options) error {
	p := &page{width: min(o.width(), mailWidth), ascii: true}
	if len(s.Verdicts) == 0 {
		p.noVerdict(s)
		p.blank()
	}
	if len(s.Verdicts) > 1 {
		p.summary(s)
		p.blank()
	}
	for _, v := range s.Verdicts {
		p.mailVerdict(s, v)
		p.blank()
	}
	p.mailContext(s)
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *page) mailVerdict(s *study.Study, v study.Verdict) {
	p.say(0, span{contrastWords(v) + " (" + cellWords(v.Cell) + ")", plain})
	for _, a := range [][3]string{
		{"acts", answerWord(v.Acts.Answer).text, actsWords(v)},
		{"right", answerWord(v.Right.Answer).text, rightWords(v)},
		{"worth it", answerWord(v.Worth.Answer).text, worthWords(s, v)},
	} {
		text := a[1] + " - " + a[2]
		if a[1] == "-" {
			text = a[2]
		}
		p.flow([]span{label(a[0])}, labelled, span{text, plain})
	}
	if text := adviceWords(v); text != "" {
		p.flow([]span{label("advice")}, labelled, span{text, plain})
		if cmd := adviceCommand(v.Advice); cmd != "" {
			p.command(labelled, cmd)
		}
	}
	p.mailMetrics(s, v)
	p.notes(v)
	p.proof(v, true)
}

// mailMetrics gives the change of each metric with its interval, and how far the
// slots of the one that decides lie apart.
func (p *page) mailMetrics(s *study.Study, v study.Verdict) {
	t := table{head: []string{"median", sides(v), "change [" + confidence(s) + " interval]", ""}}
	for _, m := range v.Worth.Metrics {
		if effectWords(m) == "" && v.Interaction {
			continue
		}
		pair := pairWords(m)
		if v.Interaction { // a difference of differences has no two sides
			pair = ""
		}
		t.add(span{rowName(m.Name), plain}, span{pair, plain}, span{effectWords(m), plain}, span{blocksWords(m), plain})
	}
	if len(t.rows) == 0 {
		return
	}
	p.tightTable(4, t)
	m, ok := primaryOf(v)
	base, arm := sideSpreads(s, v, m)
	if ok && base.n > 0 && arm.n > 0 {
		low, high := unit.Range(base.min, base.max, m.Unit), unit.Range(arm.min, arm.max, m.Unit)
		if i := strings.LastIndexByte(high, ' '); strings.Count(low+high, "/s") == 2 && strings.HasSuffix(low, high[i:]) {
			low = strings.TrimSuffix(low, high[i:])
		}
		text := metricName(m.Name) + " min .. max: " + quoted(v.Baseline) + " " + low + ", " + quoted(v.Arm) + " " + high
		p.flow([]span{{"    ", plain}}, 6, span{text, plain})
	}
}

// sideSpreads describes both sides of a verdict over the blocks that count.
func sideSpreads(s *study.Study, v study.Verdict, m study.Metric) (base, arm spread) {
	c, found := s.ContrastOf(v)
	if v.Interaction || !found {
		return spread{}, spread{}
	}
	counted := countedBlocks(s)
	return armSpread(s, c.ArmNames(false), v.Cell, m.Name, counted), armSpread(s, c.ArmNames(true), v.Cell, m.Name, counted)
}

// mailContext says what all verdicts rest on and how to do it again.
func (p *page) mailContext(s *study.Study) {
	facts := append(warnings(s), environmentFacts(s)...)
	if len(s.Verdicts) == 0 {
		facts = append(facts, setupFacts(s)...)
	}
	p.facts(append(append(facts, noiseFacts(s, true)...), endFact(s), originFact(s)))
	if len(s.Slots) > 0 && len(s.Verdicts) > 0 {
		shared := ""
		if n := len(s.Plan.Contrast); n > 1 {
			shared = fmt.Sprintf(", shared by %d comparisons,", n)
		}
		p.flow([]span{label("n")}, labelled, span{fmt.Sprintf("blocks, arms in random order; alpha %g%s holds at any stop", s.Plan.Alpha, shared), plain})
	}
	var set []fact
	for _, c := range commandsOf(s) {
		set = append(set, fact{"set", c, plain})
	}
	p.facts(set)
	again := strings.TrimSpace(reproduce(s))
	if labelled+width(p.text(again)) <= p.width {
		p.flow([]span{label("again")}, labelled, span{again, plain})
		return
	}
	p.flow([]span{label("again")}, labelled)
	p.command(4, again)
}

// commandsOf lists the commands that the values of the verdicts' knobs stand
// for, each once: "ethtool -K eth0 tso on # as found".
func commandsOf(s *study.Study) []string {
	var out []string
	for _, v := range s.Verdicts {
		if v.Interaction {
			continue
		}
		c, _ := s.ContrastOf(v)
		for i, value := range []string{v.Baseline, v.Arm} {
			cmd := verdict.Command(v.Knob, value, deviceName(s))
			if cmd == "" {
				continue
			}
			var remarks []string
			if s.Plan.Side == "peer" {
				remarks = append(remarks, "at the peer")
			}
			if slices.Equal(c.ArmNames(i == 1), []string{study.Current}) {
				remarks = append(remarks, "as found")
			}
			cmd += after(" # ", strings.Join(remarks, ", "))
			if !slices.Contains(out, cmd) {
				out = append(out, cmd)
			}
		}
	}
	return out
}
