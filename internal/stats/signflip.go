package stats

import (
	"math"
	"slices"
)

const (
	// scalePrior stands for the scale of |d - m| before anything was seen: 1 %.
	scalePrior = 0.01
	// scaleFloor keeps the scale positive when the values are all equal.
	scaleFloor = 1e-12
	// maxZ bounds a standardised value so that exp(8 z) is finite: far beyond the
	// point (about 20) where all factors have reached their limits 0 and 2.
	maxZ = 80
	// lambdas are the positive bets ½, 1, 2, 4 in units of 1/scale; each has its
	// negative. Successive ones double, so that one exponential serves all.
	lambdas = 4
)

// flip is the sign-flip e-process against the hypothesis "the effect is m":
//
//	E = mean over λ ∈ {±½, ±1, ±2, ±4}/ŝ of Π 2/(1+exp(-2 λ (d-m)))
//
// where ŝ is the median of the |d-m| seen before (so it is predictable). Each
// factor is e^{λx}/cosh λx, whose mean over the two signs of x is 1.
type flip struct {
	m     float64
	limit float64   // 1/alpha
	abs   []float64 // |d-m| so far, ascending
	above [lambdas]float64
	below [lambdas]float64
	side  int // once rejected: +1 the effect is above m, -1 below
}

func newFlip(m, alpha float64) *flip {
	f := &flip{limit: 1 / alpha}
	f.reset(m)
	return f
}

// reset starts over with another hypothesis and keeps the memory.
func (f *flip) reset(m float64) {
	f.m, f.abs, f.side = m, f.abs[:0], 0
	for k := range lambdas {
		f.above[k], f.below[k] = 1, 1
	}
}

func (f *flip) add(d float64) {
	x := d - f.m
	z := min(max(x/f.scale(), -maxZ), maxZ)
	u := math.Exp(-z) // exp(-2λx) for λ = ½
	for k := range lambdas {
		factor := 2 / (1 + u)
		f.above[k] *= factor
		f.below[k] *= u * factor
		u *= u
	}
	x = math.Abs(x)
	i, _ := slices.BinarySearch(f.abs, x)
	f.abs = slices.Insert(f.abs, i, x)
	f.look()
}

// scale is the predictable scale ŝ.
func (f *flip) scale() float64 {
	if len(f.abs) == 0 {
		return scalePrior
	}
	return max(medianSorted(f.abs), scaleFloor)
}

// look rejects m for good once the e-process has reached 1/alpha.
func (f *flip) look() {
	up, down := f.sums()
	if f.side != 0 || up+down < f.limit*2*lambdas {
		return
	}
	f.side = 1
	if down > up {
		f.side = -1
	}
}

func (f *flip) sums() (up, down float64) {
	for k := range lambdas {
		up += f.above[k]
		down += f.below[k]
	}
	return up, down
}

// lnE is the logarithm of the e-value now. It is cut at maxLnE: the products
// overflow after a thousand blocks.
func (f *flip) lnE() float64 {
	up, down := f.sums()
	return min(math.Log((up+down)/(2*lambdas)), maxLnE)
}

const maxLnE = 700

// minBlocksFlip is the first n at which the guard can reject anything: that of
// values which all have the same sign and size.
func minBlocksFlip(alpha float64) int {
	f := newFlip(0, alpha)
	for f.side == 0 && len(f.abs) < MaxMoreBlocks {
		f.add(1)
	}
	return len(f.abs)
}

// guard holds the values and the hypotheses the verdict asks about, which are
// followed value by value; other hypotheses are tried on demand.
type guard struct {
	alpha  float64
	values []float64
	points [3]*flip // -rope, 0, +rope
}

func newGuard(alpha, rope float64) *guard {
	return &guard{alpha: alpha, points: [3]*flip{newFlip(-rope, alpha), newFlip(0, alpha), newFlip(rope, alpha)}}
}

func (g *guard) add(d float64) {
	g.values = append(g.values, d)
	for _, p := range g.points {
		p.add(d)
	}
}

// verdict is the answer of the guard alone, for a metric of which more is
// better. Each hypothesis is tested for itself, so "better" for a true effect
// of 0 has probability alpha at most even where the set of the hypotheses that
// stand is not an interval.
func (g *guard) verdict() Answer {
	low, zero, high := g.points[0].side, g.points[1].side, g.points[2].side
	switch {
	case low > 0 && zero > 0 && high > 0:
		return Better
	case low < 0 && zero < 0 && high < 0:
		return Worse
	case low > 0 && high < 0:
		return Same
	case zero != 0:
		return Small
	default:
		return Inconclusive
	}
}

// excludes reports on which side of 0 the effect is, 0 for neither.
func (g *guard) excludes() int { return g.points[1].side }

// interval is the guard's confidence sequence, found by bisection. It agrees
// with verdict, because the bisection starts from the same points. E is not
// quite convex in m, so that now and then (1 of 40 intervals) a hypothesis a
// little outside is not rejected by itself; the coverage stays above 1-alpha in
// the simulation. Where no
// hypothesis stands (moved), it is the span in which they were rejected from
// both sides.
func (g *guard) interval() (i Interval, moved bool) {
	if len(g.values) == 0 {
		return everything(), false
	}
	i = Interval{Low: g.edge(1), High: g.edge(-1)}
	if i.empty() {
		return Interval{i.High, i.Low}, true
	}
	return i, false
}

// edge finds where the hypotheses below (side 1) or above (side -1) the effect
// stop being rejected. The end returned is a rejected one, so that the interval
// errs on the wide side.
func (g *guard) edge(side int) float64 {
	try := newFlip(0, g.alpha)
	rejected := func(m float64) bool {
		try.reset(m)
		for _, d := range g.values {
			if try.add(d); try.side != 0 {
				break
			}
		}
		return try.side == side
	}
	outer, inner, ok := g.bracket(side, rejected)
	if !ok {
		return math.Inf(-side)
	}
	for range 60 { // 2^-60 of the bracket
		mid := outer + (inner-outer)/2
		if mid == outer || mid == inner || math.Abs(inner-outer) < edgeTolerance {
			break
		}
		if rejected(mid) {
			outer = mid
		} else {
			inner = mid
		}
	}
	return outer
}

// edgeTolerance is the accuracy of an end of the guard's interval: far below
// any effect that a network measurement can see.
const edgeTolerance = 1e-7

// bracket returns a rejected and a standing hypothesis. The first points in the
// direction of the effect are known already; beyond them the search widens.
func (g *guard) bracket(side int, rejected func(float64) bool) (outer, inner float64, ok bool) {
	lo, hi := slices.Min(g.values), slices.Max(g.values)
	far := max(hi-lo, scalePrior)
	outer, inner = lo-far, hi+far
	if side < 0 {
		outer, inner = inner, outer
	}
	for i := range g.points {
		p := g.points[i]
		if side < 0 {
			p = g.points[len(g.points)-1-i]
		}
		if p.side != side {
			inner = nearer(side, inner, p.m)
			break
		}
		outer, ok = p.m, true
	}
	if !ok && nearer(side, outer, inner) == inner {
		outer = inner - float64(side)*far
	}
	for step := far; !ok && step < maxLogRatio*maxLogRatio; step *= 2 {
		if ok = rejected(outer); !ok {
			inner = nearer(side, inner, outer)
			outer -= float64(side) * step
		}
	}
	return outer, inner, ok
}

// nearer returns the one of a and b which is met first coming from outside.
func nearer(side int, a, b float64) float64 {
	if side > 0 {
		return min(a, b)
	}
	return max(a, b)
}
