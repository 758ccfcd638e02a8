package stats

import (
	"fmt"
	"math"
)

// RatioError is a pair of measurements that has no log ratio.
type RatioError struct{ A, B float64 }

// Error shows both measurements.
func (e *RatioError) Error() string {
	return fmt.Sprintf("stats: no log ratio of %v and %v: both must be positive and finite", e.A, e.B)
}

// LogRatio returns ln(b) - ln(a), the unit of all comparisons, or a
// *RatioError.
func LogRatio(a, b float64) (float64, error) {
	if !(a > 0) || !(b > 0) || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return 0, &RatioError{a, b}
	}
	return math.Log(b) - math.Log(a), nil
}

// CountLogRatio is LogRatio for counts that may be zero, such as
// retransmissions: half an event is added to each. Swapping the arms changes
// the sign only, so the guard stays exact; the effect is shrunk when the counts
// are small.
func CountLogRatio(a, b float64) (float64, error) {
	if a < 0 || b < 0 {
		return 0, &RatioError{a, b}
	}
	return LogRatio(a+0.5, b+0.5)
}
