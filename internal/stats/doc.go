// Package stats decides paired comparisons while they run.
//
// A study compares two arms in blocks: one slot of each arm, in random order.
// Each block gives one number, d = ln(B) - ln(A), and after each block the
// question is asked again: better, worse, no material difference, or go on?
// Asking a fixed-size test again after every block is wrong: a paired t test
// peeked at from 3 to 30 pairs "finds" a difference between two identical arms
// in a quarter of all studies, and running all of A before all of B does so in
// up to 97 % of them when the machine drifts. [Decide] may be asked as often
// as one likes. It rests on two confidence sequences, each of which covers the
// true effect at all n at once with probability 1 - alpha (Ville's inequality):
//
//   - the t sequence: a Gaussian mixture over the standardised effect with the
//     right-Haar prior on the scale (Lai 1976; Wang and Ramdas,
//     arXiv:2310.03722). It is the interval that is reported. It assumes that
//     the d are about normal.
//   - the sign-flip guard: given |d - m|, the random order within a block makes
//     the sign of d - m a fair coin when m is the effect, whatever the noise,
//     the drift or the autocorrelation. It assumes the random order alone, and
//     that a slot does not carry over into the next.
//
// A verdict needs both. When the t sequence alone has it, the answer stays
// open and the result carries the warning [SuggestiveNormality].
//
// # Surprises
//
// The unit is the slot, never the samples inside it, which are autocorrelated.
//
// No interval is finite before the fifth block (alpha 0.05) or the sixth
// (0.01), and the guard needs 6 or 7 (9): a coin thrown five times cannot
// reject anything at 0.05 two-sided. Before, [Interval.Bounded] is false.
//
// The region of practical equivalence is symmetric on the log scale: with
// ROPE = 0.02 it is ±ln(1.02), that is from -1.96 % to +2 %, so that swapping
// the arms swaps the answer and does nothing else.
//
// # Several verdicts at once
//
// Each [Decide] errs with probability alpha. A study with k primary metrics (one
// per knob, path and load) passes [Bonferroni](alpha, k) to each, which
// keeps the chance of any wrong verdict at alpha and needs no independence;
// because the width grows with ln(1/alpha) only, that costs few blocks. Secondary
// metrics are described, not decided. [EBH] is for a long matrix that is only
// searched for candidates: it bounds the share of false ones among them.
package stats
