package stats_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/stats"
)

// around returns n values with the given mean, alternating by ±spread.
func around(n int, mean, spread float64) []float64 {
	d := make([]float64, n)
	for i := range d {
		// +1 -1 -1 +1: neither a trend nor a lag-1 correlation worth a warning.
		d[i] = mean + spread*[]float64{1, -1, -1, 1}[i%4]
	}
	return d
}

func codes(r stats.Result) []stats.Code {
	var c []stats.Code
	for _, w := range r.Warnings {
		c = append(c, w.Code)
	}
	return c
}

// TestDecide has one row per answer and per warning.
func TestDecide(t *testing.T) {
	inf := math.Inf(1)
	rows := []struct {
		name     string
		d        []float64
		opts     stats.Options
		want     stats.Answer
		suggests stats.Answer
		decided  bool
		codes    []stats.Code
	}{
		{name: "nothing", want: stats.Inconclusive, codes: []stats.Code{stats.TooFewBlocks}},
		{name: "one", d: []float64{0.5}, want: stats.Inconclusive, codes: []stats.Code{stats.TooFewBlocks}},
		{name: "better", d: around(8, 0.1, 0.01), want: stats.Better, decided: true},
		{name: "worse", d: around(8, -0.1, 0.01), want: stats.Worse, decided: true},
		{name: "lower-is-better", d: around(8, -0.1, 0.01), opts: stats.Options{LowerIsBetter: true}, want: stats.Better, decided: true},
		{name: "higher-is-worse", d: around(8, 0.1, 0.01), opts: stats.Options{LowerIsBetter: true}, want: stats.Worse, decided: true},
		{name: "same", d: around(12, 0.001, 0.005), want: stats.Same, decided: true},
		{name: "same-though-not-zero", d: around(12, 0.01, 0.003), want: stats.Same, decided: true},
		{name: "small", d: around(16, 0.021, 0.01), want: stats.Small, suggests: stats.Small},
		{name: "open", d: around(8, 0.02, 0.05), want: stats.Inconclusive},
		{name: "any-difference", d: around(12, 0.01, 0.003), opts: stats.Options{ROPE: stats.NoROPE}, want: stats.Better, decided: true},
		{name: "wide-rope", d: around(12, 0.03, 0.003), opts: stats.Options{ROPE: 0.05}, want: stats.Same, decided: true},
		{
			name: "normality-only", d: around(5, 0.1, 0.001), want: stats.Inconclusive, suggests: stats.Better,
			codes: []stats.Code{stats.TooFewBlocks, stats.SuggestiveNormality},
		},
		{
			name: "not-finite", d: append(around(8, 0.1, 0.01), math.NaN(), inf, -inf, 1e9), want: stats.Better, decided: true,
			codes: []stats.Code{stats.NotFinite},
		},
		{
			name: "bad-alpha", d: around(8, 0.1, 0.01), opts: stats.Options{Alpha: 5}, want: stats.Better, decided: true,
			codes: []stats.Code{stats.BadOptions},
		},
		{
			name: "trend", d: []float64{0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.11}, want: stats.Small, suggests: stats.Small,
			codes: []stats.Code{stats.Autocorrelation},
		},
		{
			name: "moved", d: append(around(10, 0.1, 0.001), around(10, -0.1, 0.001)...), want: stats.Inconclusive, suggests: stats.Inconclusive,
			codes: []stats.Code{stats.EffectMoved, stats.Autocorrelation},
		},
		{
			name: "outlier", d: append(around(9, 0.1, 0.002), 0.3), want: stats.Better, decided: true,
			codes: []stats.Code{stats.EffectMoved, stats.OutlierBlocks},
		},
		{
			name: "position", d: []float64{0.15, 0.05, 0.051, 0.151, 0.149, 0.049, 0.05, 0.15},
			opts: stats.Options{BFirst: []bool{true, false, false, true, true, false, false, true}},
			want: stats.Small, suggests: stats.Small, codes: []stats.Code{stats.PositionInBlock},
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := stats.Decide(row.d, row.opts)
			if row.suggests == "" {
				row.suggests = row.want
			}
			if got.Answer != row.want || got.Decided != row.decided || got.Suggests != row.suggests {
				t.Errorf("answer %s, decided %v, suggests %s, want %s, %v, %s\n%+v", got.Answer, got.Decided, got.Suggests, row.want, row.decided, row.suggests, got)
			}
			if diff := cmp.Diff(row.codes, codes(got)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s%+v", diff, got.Warnings)
			}
			if got.Decided != (got.MoreBlocks == 0) {
				t.Errorf("decided %v, more blocks %d", got.Decided, got.MoreBlocks)
			}
		})
	}
}

// TestDecideNumbers follows one result by hand: mean 0.1, sd 0.01·√(8/7),
// critical t of 8 blocks 4.28.
func TestDecideNumbers(t *testing.T) {
	got := stats.Decide(around(8, 0.1, 0.01), stats.Options{})
	half := stats.CriticalT(8, 0.05, 1) * 0.01 * math.Sqrt(8.0/7) / math.Sqrt(8)
	for _, row := range []struct {
		name      string
		got, want float64
	}{
		{"effect", got.Effect, math.Expm1(0.1)},
		{"low", got.Interval.Low, math.Expm1(0.1 - half)},
		{"high", got.Interval.High, math.Expm1(0.1 + half)},
		{"noise", got.Noise, math.Expm1(0.01 * math.Sqrt(8.0/7))},
		{"e-value", got.EValue(), math.Exp(min(got.LnE, got.GuardLnE))},
	} {
		if !near(row.got, row.want, 1e-9*max(1, row.want)) {
			t.Errorf("%s = %v, want %v", row.name, row.got, row.want)
		}
	}
	if got.N != 8 || got.EValue() < 20 {
		t.Errorf("n = %d, e-value %v, want 8, >= 20", got.N, got.EValue())
	}
}

// TestUnbounded checks what a result without an interval looks like.
func TestUnbounded(t *testing.T) {
	r := stats.Decide(around(4, 0.1, 0.01), stats.Options{})
	low, high := r.Interval.Ends()
	if r.Interval.Bounded() || r.Guard.Bounded() || low != nil || high != nil {
		t.Errorf("interval %v, guard %v: want both unbounded", r.Interval, r.Guard)
	}
	if r.MoreBlocks != 2 {
		t.Errorf("more blocks = %d, want 2: the guard needs 6", r.MoreBlocks)
	}
}

// TestNoNoise checks that equal values, as a deterministic lab gives, are
// decided and give an exact interval.
func TestNoNoise(t *testing.T) {
	for _, row := range []struct {
		d    float64
		want stats.Answer
	}{{0, stats.Same}, {0.1, stats.Better}, {-0.1, stats.Worse}, {0.01, stats.Same}} {
		r := stats.Decide(around(8, row.d, 0), stats.Options{})
		if e := math.Expm1(row.d); r.Answer != row.want || !near(r.Interval.Low, e, 1e-12) || !near(r.Interval.High, e, 1e-12) {
			t.Errorf("d = %v: %s, interval %v, want %s, exactly %v", row.d, r.Answer, r.Interval, row.want, e)
		}
	}
}

// TestRunningIntersection checks that the interval never widens.
func TestRunningIntersection(t *testing.T) {
	r := simRand(6000)
	t.Logf("seed %d", simSeed)
	for range 50 {
		s, next, last := stats.NewSequence(stats.Options{}), bursts(r, 0.02), stats.Interval{Low: math.Inf(-1), High: math.Inf(1)}
		for range 40 {
			s.Add(block(r, next, 0))
			got := s.Result()
			if slices.Contains(codes(got), stats.EffectMoved) {
				break
			}
			if got.Interval.Low < last.Low || got.Interval.High > last.High {
				t.Fatalf("after %d blocks %v is wider than %v", got.N, got.Interval, last)
			}
			last = got.Interval
		}
	}
}

// TestValidate has one row per option.
func TestValidate(t *testing.T) {
	for _, row := range []struct {
		opts stats.Options
		want string
	}{
		{stats.Options{}, ""},
		{stats.Options{ROPE: stats.NoROPE}, ""},
		{stats.Options{Alpha: 1}, "Alpha"},
		{stats.Options{Alpha: math.NaN()}, "Alpha"},
		{stats.Options{ROPE: math.Inf(1)}, "ROPE"},
		{stats.Options{G: -1}, "G"},
	} {
		var got string
		if oe, ok := errors.AsType[*stats.OptionError](row.opts.Validate()); ok {
			got = oe.Option
		}
		if got != row.want {
			t.Errorf("Validate(%+v) names %q, want %q", row.opts, got, row.want)
		}
	}
}

// TestLogRatio checks the ratio of measurements and of counts.
func TestLogRatio(t *testing.T) {
	if got, err := stats.LogRatio(100, 110); err != nil || !near(got, math.Log(1.1), 1e-12) {
		t.Errorf("LogRatio(100, 110) = %v, %v, want ln 1.1", got, err)
	}
	for _, p := range [][2]float64{{0, 1}, {1, 0}, {-1, 1}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		got, err := stats.LogRatio(p[0], p[1])
		if _, ok := errors.AsType[*stats.RatioError](err); !ok {
			t.Errorf("LogRatio(%v) = %v, %v, want a *RatioError", p, got, err)
		}
	}
	if got, err := stats.CountLogRatio(0, 0); got != 0 || err != nil {
		t.Errorf("CountLogRatio(0, 0) = %v, %v, want 0", got, err)
	}
	if _, err := stats.CountLogRatio(-0.2, 3); err == nil {
		t.Error("CountLogRatio(-0.2, 3): no error")
	}
}
