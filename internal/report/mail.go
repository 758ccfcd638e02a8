package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// renderMail writes what a reviewer of a patch asks for: what was compared, n,
// median and range of each arm, the effect with its interval, the evidence
// that the knob acted, the machine, and the command that does it again.
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
	if len(s.Slots) > 0 && len(s.Verdicts) > 0 {
		p.mailMethod()
	}
	p.context(s)
	p.blank()
	p.mailCommands(s)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// mailLabelled is the column at which an answer begins.
const mailLabelled = 12

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
		p.flow([]span{{"  " + a[0] + ":", plain}}, mailLabelled, span{text, plain})
	}
	if text := adviceWords(v.Advice); text != "" {
		p.flow([]span{{"  advice:", plain}}, mailLabelled, span{text, plain})
		if cmd := adviceCommand(v.Advice); cmd != "" {
			p.command(mailLabelled, cmd)
		}
	}
	p.mailMetrics(s, v)
	if len(v.Acts.Proof)+len(v.Right.Proof) > 0 {
		p.blank()
		p.proof(v.Acts, v.Right)
	}
}

// mailMetrics gives each metric of both sides over the blocks that count, and
// the effect beneath.
func (p *page) mailMetrics(s *study.Study, v study.Verdict) {
	if len(v.Worth.Metrics) == 0 {
		return
	}
	p.blank()
	t := table{head: []string{"", "", "n", "median", "min .. max"}, right: map[int]bool{2: true, 3: true, 4: true}}
	c, found := contrastOf(s, v)
	counted := countedBlocks(s)
	for _, m := range v.Worth.Metrics {
		for i, side := range []string{v.Baseline, v.Arm} {
			if v.Interaction || !found {
				break
			}
			sp := armSpread(s, c.ArmNames(i == 1), v.Cell, m.Name, counted)
			name := metricName(m.Name)
			if i == 1 {
				name = ""
			}
			t.add(nil, span{name, plain}, span{shorten(side, 16), plain}, span{unit.Count(int64(sp.n)), plain},
				span{spreadWords(sp, m, sp.median), plain}, span{spreadRange(sp, m), plain})
		}
	}
	if len(t.rows) > 0 {
		p.table(2, t)
		p.blank()
	}
	p.mailEffects(s, v)
}

// mailEffects gives the change of each metric with its interval.
func (p *page) mailEffects(s *study.Study, v study.Verdict) {
	title := "change, " + quoted(shorten(v.Arm, 16)) + " against " + quoted(shorten(v.Baseline, 16))
	if v.Interaction {
		title = "interaction"
	}
	p.say(2, span{fmt.Sprintf("%s [%s interval, alpha %g]:", title, confidence(s), s.Plan.Alpha), plain})
	t := table{}
	for _, m := range v.Worth.Metrics {
		effect := effectWords(m)
		if effect == "" {
			continue
		}
		var notes []span
		for _, w := range m.Warnings {
			notes = append(notes, span{w, plain})
		}
		t.add(notes, span{metricName(m.Name), plain}, span{effect, plain}, span{blocksWords(m), plain}, shortWord(m.Answer))
	}
	p.table(4, t)
}

func spreadWords(sp spread, m study.Metric, v float64) string {
	if sp.n == 0 {
		return "-"
	}
	return quantity(m, v)
}

func spreadRange(sp spread, m study.Metric) string {
	if sp.n == 0 {
		return "-"
	}
	return unit.Range(sp.min, sp.max, m.Unit) + perSlot(m)
}

// mailMethod says how the intervals came about, for readers who have not met
// offlab.
func (p *page) mailMethod() {
	p.say(0, span{"Intervals hold at whatever block the study stopped. n counts blocks: one slot of each arm, in random " +
		"order; arms are compared within blocks.", plain})
	p.blank()
}

// mailCommands gives what was set, in commands where there are some, and how to
// do it all again.
func (p *page) mailCommands(s *study.Study) {
	var arms []string
	for _, c := range s.Checks {
		if cmd := featureCommand(s, c); cmd != "" {
			arms = append(arms, c.Arm, cmd)
		} else if a, ok := s.Plan.FindArm(c.Arm); ok {
			arms = append(arms, c.Arm, settingsWords(a))
		}
	}
	if len(arms) > 0 {
		where := "the device"
		if s.Plan.Side == "peer" {
			where = "the peer's device"
		}
		p.say(0, span{"arms, set on " + where + " before each slot:", plain})
	}
	for i := 0; i < len(arms); i += 2 {
		p.say(2, span{shorten(arms[i], 40) + ":", plain})
		p.command(4, arms[i+1])
	}
	p.say(0, span{"reproduce:", plain})
	p.command(2, strings.TrimSpace(reproduce(s)))
}
