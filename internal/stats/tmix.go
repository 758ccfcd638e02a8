package stats

import "math"

// moments are the running count, mean and sum of squared deviations (Welford).
type moments struct {
	n      int
	mean   float64
	sumSqr float64
}

func (m *moments) add(x float64) {
	m.n++
	delta := x - m.mean
	m.mean += delta / float64(m.n)
	m.sumSqr += delta * (x - m.mean)
}

// sd is the sample standard deviation, 0 for fewer than two values.
func (m *moments) sd() float64 {
	if m.n < 2 {
		return 0
	}
	return math.Sqrt(m.sumSqr / float64(m.n-1))
}

// lnMixture is the logarithm of the e-value of a squared t statistic with nu
// degrees of freedom under a Gaussian mixture N(0, g) over the standardised
// effect, where r = 1 + g times the effective number of observations. With
// nu = n-1 and r = 1 + n g it is the one-sample t mixture; with other nu it is
// that of one coefficient of a linear model (Lindon et al., anytime-valid
// linear models).
func lnMixture(t2, nu, r float64) float64 {
	if nu < 1 {
		return 0
	}
	gain := math.Log(r) // the limit for t² → ∞, that is for no noise at all
	if !math.IsInf(t2, 1) {
		gain = math.Log1p(t2/nu) - math.Log1p(t2/(nu*r))
	}
	return (nu+1)/2*gain - math.Log(r)/2
}

// lnE is the logarithm of the t e-value against the hypothesis mean = m0.
func (m *moments) lnE(m0, g float64) float64 {
	n := float64(m.n)
	if m.n < 2 {
		return 0
	}
	return lnMixture(tSquared(m.mean-m0, m.sd()/math.Sqrt(n)), n-1, 1+n*g)
}

// tSquared is (diff/se)², with 0/0 = 0: no difference is no evidence.
func tSquared(diff, se float64) float64 {
	if diff == 0 {
		return 0
	}
	t := diff / se
	return t * t
}

// criticalT is the |t| at which the e-value of n values reaches 1/alpha,
// infinite where none does.
func criticalT(n int, alpha, g float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	r := 1 + float64(n)*g
	lnC := 2 / float64(n) * (math.Log(r)/2 - math.Log(alpha))
	if lnC >= math.Log(r) {
		return math.Inf(1)
	}
	return math.Sqrt(float64(n-1) * math.Expm1(lnC) / -math.Expm1(lnC-math.Log(r)))
}

// halfWidth is half the width of the t confidence sequence after n values of
// standard deviation s.
func halfWidth(n int, s, alpha, g float64) float64 {
	t := criticalT(n, alpha, g)
	if math.IsInf(t, 1) {
		return t
	}
	return t * s / math.Sqrt(float64(n))
}

// minBlocksT is the first n at which the t sequence is finite.
func minBlocksT(alpha, g float64) int {
	n := 2
	for n < MaxMoreBlocks && math.IsInf(criticalT(n, alpha, g), 1) {
		n++
	}
	return n
}

// tSequence is the running intersection of the t intervals.
type tSequence struct {
	moments
	alpha, g float64
	run      Interval
	broken   bool // two of the intervals have nothing in common
}

func (t *tSequence) add(d float64) {
	t.moments.add(d)
	t.run = t.run.and(t.now())
	t.broken = t.broken || t.run.empty()
}

// now is the interval of the values so far, without the intersection.
func (t *tSequence) now() Interval {
	h := halfWidth(t.n, t.sd(), t.alpha, t.g)
	return Interval{t.mean - h, t.mean + h}
}

// interval is the running intersection. Should it be empty, then no constant
// effect fits: an event of probability alpha at most if there is one. The
// interval of all values together is then the honest description.
func (t *tSequence) interval() Interval {
	if t.broken {
		return t.now()
	}
	return t.run
}
