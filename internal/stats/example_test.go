package stats_test

import (
	"fmt"

	"github.com/offlab/offlab/internal/stats"
)

// A study asks after each block and stops when it is decided.
func ExampleDecide() {
	off := []float64{818, 823, 815, 820, 812, 825, 819} // Mbit/s, one slot each
	on := []float64{901, 909, 899, 914, 895, 908, 903}
	var d []float64
	for i := range off {
		x, err := stats.LogRatio(off[i], on[i])
		if err != nil {
			fmt.Println(err)
			continue
		}
		d = append(d, x)
		if r := stats.Decide(d, stats.Options{}); r.Decided {
			fmt.Printf("%s after %d blocks: %+.1f %% (%+.1f to %+.1f %%)\n",
				r.Answer, r.N, 100*r.Effect, 100*r.Interval.Low, 100*r.Interval.High)
			break
		}
	}
	// Output: better after 6 blocks: +10.4 % (+9.3 to +11.6 %)
}

// While nothing is decided, the result says about how many blocks are missing.
func ExampleResult_moreBlocks() {
	d := []float64{0.031, 0.002, 0.055, -0.012, 0.048, 0.024, 0.037}
	r := stats.Decide(d, stats.Options{ROPE: stats.NoROPE})
	fmt.Println(r.Answer, r.MoreBlocks)
	// Output: inconclusive 5
}

// Of CPU cost less is better, and the usual region of equivalence is wider.
func ExampleOptions_cpu() {
	cpu := stats.Options{ROPE: 0.05, LowerIsBetter: true, Alpha: stats.Bonferroni(0.05, 4)}
	d := []float64{-0.31, -0.29, -0.30, -0.32, -0.28, -0.30, -0.31, -0.29, -0.30, -0.30}
	r := stats.Decide(d, cpu)
	fmt.Println(r.Answer, r.N)
	// Output: better 10
}
