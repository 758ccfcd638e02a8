package verdict

import (
	"strings"

	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/study"
)

// A Point is a comparison as it stood after one more block.
type Point struct {
	Block    int     // of the study, from 0
	LogRatio float64 // of this block: ln(arm / baseline)
	Looked   bool    // there is an effect and its interval
	Effect   float64 // of all blocks so far, a fraction
	Low      *float64
	High     *float64
}

// maxLooks bounds the intervals that a trace has: of a long study only some
// blocks have one, the last always.
const maxLooks = 200

// Trace returns how a metric of a verdict came about, block by block. There
// is none of a count, and of a verdict that is not of this study.
func Trace(s *study.Study, v study.Verdict, name string) []Point {
	info := infoOfMetric(name)
	c, ok := s.ContrastOf(v)
	if !ok || info.Name == "" || info.Count {
		return nil
	}
	w := newView(s, index(s), c)
	t := w.table(positive(metricOf(name)))
	ratios := t.ratios()
	step := len(ratios)/maxLooks + 1
	points := make([]Point, len(ratios))
	for i, d := range ratios {
		points[i] = Point{Block: t.blocks[i][0].Block, LogRatio: d}
		if i%step != 0 && i+1 != len(ratios) {
			continue
		}
		r := stats.Decide(ratios[:i+1], stats.Options{Alpha: alphaOf(s), ROPE: info.ROPE, LowerIsBetter: info.LowerIsBetter})
		points[i].Looked, points[i].Effect = true, bounded(r.Effect)
		points[i].Low, points[i].High = r.Interval.Ends()
	}
	return points
}

func infoOfMetric(name string) study.MetricInfo {
	for _, info := range study.Metrics {
		if info.Name == name {
			return info
		}
	}
	return study.MetricInfo{}
}

// Command returns the command line that has the effect of setting a knob on a
// device. It is empty for a knob that is a command of its own.
func Command(knob, value, device string) string {
	if strings.HasPrefix(knob, commandPrefix) {
		return ""
	}
	return commandFor(knob, value, device)
}
