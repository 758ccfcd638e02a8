package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/offlab/offlab/internal/stats"
)

// slowFlipE is the definition: e^{λx}/cosh λx, the median sorted anew each time.
func slowFlipE(d []float64, m float64) float64 {
	total := 0.0
	for _, lambda := range []float64{-4, -2, -1, -0.5, 0.5, 1, 2, 4} {
		product := 1.0
		for i, v := range d {
			scale := 0.01
			if i > 0 {
				var seen []float64
				for _, w := range d[:i] {
					seen = append(seen, math.Abs(w-m))
				}
				scale = stats.Median(seen)
			}
			x := lambda / scale * (v - m)
			product *= math.Exp(x) / math.Cosh(x)
		}
		total += product / 8
	}
	return total
}

// TestFlipAgainstDefinition compares the fast e-process with its definition.
func TestFlipAgainstDefinition(t *testing.T) {
	r := simRand(4000)
	t.Logf("seed %d", simSeed)
	for n := 1; n <= 30; n++ {
		d := make([]float64, n)
		for i := range d {
			d[i] = 0.02 * r.NormFloat64()
		}
		for _, m := range []float64{0, 0.004, -0.03} {
			got, want := stats.FlipE(d, m), slowFlipE(d, m)
			if math.Abs(got-want) > 1e-9*want {
				t.Errorf("n=%d m=%v: E = %v, want %v", n, m, got, want)
			}
		}
	}
}

// TestFlipIsAFairBet checks the one property all rests on, exactly: over all
// 2^n signs of given sizes the mean of E is 1.
func TestFlipIsAFairBet(t *testing.T) {
	sizes := []float64{0.02, 0.001, 0.3, 0.02, 0, 0.05, 0.011, 0.07, 1.5, 0.004}
	total := 0.0
	for signs := range 1 << len(sizes) {
		d := slices.Clone(sizes)
		for i := range d {
			if signs>>i&1 == 1 {
				d[i] = -d[i]
			}
		}
		total += stats.FlipE(d, 0)
	}
	if mean := total / float64(int(1)<<len(sizes)); !near(mean, 1, 1e-9) {
		t.Errorf("mean of E over all signs = %v, want 1", mean)
	}
}

// TestGuardInterval checks the ends found by bisection against a scan of
// hypotheses with the definition.
func TestGuardInterval(t *testing.T) {
	r := simRand(4001)
	t.Logf("seed %d", simSeed)
	isolated := 0
	for _, n := range []int{6, 8, 12, 20} {
		for range 10 {
			d := make([]float64, n)
			for i := range d {
				d[i] = 0.03 + 0.01*r.NormFloat64()
			}
			got := stats.Decide(d, stats.Options{}).Guard
			standing := func(m float64) bool {
				for i := range d {
					if slowFlipE(d[:i+1], m) >= 20 {
						return false
					}
				}
				return true
			}
			lo, hi := math.Log1p(max(got.Low, -0.9)), math.Log1p(min(got.High, 9))
			for m := -0.1; m < 0.16; m += 0.001 {
				if standing(m) && (m < lo-1e-6 || m > hi+1e-6) {
					t.Logf("n=%d: %v stands outside %v..%v", n, m, lo, hi)
					isolated++
				}
			}
			if got.Bounded() && (standing(lo-1e-6) || !standing(lo+1e-5) || !standing(hi-1e-5) || standing(hi+1e-6)) {
				t.Errorf("n=%d: %v..%v are not the ends", n, lo, hi)
			}
		}
	}
	if isolated > 2 {
		t.Errorf("%d hypotheses outside the intervals stand, want <= 2 of 10,400", isolated)
	}
}
