package stats

import (
	"math"
	"slices"
)

// LagOne returns the lag-1 autocorrelation of the blocks and whether it is
// large: beyond ±2/√n, which independent blocks exceed about once in twenty.
func LagOne(d []float64) (r1 float64, large bool) {
	if len(d) < 3 {
		return 0, false
	}
	mean := Mean(d)
	var num, den float64
	for i, v := range d {
		den += (v - mean) * (v - mean)
		if i > 0 {
			num += (v - mean) * (d[i-1] - mean)
		}
	}
	if den == 0 {
		return 0, false
	}
	r1 = num / den
	return r1, math.Abs(r1) > 2/math.Sqrt(float64(len(d)))
}

// Position is by how much the second slot of a block differs from the first,
// whichever arm it is.
type Position struct {
	Effect float64 // fraction: 0.01 is "the second slot is 1 % above the first"
	LnE    float64 // logarithm of the e-value against no such effect; ≥ ln(1/alpha) rejects, at any n
}

// PositionEffect separates the effect of the place in the block from that of
// the arm, which it can because the order is random: d is the effect of the arm
// plus that of the place if B ran second, minus it if B ran first. It is a
// regression with the anytime-valid t mixture. The result is zero while one of
// the orders has not occurred, with fewer than 3 blocks, and if the lengths
// differ.
func PositionEffect(d []float64, bFirst []bool) Position {
	if len(d) != len(bFirst) {
		return Position{}
	}
	var first, second moments // the d of the blocks in which B ran first, second
	for i, v := range d {
		if bFirst[i] {
			first.add(v)
		} else {
			second.add(v)
		}
	}
	n1, n2, nu := float64(first.n), float64(second.n), float64(len(d)-2)
	if first.n == 0 || second.n == 0 || nu < 1 {
		return Position{}
	}
	// B second and B first differ in d by twice the effect of the place.
	diff, size := second.mean-first.mean, n1*n2/(n1+n2)
	sd := math.Sqrt((first.sumSqr + second.sumSqr) / nu)
	return Position{
		Effect: math.Expm1(diff / 2),
		LnE:    lnMixture(tSquared(diff, sd/math.Sqrt(size)), nu, 1+size*DefaultG),
	}
}

// outlierMADs is where hyperfine draws the line too: ten standard deviations of
// normal values, 10 × 1.4826.
const outlierMADs = 14.826

// Outliers returns the indices of the values farther than 14.8 MAD (ten
// standard deviations of normal values) from the median. There are none among
// fewer than five, or if more than half of the values are equal.
func Outliers(x []float64) []int {
	mid, mad := Median(x), MAD(x)
	if len(x) < 5 || !(mad > 0) {
		return nil
	}
	var out []int
	for i, v := range x {
		if math.Abs(v-mid) > outlierMADs*mad {
			out = append(out, i)
		}
	}
	return out
}

// NoiseFloor is what an A/A phase, in which both slots of each block run the
// same arm, says about the apparatus.
type NoiseFloor struct {
	N    int     // blocks
	Bias float64 // exp(mean d) - 1: should be near 0
	SD   float64 // standard deviation of d as a fraction
	// Detectable is about the smallest effect, as a fraction, that the planned
	// number of blocks can tell from 0. It is infinite if that number is too
	// small for any interval, or if N < 2.
	Detectable float64
	// LnE is the logarithm of the e-value against Bias = 0. At ln(1/alpha) the
	// apparatus itself prefers one of the slots.
	LnE float64
}

// AANoise measures the noise floor from the log ratios of A/A blocks, for a
// study of the given number of blocks.
func AANoise(d []float64, blocks int, opts Options) NoiseFloor {
	o, _ := opts.resolved()
	var m moments
	for _, v := range d {
		if math.Abs(v) <= maxLogRatio {
			m.add(v)
		}
	}
	f := NoiseFloor{N: m.n, Bias: math.Expm1(m.mean), SD: math.Expm1(m.sd()), LnE: m.lnE(0, o.G), Detectable: math.Inf(1)}
	if m.n >= 2 {
		f.Detectable = math.Expm1(halfWidth(blocks, m.sd(), o.Alpha, o.G))
	}
	return f
}

// Bonferroni returns the alpha of each of k comparisons that keeps the
// probability of any wrong verdict at alpha.
func Bonferroni(alpha float64, k int) float64 {
	return alpha / float64(max(k, 1))
}

// EBH is the e-BH procedure (Wang and Ramdas 2022): it reports which of the
// hypotheses to reject so that on average at most the share alpha of the
// rejected ones is true, however the e-values depend on each other. It rejects
// the k with the largest e-values for the largest k such that each of them is at
// least len(e)/(alpha k).
func EBH(e []float64, alpha float64) []bool {
	sorted := slices.Sorted(slices.Values(e))
	slices.Reverse(sorted)
	limit := math.Inf(1)
	for i, v := range sorted {
		if need := float64(len(e)) / (alpha * float64(i+1)); v >= need {
			limit = v
		}
	}
	out := make([]bool, len(e))
	for i, v := range e {
		out[i] = v >= limit && !math.IsInf(limit, 1)
	}
	return out
}
