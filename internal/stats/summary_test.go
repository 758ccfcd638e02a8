package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/offlab/offlab/internal/stats"
)

// TestSummaries has one row per summary.
func TestSummaries(t *testing.T) {
	x := []float64{7, 1, 3, 9, 5, 100}
	before := slices.Clone(x)
	for _, row := range []struct {
		name      string
		got, want float64
	}{
		{"mean", stats.Mean(x), 125.0 / 6},
		{"median-even", stats.Median(x), 6},
		{"median-odd", stats.Median(x[:5]), 5},
		{"mad", stats.MAD(x[:5]), 2},
		{"sd", stats.SD(x[:5]), math.Sqrt(10)},
		{"sd-one", stats.SD(x[:1]), 0},
		{"q0", stats.Quantile(x, 0), 1},
		{"q1", stats.Quantile(x, 1), 100},
		{"q.25", stats.Quantile([]float64{1, 2, 3, 4}, 0.25), 1.75}, // R: quantile(1:4, .25)
		{"q.9", stats.Quantile([]float64{1, 2, 3, 4}, 0.9), 3.7},
	} {
		if !near(row.got, row.want, 1e-12) {
			t.Errorf("%s = %v, want %v", row.name, row.got, row.want)
		}
	}
	for name, v := range map[string]float64{"mean": stats.Mean(nil), "median": stats.Median(nil), "mad": stats.MAD(nil), "quantile": stats.Quantile(x, 2)} {
		if !math.IsNaN(v) {
			t.Errorf("%s of nothing = %v, want NaN", name, v)
		}
	}
	if !slices.Equal(x, before) {
		t.Errorf("the argument was changed to %v", x)
	}
}

// TestQuantileInterval checks the order statistics of the textbook table for
// the median at 95 %: none for 5, the extremes for 6 to 8, the second for 9 to
// 11, the third for 12 to 14.
func TestQuantileInterval(t *testing.T) {
	inf := math.Inf(1)
	for _, row := range []struct {
		n    int
		want stats.Interval
	}{
		{5, stats.Interval{Low: -inf, High: inf}},
		{6, stats.Interval{Low: 1, High: 6}},
		{8, stats.Interval{Low: 1, High: 8}},
		{9, stats.Interval{Low: 2, High: 8}},
		{12, stats.Interval{Low: 3, High: 10}},
		{20, stats.Interval{Low: 6, High: 15}},
	} {
		var x []float64
		for i := row.n; i > 0; i-- {
			x = append(x, float64(i))
		}
		if got := stats.QuantileInterval(x, 0.5, 0.95); got != row.want {
			t.Errorf("n = %d: %v, want %v", row.n, got, row.want)
		}
	}
}

// TestQuantileIntervalCoverage counts how often the 0.9-quantile of 40
// exponential values is covered.
func TestQuantileIntervalCoverage(t *testing.T) {
	r := simRand(8000)
	const trials = 4000
	missed := 0
	for range trials {
		x := make([]float64, 40)
		for i := range x {
			x[i] = r.ExpFloat64()
		}
		missed += count(!stats.QuantileInterval(x, 0.9, 0.95).Contains(math.Log(10)))
	}
	t.Logf("seed %d: missed %d of %d", simSeed, missed, trials)
	if missed > trials*5/100 {
		t.Errorf("missed %d of %d, want <= 5 %%", missed, trials)
	}
}
