package stats_test

import (
	"fmt"
	"testing"

	"github.com/offlab/offlab/internal/stats"
)

// BenchmarkDecide is the cost of one look at n blocks.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{6, 12, 30, 100} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			r, d := simRand(9000), make([]float64, n)
			for i := range d {
				d[i] = 0.02 * r.NormFloat64()
			}
			for b.Loop() {
				stats.Decide(d, stats.Options{})
			}
		})
	}
}
