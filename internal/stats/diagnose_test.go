package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/offlab/offlab/internal/stats"
)

// TestLagOne checks hand-made sequences.
func TestLagOne(t *testing.T) {
	for _, row := range []struct {
		name  string
		d     []float64
		r1    float64
		large bool
	}{
		{"too-few", []float64{1, 2}, 0, false},
		{"constant", []float64{1, 1, 1, 1}, 0, false},
		{"zigzag", []float64{1, -1, 1, -1, 1, -1, 1, -1}, -7.0 / 8, true},
		{"steps", []float64{-1, -1, -1, -1, -1, 1, 1, 1, 1, 1}, 7.0 / 10, true},
		{"ramp-4", []float64{-1.5, -0.5, 0.5, 1.5}, 1.25 / 5, false},
	} {
		if r1, large := stats.LagOne(row.d); !near(r1, row.r1, 1e-12) || large != row.large {
			t.Errorf("%s: LagOne = %v, %v, want %v, %v", row.name, r1, large, row.r1, row.large)
		}
	}
}

// TestPositionEffect plants an effect of the place on top of one of the arm,
// and checks that without one it is found in at most alpha of the studies, at
// any look.
func TestPositionEffect(t *testing.T) {
	r := simRand(7000)
	const trials, blocks, arm = 1000, 20, 0.07
	t.Logf("seed %d, %d trials", simSeed, trials)
	for _, planted := range []float64{0, 0.05} {
		found, estimate := 0, []float64{}
		for range trials {
			var d []float64
			var bFirst []bool
			hit := false
			for range blocks {
				first, place := r.IntN(2) == 0, planted
				if first {
					place = -planted
				}
				d = append(d, arm+place+0.02*r.NormFloat64())
				bFirst = append(bFirst, first)
				p := stats.PositionEffect(d, bFirst)
				hit = hit || p.LnE > math.Log(20)
			}
			found += count(hit)
			estimate = append(estimate, stats.PositionEffect(d, bFirst).Effect)
		}
		// The second slot gains `planted`, the first nothing: d moves by ±planted.
		if got := stats.Median(estimate); !near(math.Log1p(got), planted, 0.002) {
			t.Errorf("planted %v: median estimate %v", planted, got)
		}
		if planted == 0 && found > trials/20 || planted > 0 && found < trials*9/10 {
			t.Errorf("planted %v: found in %d of %d", planted, found, trials)
		}
	}
	if p := stats.PositionEffect([]float64{1, 2, 3}, []bool{true}); p != (stats.Position{}) {
		t.Errorf("lengths differ: %+v, want zero", p)
	}
}

// TestOutliers checks the limit of ten standard deviations.
func TestOutliers(t *testing.T) {
	x := []float64{9, 10, 11, 9, 10, 11, 10 + 14, 10 + 16, 10 - 16}
	if got := stats.Outliers(x); !slices.Equal(got, []int{7, 8}) {
		t.Errorf("Outliers = %v, want [7 8]: MAD is 1", got)
	}
	if got := stats.Outliers([]float64{1, 1, 1, 1, 1, 9}); got != nil {
		t.Errorf("Outliers of equal values = %v, want none", got)
	}
}

// TestAANoise checks the floor against the interval of the same width.
func TestAANoise(t *testing.T) {
	d := around(4, 0, 0.01)
	f := stats.AANoise(d, 10, stats.Options{})
	if want := math.Expm1(stats.HalfWidth(10, stats.SD(d), 0.05, 1)); f.N != 4 || !near(f.Detectable, want, 1e-12) || !near(f.Bias, 0, 1e-12) {
		t.Errorf("AANoise = %+v, want n 4, bias 0, detectable %v", f, want)
	}
	if f := stats.AANoise(d[:1], 10, stats.Options{}); !math.IsInf(f.Detectable, 1) {
		t.Errorf("one block: detectable %v, want +Inf", f.Detectable)
	}
	if f := stats.AANoise(d, 4, stats.Options{}); !math.IsInf(f.Detectable, 1) {
		t.Errorf("four blocks planned: detectable %v, want +Inf", f.Detectable)
	}
}

// TestEBH follows the rule by hand for 4 hypotheses at 0.05: the k-th largest
// needs 80/k.
func TestEBH(t *testing.T) {
	for _, row := range []struct {
		e    []float64
		want []bool
	}{
		{[]float64{1, 79, 2, 3}, []bool{false, false, false, false}},
		{[]float64{1, 80, 2, 3}, []bool{false, true, false, false}},
		{[]float64{41, 40, 2, 3}, []bool{true, true, false, false}},
		{[]float64{20, 20, 20, 20}, []bool{true, true, true, true}},
		{nil, []bool{}},
	} {
		if got := stats.EBH(row.e, 0.05); !slices.Equal(got, row.want) {
			t.Errorf("EBH(%v) = %v, want %v", row.e, got, row.want)
		}
	}
	if got := stats.Bonferroni(0.05, 10); !near(got, 0.005, 1e-15) {
		t.Errorf("Bonferroni(0.05, 10) = %v, want 0.005", got)
	}
}

// TestWithin has one row per shape of a slot.
func TestWithin(t *testing.T) {
	r := simRand(7001)
	t.Logf("seed %d", simSeed)
	noisy := func(n int, level func(i int) float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = level(i) * (1 + 0.02*r.NormFloat64())
		}
		return x
	}
	for _, row := range []struct {
		name string
		x    []float64
		want stats.Code
	}{
		{"few", noisy(19, func(int) float64 { return 1 }), ""},
		{"steady", noisy(100, func(int) float64 { return 940e6 }), ""},
		{"equal", make([]float64, 100), ""},
		{"warm-up", noisy(100, func(i int) float64 { return 1 - 0.5*math.Exp(-float64(i)/3) }), stats.WarmUp},
		{"drift", noisy(100, func(i int) float64 { return 1 - 0.002*float64(i) }), stats.Drifting},
		{"bucket-empty", noisy(100, func(i int) float64 { return []float64{1, 0.6}[i/50] }), stats.Unsteady},
		{"waves", noisy(100, func(i int) float64 { return 1 + 0.2*math.Sin(float64(i)/8) }), stats.Unsteady},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := stats.Within(row.x)
			var got stats.Code
			if len(s.Warnings) > 0 {
				got = s.Warnings[0].Code
			}
			if got != row.want {
				t.Errorf("warning %q, want %q: %+v", got, row.want, s)
			}
		})
	}
}

// TestWithinFalseAlarms checks that independent samples raise no alarm.
func TestWithinFalseAlarms(t *testing.T) {
	r := simRand(7002)
	alarms, ratio := 0, 0.0
	const trials = 1000
	for range trials {
		x := make([]float64, 100)
		for i := range x {
			x[i] = 100 * math.Exp(0.1*r.NormFloat64())
		}
		s := stats.Within(x)
		alarms += len(s.Warnings)
		ratio += s.VarianceRatio / trials
	}
	t.Logf("seed %d: %d alarms in %d slots, mean variance ratio %.3f", simSeed, alarms, trials, ratio)
	if alarms > trials/100 || !near(ratio, 1, 0.05) {
		t.Errorf("%d alarms, mean variance ratio %v, want <= %d, 1", alarms, ratio, trials/100)
	}
}
