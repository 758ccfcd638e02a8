package study_test

import (
	"math"
	"testing"

	"github.com/offlab/offlab/internal/study"
)

func TestUseful(t *testing.T) {
	for _, tt := range []struct {
		name              string
		low, effect, high float64 // infinite: none
		wantLow, wantHigh bool
	}{
		{"tight", 0.66, 0.712, 0.761, true, true},
		{"wide", -0.35, 0.78, 2.2, true, true},
		{"wider", -0.908, -0.618, 0.583, true, true},
		{"absurd", -1, -0.5, 856506.62, false, false},
		{"none", math.Inf(-1), 0.5, math.Inf(1), false, false},
		{"half", -0.8, -0.3, math.Inf(1), false, false},
		{"better-by-far", 0.13, 2.72, 11.26, true, true},
		{"better-open", 0.13, 2.72, 856506, true, false},
		{"worse-open", -0.9999, -0.5, -0.1, false, true},
		{"collapse", -0.997, -0.995, -0.992, true, true},
		{"a-thousand-times", 900, 1000, 1100, true, true},
	} {
		m := study.Metric{Effect: tt.effect}
		if !math.IsInf(tt.low, 0) {
			m.Low = &tt.low
		}
		if !math.IsInf(tt.high, 0) {
			m.High = &tt.high
		}
		low, high := m.Useful()
		if (low != nil) != tt.wantLow || (high != nil) != tt.wantHigh {
			t.Errorf("%s: ends useful %v and %v, want %v and %v", tt.name, low != nil, high != nil, tt.wantLow, tt.wantHigh)
		}
	}
}

// TestMetricsAreOnce: a metric named twice would be reported twice.
func TestMetricsAreOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range study.Metrics {
		if seen[m.Name] || m.Unit == "" || m.Title == "" || m.Count == (m.ROPE > 0) {
			t.Errorf("%+v: named twice, or something is missing", m)
		}
		seen[m.Name] = true
	}
}
