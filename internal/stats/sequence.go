package stats

import (
	"cmp"
	"fmt"
	"math"
)

// Defaults of [Options].
const (
	DefaultAlpha = 0.05
	DefaultROPE  = 0.02 // goodput; 0.05 is usual for CPU
	DefaultG     = 1
	// NoROPE asks only whether there is a difference, not whether it matters.
	NoROPE = -1
)

// MaxMoreBlocks is where [Result.MoreBlocks] ends: that many blocks or more.
const MaxMoreBlocks = 10000

// maxLogRatio bounds |ln(B/A)| of two positive float64: ln(1.8e308/4.9e-324).
const maxLogRatio = 1455

// Options say how to decide. The zero value is the usual one: alpha 0.05, a
// ROPE of 2 %, more is better.
type Options struct {
	// Alpha is the probability of a wrong verdict, in (0, 1). Zero means
	// DefaultAlpha. With several primary metrics see [Bonferroni].
	Alpha float64
	// ROPE is the region of practical equivalence as a fraction: effects within
	// ±ln(1+ROPE) on the log scale are too small to matter. Zero means
	// DefaultROPE, a negative value (NoROPE) means none.
	ROPE float64
	// G is the variance of the prior over effect/noise. Zero means DefaultG.
	// About 4 suits effects much larger than the noise: the interval is finite
	// one block earlier and wider later.
	G float64
	// LowerIsBetter is set for costs and delays: an effect below zero is Better.
	LowerIsBetter bool
	// BFirst tells for each block whether the second arm's slot ran first. It
	// is optional and serves the warning PositionInBlock.
	BFirst []bool
}

// OptionError is an option that is out of range.
type OptionError struct {
	Option string  // the name of the field
	Value  float64 // what it was
}

// Error names the option and its value.
func (e *OptionError) Error() string {
	return fmt.Sprintf("stats: %s = %v is out of range", e.Option, e.Value)
}

// Validate returns an *OptionError if an option is out of range. Decide takes
// the default for such an option and warns.
func (o Options) Validate() error {
	switch {
	case math.IsNaN(o.Alpha) || o.Alpha < 0 || o.Alpha >= 1:
		return &OptionError{"Alpha", o.Alpha}
	case math.IsNaN(o.ROPE) || math.IsInf(o.ROPE, 0):
		return &OptionError{"ROPE", o.ROPE}
	case math.IsNaN(o.G) || math.IsInf(o.G, 0) || o.G < 0:
		return &OptionError{"G", o.G}
	}
	return nil
}

// resolved fills in the defaults. ROPE becomes the half width on the log scale.
func (o Options) resolved() (Options, error) {
	err := o.Validate()
	if err != nil {
		o.Alpha, o.ROPE, o.G = 0, 0, 0
	}
	o.Alpha = max(cmp.Or(o.Alpha, DefaultAlpha), minAlpha)
	o.G = cmp.Or(o.G, DefaultG)
	o.ROPE = math.Log1p(max(cmp.Or(o.ROPE, DefaultROPE), 0))
	return o, err
}

// minAlpha keeps 1/alpha finite.
const minAlpha = 1e-300

// Result is what the blocks so far say.
type Result struct {
	N int // blocks used
	// Effect is exp(mean d) - 1: 0.03 is "B is 3 % above A".
	Effect float64
	// Interval covers the effect at all n at once with probability 1-alpha, if
	// the d are about normal. Fractions, like Effect.
	Interval Interval
	// Guard is the interval of the sign-flip e-process, which needs the random
	// order alone.
	Guard Interval
	// Answer is what both sequences support: final if Decided, otherwise what
	// would be said if the study ended now.
	Answer Answer
	// Decided reports that the study may stop here: better, worse or same.
	Decided bool
	// Suggests is the answer of the t sequence alone.
	Suggests Answer
	// MoreBlocks is about how many more blocks would decide, if mean and noise
	// stay as they are: 0 when decided, at most MaxMoreBlocks.
	MoreBlocks int
	// Noise is the standard deviation of d as a fraction: how much the ratio of
	// two slots of one block varies.
	Noise float64
	// LnE and GuardLnE are the logarithms of the two e-values against "no
	// difference at all".
	LnE, GuardLnE float64
	// Warnings are the doubts, in a fixed order.
	Warnings []Warning
}

// EValue returns the e-value against "no difference", for [EBH]: the smaller of
// the two, cut at exp(700). It is at least 1/alpha only while both sequences
// reject at alpha.
func (r Result) EValue() float64 {
	return math.Exp(min(r.LnE, r.GuardLnE, maxLnE))
}

// Decide says what the log ratios d[i] = ln(B[i]) - ln(A[i]) of the blocks so
// far, in the order they were measured, support. It is a pure function of them
// and may be called after every block. Values that are no log ratios (NaN,
// infinite) are left out with a warning.
func Decide(d []float64, opts Options) Result {
	s := NewSequence(opts)
	for _, x := range d {
		s.Add(x)
	}
	return s.Result()
}

// Sequence is the incremental form of [Decide]. Add and Answer take a few
// hundred nanoseconds; Result looks for the ends of the guard's interval, which
// BenchmarkDecide times.
type Sequence struct {
	opts    Options // resolved
	invalid error
	t       tSequence
	guard   *guard
	bFirst  []bool // of the values used
	seen    int    // values given, used or not
}

// NewSequence returns a comparison without blocks.
func NewSequence(opts Options) *Sequence {
	o, err := opts.resolved()
	return &Sequence{
		opts:    o,
		invalid: err,
		t:       tSequence{alpha: o.Alpha, g: o.G, run: everything()},
		guard:   newGuard(o.Alpha, o.ROPE),
	}
}

// Add takes the log ratio of the next block.
func (s *Sequence) Add(d float64) {
	i := s.seen
	s.seen++
	if !(math.Abs(d) <= maxLogRatio) {
		return
	}
	if i < len(s.opts.BFirst) {
		s.bFirst = append(s.bFirst, s.opts.BFirst[i])
	}
	s.t.add(d)
	s.guard.add(d)
}

// Answer returns the answer that both sequences support and whether the study
// may stop with it.
func (s *Sequence) Answer() (a Answer, decided bool) {
	a = s.oriented(s.combined())
	return a, a == Better || a == Worse || a == Same
}

// combined is the answer for a metric of which more is better.
func (s *Sequence) combined() Answer {
	normal, free := s.normal(), s.guard.verdict()
	switch {
	case s.t.broken:
		return Inconclusive
	case normal == free:
		return normal
	case s.excludes() != 0 && s.excludes() == s.guard.excludes():
		return Small
	default:
		return Inconclusive
	}
}

// normal is the answer of the t sequence alone, more is better.
func (s *Sequence) normal() Answer {
	i, rope := s.t.interval(), s.opts.ROPE
	switch {
	case i.Low > rope:
		return Better
	case i.High < -rope:
		return Worse
	case i.Low > -rope && i.High < rope:
		return Same
	case s.excludes() != 0:
		return Small
	default:
		return Inconclusive
	}
}

// excludes reports on which side of 0 the t interval is, 0 for neither.
func (s *Sequence) excludes() int {
	switch i := s.t.interval(); {
	case i.Low > 0:
		return 1
	case i.High < 0:
		return -1
	default:
		return 0
	}
}

// oriented swaps better and worse where less is better.
func (s *Sequence) oriented(a Answer) Answer {
	switch {
	case s.opts.LowerIsBetter && a == Better:
		return Worse
	case s.opts.LowerIsBetter && a == Worse:
		return Better
	default:
		return a
	}
}

// Result returns all there is to say so far.
func (s *Sequence) Result() Result {
	a, decided := s.Answer()
	free, moved := s.guard.interval()
	r := Result{
		N:        s.t.n,
		Effect:   math.Expm1(s.t.mean),
		Interval: s.t.interval().fraction(),
		Guard:    free.fraction(),
		Answer:   a,
		Decided:  decided,
		Suggests: s.oriented(s.normal()),
		Noise:    math.Expm1(s.t.sd()),
		LnE:      min(s.t.lnE(0, s.opts.G), maxLnE),
		GuardLnE: s.guard.points[1].lnE(),
	}
	if !decided {
		r.MoreBlocks = s.moreBlocks()
	}
	r.Warnings = s.warnings(r, moved)
	return r
}

// moreBlocks estimates how many more blocks it takes until the half width is
// less than the distance from the mean to the edge of the ROPE it has to clear.
func (s *Sequence) moreBlocks() int {
	if s.t.broken {
		return MaxMoreBlocks
	}
	least := max(minBlocksT(s.opts.Alpha, s.opts.G), minBlocksFlip(s.opts.Alpha), s.t.n+1)
	if s.t.n < 2 {
		return min(least-s.t.n, MaxMoreBlocks)
	}
	margin := math.Abs(math.Abs(s.t.mean) - s.opts.ROPE)
	enough := func(n int) bool {
		return halfWidth(n, s.t.sd(), s.opts.Alpha, s.opts.G) < margin
	}
	return min(firstTrue(least, s.t.n+MaxMoreBlocks, enough)-s.t.n, MaxMoreBlocks)
}

// firstTrue returns the first n in [lo, hi) for which ok, hi if there is none.
// Once ok, it stays so.
func firstTrue(lo, hi int, ok func(int) bool) int {
	for lo < hi {
		if mid := lo + (hi-lo)/2; ok(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func (s *Sequence) warnings(r Result, moved bool) []Warning {
	var w []Warning
	warn := func(when bool, c Code, format string, args ...any) {
		if when {
			w = append(w, Warning{c, fmt.Sprintf(format, args...)})
		}
	}
	warn(s.invalid != nil, BadOptions, "%v; the defaults were used", s.invalid)
	dropped := s.seen - s.t.n
	warn(dropped > 0, NotFinite, "%d of %d values are no log ratios and were left out", dropped, s.seen)
	least := max(minBlocksT(s.opts.Alpha, s.opts.G), minBlocksFlip(s.opts.Alpha))
	warn(r.N < least, TooFewBlocks, "n=%d: no answer is possible with fewer than %d blocks at alpha %.3g", r.N, least, s.opts.Alpha)
	warn(r.Suggests != r.Answer && r.Suggests != Inconclusive && !s.t.broken, SuggestiveNormality,
		"suggestive (normality): %q holds if the noise is normal; the test that does not assume it has not confirmed it", r.Suggests)
	warn(s.t.broken || moved, EffectMoved, "the blocks contradict one constant effect: it changed while the study ran")
	warn(!s.t.broken && !moved && !s.t.run.Contains(s.t.mean), EffectMoved,
		"the mean of all blocks is outside the interval of the earlier ones")
	r1, high := LagOne(s.guard.values)
	warn(high, Autocorrelation, "lag-1 autocorrelation of the blocks is %+.2f: lengthen the settling time", r1)
	p := PositionEffect(s.guard.values, s.bFirst)
	warn(p.LnE >= -math.Log(s.opts.Alpha), PositionInBlock,
		"the second slot of a block is %+.1f %% off the first, whichever arm it is: slots carry over", 100*p.Effect)
	out := Outliers(s.guard.values)
	warn(len(out) > 0, OutlierBlocks, "%d of %d blocks are far from the others (first: block %d)", len(out), r.N, first(out)+1)
	return w
}

// first returns the first element, 0 if there is none.
func first(x []int) int {
	if len(x) == 0 {
		return 0
	}
	return x[0]
}
