package verdict

import (
	"cmp"

	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/study"
)

// Make returns the verdict of every contrast of the plan, in its order, from
// what has been measured so far. It does not look at s.Verdicts.
func Make(s *study.Study) []study.Verdict {
	ix, alpha := index(s), alphaOf(s)
	verdicts := make([]study.Verdict, 0, len(s.Plan.Contrast))
	for _, c := range s.Plan.Contrast {
		verdicts = append(verdicts, one(newView(s, ix, c), alpha))
	}
	return verdicts
}

// alphaOf is the alpha of each contrast: they share that of the plan.
func alphaOf(s *study.Study) float64 {
	inPlay := 0
	for _, c := range s.Plan.Contrast {
		if !hasStuckArm(s, c) {
			inPlay++
		}
	}
	return stats.Bonferroni(cmp.Or(s.Plan.Alpha, stats.DefaultAlpha), inPlay)
}

func one(w *view, alpha float64) study.Verdict {
	c := w.c
	v := study.Verdict{
		Knob: c.Knob, Interaction: c.Interaction, Baseline: c.Baseline, Arm: c.Arm, Cell: c.Cell,
		Acts: w.acts(),
	}
	switch {
	case v.Acts.Answer == study.No && hasStuckArm(w.s, c):
		v.Advice = leave("no reason to touch it: it cannot be changed here")
		return v
	case v.Acts.Answer == study.No:
		v.Advice = leave("no reason to touch it: it does nothing here")
		return v
	case hasStuckArm(w.s, c):
		v.Advice = leave("not decided: " + v.Acts.Text)
		return v
	}
	var broken side
	v.Right, broken = w.right()
	v.Worth = w.worth(alpha)
	if v.Right.Answer == study.Wrong {
		v.Worth.Answer, v.Worth.Why = "", ""
	}
	v.Advice = w.advice(v, broken)
	return v
}

// Decided reports whether more blocks would not change the verdict: the knob
// does not act, is wrong, or the metric that decides is decided. While goodput
// is the same, that waits for CPU, which may still tell the arms apart.
func Decided(v study.Verdict) bool {
	if v.Acts.Answer == study.No || v.Right.Answer == "" || v.Right.Answer == study.Wrong {
		return true
	}
	m := metric(v.Worth.Metrics, v.Worth.Primary)
	if m == nil || !m.Decided {
		return false
	}
	if m.Name == study.Goodput && m.Answer == study.Same {
		cpu := metric(v.Worth.Metrics, study.CPUPerByte)
		return cpu == nil || cpu.Decided
	}
	return true
}

// metric returns the metric of the given name, nil if there is none.
func metric(ms []study.Metric, name string) *study.Metric {
	for i := range ms {
		if ms[i].Name == name {
			return &ms[i]
		}
	}
	return nil
}

// hasStuckArm reports whether an arm of the contrast is not what its name says,
// so that its slots are not run.
func hasStuckArm(s *study.Study, c study.Contrast) bool {
	for _, t := range c.Terms {
		if _, stuck := s.Stuck(t.Arm); stuck {
			return true
		}
	}
	return false
}
