package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
	"github.com/offlab/offlab/internal/verdict"
)

// Sizes of the drawing, in its own units.
const (
	chartWidth, chartHeight = 720, 280
	chartLeft, chartRight   = 64, 16
	chartTop, chartBottom   = 12, 36
	tickSpace               = 24 // between labels of an axis, at least
)

// A chart draws the log ratio of each block and the interval after each.
type chart struct {
	points  []verdict.Point
	low     float64 // of the axis of log ratios
	high    float64
	rope    float64 // half width, on the log scale
	builder strings.Builder
}

// chart writes the figure of the metric that decides, if there is something to
// draw.
func (p *htmlPage) chart(s *study.Study, v study.Verdict) {
	points := verdict.Trace(s, v, v.Worth.Primary)
	if len(points) == 0 {
		return
	}
	c := &chart{points: points, rope: math.Log1p(metricInfo(v.Worth.Primary).ROPE)}
	c.scale()
	what := metricName(v.Worth.Primary) + " of each block, " + contrastWords(v)
	p.printf("<figure>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n<title>%s</title>\n%s</svg>\n", chartWidth, chartHeight, what, safe(c.draw()))
	p.printf("<figcaption>%s. A dot is a block, the line the effect so far, the area its %s interval; within the grey band (±%g %%) a change would not matter.</figcaption>\n</figure>\n",
		what, confidence(s), 100*metricInfo(v.Worth.Primary).ROPE)
}

// scale lets the axis hold the blocks, the band and the last interval. Earlier
// intervals, which may be without bound, are cut off.
func (c *chart) scale() {
	ys := []float64{-1.5 * c.rope, 1.5 * c.rope}
	for _, p := range c.points {
		ys = append(ys, p.LogRatio)
	}
	last := c.points[len(c.points)-1]
	low, high := study.Metric{Effect: last.Effect, Low: last.Low, High: last.High}.Useful()
	for _, end := range []*float64{low, high} {
		if end != nil {
			ys = append(ys, math.Log1p(*end))
		}
	}
	c.low, c.high = slices.Min(ys), slices.Max(ys)
	pad := 0.06 * (c.high - c.low)
	c.low, c.high = c.low-pad, c.high+pad
}

func (c *chart) x(i int) float64 {
	n := len(c.points)
	return chartLeft + (float64(i)+0.5)/float64(n)*(chartWidth-chartLeft-chartRight)
}

func (c *chart) y(v float64) float64 {
	v = min(max(v, c.low), c.high)
	return chartTop + (c.high-v)/(c.high-c.low)*(chartHeight-chartTop-chartBottom)
}

func (c *chart) printf(format string, args ...any) { fmt.Fprintf(&c.builder, format, args...) }

func (c *chart) line(class string, x1, y1, x2, y2 float64) {
	c.printf("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2)
}

func (c *chart) draw() string {
	const right = chartWidth - chartRight
	c.printf("<rect class=\"rope\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n",
		chartLeft, c.y(c.rope), right-chartLeft, c.y(-c.rope)-c.y(c.rope))
	for _, f := range c.ticks() {
		class := "axis"
		if f == 0 {
			class = "zero"
		}
		y := c.y(math.Log1p(f))
		c.line(class, chartLeft, y, right, y)
		label := strings.Replace(unit.Percent(f), ".00", "", 1)
		c.printf("<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", chartLeft-8, y+4, strings.Replace(label, ".0 ", " ", 1))
	}
	c.intervals()
	for i, p := range c.points {
		c.printf("<circle class=\"block\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", c.x(i), c.y(p.LogRatio))
	}
	every := len(c.points)/20 + 1
	for i := 0; i < len(c.points); i += every {
		c.printf("<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", c.x(i), chartHeight-chartBottom+16, c.points[i].Block+1)
	}
	c.printf("<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">block</text>\n", (chartLeft+right)/2, chartHeight-4)
	return c.builder.String()
}

// intervals draws the interval after each block as an area, the effect as a line
// and the last interval as a bar.
func (c *chart) intervals() {
	var above, below, effect []string
	var bar [2]float64
	for i, p := range c.points {
		if !p.Looked {
			continue
		}
		low, high := c.low, c.high
		if p.Low != nil {
			low = math.Log1p(*p.Low)
		}
		if p.High != nil {
			high = math.Log1p(*p.High)
		}
		at := func(v float64) string { return fmt.Sprintf("%.1f,%.1f", c.x(i), c.y(v)) }
		above, below, effect = append(above, at(high)), append(below, at(low)), append(effect, at(math.Log1p(p.Effect)))
		bar = [2]float64{low, high}
	}
	slices.Reverse(below)
	c.printf("<polygon class=\"interval\" points=\"%s\"/>\n", strings.Join(append(above, below...), " "))
	c.printf("<polyline class=\"effect\" points=\"%s\"/>\n", strings.Join(effect, " "))
	last := len(c.points) - 1 // which has been looked at
	c.line("final", c.x(last), c.y(bar[0]), c.x(last), c.y(bar[1]))
}

// ticks are the changes, as fractions, that label the axis: none is too close to
// another.
func (c *chart) ticks() []float64 {
	taken := []float64{0}
	for _, f := range []float64{
		1e6, 1e5, 1e4, 1e3, 100, 49, 19, 9, 4, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001,
		-0.999, -0.99, -0.98, -0.95, -0.9, -0.8, -0.7, -0.5, -0.3, -0.2, -0.1, -0.05, -0.02, -0.01, -0.005, -0.002, -0.001,
	} {
		v := math.Log1p(f)
		near := func(g float64) bool { return math.Abs(c.y(v)-c.y(math.Log1p(g))) < tickSpace }
		if v > c.low && v < c.high && !slices.ContainsFunc(taken, near) {
			taken = append(taken, f)
		}
	}
	return taken
}
