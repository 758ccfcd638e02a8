package stats_test

import (
	"math"
	"testing"

	"github.com/offlab/offlab/internal/stats"
)

func near(got, want, tol float64) bool { return math.Abs(got-want) <= tol }

// TestCriticalT checks the published critical values.
func TestCriticalT(t *testing.T) {
	for _, row := range []struct {
		n    int
		want float64
	}{{6, 5.45}, {10, 3.87}, {20, 3.42}, {30, 3.35}} {
		got := stats.CriticalT(row.n, 0.05, 1)
		if !near(got, row.want, 0.005) {
			t.Errorf("CriticalT(%d) = %.4f, want %.2f", row.n, got, row.want)
		}
		if h, want := stats.HalfWidth(row.n, 0.03, 0.05, 1), got*0.03/math.Sqrt(float64(row.n)); !near(h, want, 1e-12) {
			t.Errorf("HalfWidth(%d) = %v, want %v", row.n, h, want)
		}
	}
}

// TestMinBlocks checks when each sequence can first say anything.
func TestMinBlocks(t *testing.T) {
	for _, row := range []struct {
		name string
		got  int
		want int
	}{
		{"t-.05", stats.MinBlocksT(0.05, 1), 5},
		{"t-.01", stats.MinBlocksT(0.01, 1), 6},
		{"t-.05-g4", stats.MinBlocksT(0.05, 4), 4},
		{"flip-.05", stats.MinBlocksFlip(0.05), 6},
		{"flip-.01", stats.MinBlocksFlip(0.01), 9},
	} {
		if row.got != row.want {
			t.Errorf("%s: first finite at %d, want %d", row.name, row.got, row.want)
		}
	}
}

// slowLnE integrates the mixture numerically: the likelihood of d under
// N(m0 + δσ, σ²) with δ ~ N(0, g) and dσ/σ, over that with δ = 0.
func slowLnE(d []float64, m0, g float64) float64 {
	lnSD := math.Log(stats.SD(d))
	likelihood := func(shift, lnSigma float64) float64 {
		sigma, ln := math.Exp(lnSigma), 0.0
		for _, x := range d {
			z := (x-m0)/sigma - shift
			ln -= z*z/2 + lnSigma - lnSD
		}
		return math.Exp(ln)
	}
	var mixed, null float64
	const step = 0.05
	for lnSigma := lnSD - 6; lnSigma < lnSD+12; lnSigma += step {
		null += likelihood(0, lnSigma)
		for u := -8.0; u <= 8; u += step {
			mixed += step * math.Exp(-u*u/2) / math.Sqrt(2*math.Pi) * likelihood(u*math.Sqrt(g), lnSigma)
		}
	}
	return math.Log(mixed / null)
}

// TestMixtureAgainstIntegral compares the closed form with the integral that
// it solves.
func TestMixtureAgainstIntegral(t *testing.T) {
	r := simRand(3000)
	t.Logf("seed %d", simSeed)
	for _, n := range []int{2, 3, 6, 12} {
		for _, g := range []float64{1, 4} {
			d := make([]float64, n)
			for i := range d {
				d[i] = 0.01 + 0.02*r.NormFloat64()
			}
			for _, m0 := range []float64{0, 0.02, -0.05} {
				got, want := stats.LnE(d, m0, g), slowLnE(d, m0, g)
				if !near(got, want, 1e-4) {
					t.Errorf("n=%d g=%v m0=%v: ln E = %.6f, want %.6f", n, g, m0, got, want)
				}
			}
		}
	}
}

// TestIntervalIsTheInverse checks that the e-value at the ends of an interval
// is 1/alpha.
func TestIntervalIsTheInverse(t *testing.T) {
	r := simRand(3001)
	var d []float64
	for n := 1; n <= 40; n++ {
		d = append(d, 0.02*r.NormFloat64())
		h := stats.HalfWidth(n, stats.SD(d), 0.05, 1)
		if math.IsInf(h, 1) {
			if n >= 5 {
				t.Errorf("n=%d: infinite", n)
			}
			continue
		}
		for _, end := range []float64{stats.Mean(d) - h, stats.Mean(d) + h} {
			if got := stats.LnE(d, end, 1); !near(got, math.Log(20), 1e-9) {
				t.Errorf("n=%d: ln E at the end %.9f, want %.9f", n, got, math.Log(20))
			}
		}
	}
}
