package stats

import "math"

// The internals that tests look at.
var (
	CriticalT     = criticalT
	HalfWidth     = halfWidth
	MinBlocksT    = minBlocksT
	MinBlocksFlip = minBlocksFlip
)

// ExcludesZero reports whether the t sequence alone excludes 0.
func ExcludesZero(s *Sequence) bool { return s.excludes() != 0 }

// GuardExcludesZero reports whether the guard alone excludes 0.
func GuardExcludesZero(s *Sequence) bool { return s.guard.excludes() != 0 }

// LnE is the t mixture's e-value of d against mean = m0.
func LnE(d []float64, m0, g float64) float64 {
	var m moments
	for _, v := range d {
		m.add(v)
	}
	return m.lnE(m0, g)
}

// FlipE is the guard's e-value of d against the effect m.
func FlipE(d []float64, m float64) float64 {
	f := newFlip(m, DefaultAlpha)
	for _, v := range d {
		f.add(v)
	}
	return math.Exp(f.lnE())
}

// TInterval is the t sequence's interval on the log scale.
func TInterval(s *Sequence) Interval { return s.t.interval() }
