package stats_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/offlab/offlab/internal/stats"
)

// floats reads one float64 of eight bytes each, at most 64: any bit pattern.
func floats(b []byte) []float64 {
	var d []float64
	for len(b) >= 8 && len(d) < 64 {
		d = append(d, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		b = b[8:]
	}
	return d
}

func bytesOf(d ...float64) []byte {
	var b []byte
	for _, v := range d {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// FuzzDecide checks the laws of a result for any input: nothing is NaN, ends
// are in order, decided results are justified by both intervals, and swapping
// the arms mirrors the answer.
func FuzzDecide(f *testing.F) {
	f.Add(bytesOf(), 0.05, 0.02, 1.0)                                                 // nothing
	f.Add(bytesOf(0.1, 0.11, 0.09, 0.1, 0.12, 0.1, 0.1), 0.05, 0.02, 1.0)             // better
	f.Add(bytesOf(0, 0, 0, 0, 0, 0, 0), 0.05, 0.02, 1.0)                              // no noise
	f.Add(bytesOf(math.NaN(), math.Inf(1), 1e308, -1e308, 1400, -1400), 0.0, -1., 4.) // no log ratios
	f.Add(bytesOf(5e-324, 0, 5e-324, 1e-300, 0, 0, 0), 0.5, 1e-9, 1e-3)               // denormal
	f.Add(bytesOf(0.1, -0.1, 0.1, -0.1), math.NaN(), math.Inf(1), -3.0)               // options
	f.Fuzz(func(t *testing.T, raw []byte, alpha, rope, g float64) {
		d := floats(raw)
		opts := stats.Options{Alpha: alpha, ROPE: rope, G: g}
		r := stats.Decide(d, opts)
		checkResult(t, r, len(d))
		if opts.Validate() != nil && !slices.Contains(codes(r), stats.BadOptions) {
			t.Error("bad options without a warning")
		}
		mirrored := make([]float64, len(d))
		for i, v := range d {
			mirrored[i] = -v
		}
		opts.LowerIsBetter = true
		if m := stats.Decide(mirrored, opts); m.Answer != r.Answer || m.Suggests != r.Suggests {
			t.Errorf("swapped arms: %s, suggests %s, want %s, %s", m.Answer, m.Suggests, r.Answer, r.Suggests)
		}
	})
}

func checkResult(t *testing.T, r stats.Result, given int) {
	t.Helper()
	for _, v := range []float64{r.Effect, r.Interval.Low, r.Interval.High, r.Guard.Low, r.Guard.High, r.Noise, r.LnE, r.GuardLnE, r.EValue()} {
		if math.IsNaN(v) {
			t.Fatalf("NaN in %+v", r)
		}
	}
	if r.Interval.Low > r.Interval.High || r.Guard.Low > r.Guard.High {
		t.Errorf("ends out of order: %+v", r)
	}
	if r.N > given || (r.N < given) != slices.Contains(codes(r), stats.NotFinite) {
		t.Errorf("%d of %d used, warnings %v", r.N, given, codes(r))
	}
	if r.MoreBlocks < 0 || r.MoreBlocks > stats.MaxMoreBlocks || r.Decided != (r.MoreBlocks == 0) {
		t.Errorf("decided %v, more blocks %d", r.Decided, r.MoreBlocks)
	}
	if r.Decided && r.Suggests != r.Answer {
		t.Errorf("decided %s, but the t sequence says %s", r.Answer, r.Suggests)
	}
	switch r.Answer {
	case stats.Better:
		if !(r.Interval.Low >= 0 && r.Guard.Low >= 0) {
			t.Errorf("better with %v and %v", r.Interval, r.Guard)
		}
	case stats.Worse:
		if !(r.Interval.High <= 0 && r.Guard.High <= 0) {
			t.Errorf("worse with %v and %v", r.Interval, r.Guard)
		}
	case stats.Small:
		if r.Interval.Low < 0 && r.Interval.High > 0 {
			t.Errorf("small with %v", r.Interval)
		}
	case stats.Same, stats.Inconclusive:
	}
}

// FuzzSummary checks that the summaries never panic and keep their order.
func FuzzSummary(f *testing.F) {
	f.Add(bytesOf(1, 2, 3, 4, 5, 6, 7), 0.5, 0.95)
	f.Add(bytesOf(math.NaN(), math.Inf(1)), 0.1, 0.5)
	f.Add(bytesOf(), 2.0, -1.0)
	f.Fuzz(func(t *testing.T, raw []byte, q, conf float64) {
		d := floats(raw)
		stats.Within(d)
		stats.Outliers(d)
		stats.LagOne(d)
		stats.AANoise(d, len(d), stats.Options{})
		stats.EBH(d, q)
		v := stats.Quantile(d, q)
		if i := stats.QuantileInterval(d, q, conf); i.Low > i.High {
			t.Errorf("interval %v", i)
		}
		if lo, hi := extremes(d); len(d) > 0 && (v < lo || v > hi) {
			t.Errorf("quantile %v outside %v..%v", v, lo, hi)
		}
	})
}

func extremes(d []float64) (lo, hi float64) {
	if len(d) == 0 {
		return 0, 0
	}
	return slices.Min(d), slices.Max(d)
}
