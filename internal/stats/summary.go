package stats

import (
	"math"
	"slices"
)

// Mean returns the arithmetic mean, NaN of nothing.
func Mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	var m moments
	for _, v := range x {
		m.add(v)
	}
	return m.mean
}

// SD returns the sample standard deviation, 0 for fewer than two values.
func SD(x []float64) float64 {
	var m moments
	for _, v := range x {
		m.add(v)
	}
	return m.sd()
}

// Median returns the middle value, the mean of the middle two, or NaN of
// nothing. x is not changed.
func Median(x []float64) float64 {
	return medianSorted(slices.Sorted(slices.Values(x)))
}

func medianSorted(x []float64) float64 {
	n := len(x)
	if n == 0 {
		return math.NaN()
	}
	if n%2 == 1 {
		return x[n/2]
	}
	return x[n/2-1] + (x[n/2]-x[n/2-1])/2
}

// MAD returns the median absolute deviation from the median, not scaled: for
// normal values the standard deviation is 1.4826 times as large.
func MAD(x []float64) float64 {
	m := Median(x)
	dev := make([]float64, len(x))
	for i, v := range x {
		dev[i] = math.Abs(v - m)
	}
	return Median(dev)
}

// Quantile returns the q-quantile, linear between order statistics (type 7 of
// Hyndman and Fan, the default of R and NumPy). It is NaN of nothing or if q is
// outside [0, 1].
func Quantile(x []float64, q float64) float64 {
	if len(x) == 0 || !(q >= 0 && q <= 1) {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(x))
	at := q * float64(len(s)-1)
	i := min(int(at), len(s)-1)
	j := min(i+1, len(s)-1)
	return s[i] + (at-float64(i))*(s[j]-s[i])
}

// QuantileInterval returns an interval of order statistics that covers the
// q-quantile with probability at least conf, whatever the distribution
// (independent values; exact binomial tails, (1-conf)/2 each). An end is
// infinite where no order statistic is far enough out: the median needs 6
// values at 0.95. It is for values that are looked at once; [Decide] is for
// those that are looked at as they come.
func QuantileInterval(x []float64, q, conf float64) Interval {
	out := everything()
	if len(x) == 0 || !(q > 0 && q < 1) || !(conf > 0 && conf < 1) {
		return out
	}
	s := slices.Sorted(slices.Values(x))
	n, tail := len(s), (1-conf)/2
	// P(quantile < s[k]) = P(Bin(n,q) <= k) and P(quantile > s[k]) = P(Bin >= k+1).
	sum := 0.0
	for k := range n {
		if sum += binomial(n, k, q); sum > tail {
			break
		}
		out.Low = s[k]
	}
	sum = 0
	for k := n; k > 0; k-- {
		if sum += binomial(n, k, q); sum > tail {
			break
		}
		out.High = s[k-1]
	}
	return out
}

// binomial is P(Bin(n, q) = k) for 0 < q < 1.
func binomial(n, k int, q float64) float64 {
	lnFactorial := func(n int) float64 {
		v, _ := math.Lgamma(float64(n) + 1)
		return v
	}
	ln := lnFactorial(n) - lnFactorial(k) - lnFactorial(n-k)
	return math.Exp(ln + float64(k)*math.Log(q) + float64(n-k)*math.Log1p(-q))
}
