package stats

import "math"

// Answer is what a comparison says about the second arm.
type Answer string

// The answers. Better and Worse take [Options.LowerIsBetter] into account.
const (
	Better       Answer = "better"       // the whole interval is beyond the ROPE, on the good side
	Worse        Answer = "worse"        // the whole interval is beyond the ROPE, on the bad side
	Same         Answer = "same"         // the whole interval is inside the ROPE: no material difference
	Small        Answer = "small"        // not zero, but on both sides of an edge of the ROPE
	Inconclusive Answer = "inconclusive" // none of these, so far
)

// Code names a warning, for programs.
type Code string

// The warnings of a result.
const (
	// SuggestiveNormality means that the t sequence alone supports the answer in
	// [Result.Suggests]: it holds if the noise is normal.
	SuggestiveNormality Code = "suggestive-normality"
	// TooFewBlocks means that no answer is possible yet at this alpha.
	TooFewBlocks Code = "too-few-blocks"
	// Autocorrelation means that a block resembles (or opposes) the one before.
	Autocorrelation Code = "autocorrelation"
	// PositionInBlock means that it matters which slot of a block runs first.
	PositionInBlock Code = "position-in-block"
	// OutlierBlocks means that some blocks are far from all others.
	OutlierBlocks Code = "outliers"
	// EffectMoved means that the effect is not one number over the study.
	EffectMoved Code = "effect-moved"
	// NotFinite means that values which are no log ratios were left out.
	NotFinite Code = "not-finite"
	// BadOptions means that an option out of range was replaced by its default.
	BadOptions Code = "bad-options"
	// WarmUp means that the start of a slot differs from the rest of it.
	WarmUp Code = "warm-up"
	// Drifting means that the values of a slot rise or fall from start to end.
	Drifting Code = "drifting"
	// Unsteady means that a slot changes level more slowly than its samples are
	// taken, so that its mean is less certain than its samples suggest.
	Unsteady Code = "unsteady"
)

// Warning is a doubt about a result, as a code for programs and a text for
// people.
type Warning struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Interval is a confidence interval. Its ends are infinite while nothing can be
// said.
type Interval struct{ Low, High float64 }

// everything is the interval that says nothing.
func everything() Interval { return Interval{math.Inf(-1), math.Inf(1)} }

// Bounded reports whether both ends are finite.
func (i Interval) Bounded() bool {
	return !math.IsInf(i.Low, 0) && !math.IsInf(i.High, 0)
}

// Contains reports whether x is in the interval, its ends included.
func (i Interval) Contains(x float64) bool { return i.Low <= x && x <= i.High }

// Ends returns the ends, nil for an infinite one: JSON has no infinity.
func (i Interval) Ends() (low, high *float64) { return finite(i.Low), finite(i.High) }

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// empty reports whether nothing is in the interval.
func (i Interval) empty() bool { return i.Low > i.High }

// and returns the intersection of two intervals, which may be empty.
func (i Interval) and(j Interval) Interval {
	return Interval{math.Max(i.Low, j.Low), math.Min(i.High, j.High)}
}

// fraction converts an interval of log ratios into one of fractions. An
// infinite end stays infinite: -100 % would look like a finding.
func (i Interval) fraction() Interval {
	if !math.IsInf(i.Low, 0) {
		i.Low = math.Expm1(i.Low)
	}
	if !math.IsInf(i.High, 0) {
		i.High = math.Expm1(i.High)
	}
	return i
}
