package stats

import (
	"fmt"
	"math"
)

// slotBatches is the number of batches a slot is cut into.
const slotBatches = 10

// Limits of the warnings of [Within]. A batch mean of 10 batches has 8 degrees
// of freedom left after a line is fitted: |t| > 5.04 happens once in 1000 for
// independent batches. A variance ratio has 9: 3.1 is its 99.9 % point
// (chi-squared 27.9/9). The size limits keep what is certain but harmless out.
const (
	trendT        = 5.04
	trendSize     = 0.05
	headSize      = 0.05
	headSDs       = 5
	unsteadyRatio = 3.1
	unsteadySize  = 0.05
)

// Shape describes the samples inside one slot, in the order they were taken.
type Shape struct {
	Batches []float64 // means of ten consecutive parts of about equal length
	// Change is the rise of the fitted line from the start to the end of the
	// slot, as a fraction of the mean, and T its t statistic.
	Change, T float64
	// Head is by which fraction the first batch is off the mean of the others.
	Head float64
	// VarianceRatio is the variance of the batch means times the batch length
	// over the variance inside the batches: about 1 for independent samples,
	// more if the level moves slowly (warm-up, throttling, token buckets).
	VarianceRatio float64
	Warnings      []Warning
}

// Within looks for warm-up, drift and level changes in the samples of a slot.
// Fewer than 20 samples, a mean that is not positive, or one that is not finite
// give the zero Shape: too little to tell.
func Within(samples []float64) Shape {
	mean := Mean(samples)
	if len(samples) < 2*slotBatches || !(mean > 0) || math.IsInf(mean, 0) {
		return Shape{}
	}
	batches, inside := batchMeans(samples)
	s := Shape{Batches: batches, VarianceRatio: varianceRatio(batches, inside, len(samples))}
	s.Change, s.T = trend(batches, mean)
	rest := Mean(batches[1:])
	s.Head = ratioTo(batches[0]-rest, rest)
	s.Warnings = s.warn(SD(batches[1:]), mean)
	return s
}

// batchMeans cuts x into slotBatches parts and returns their means and the
// pooled variance inside them.
func batchMeans(x []float64) (means []float64, inside float64) {
	var sum float64
	for b := range slotBatches {
		var m moments
		for _, v := range x[b*len(x)/slotBatches : (b+1)*len(x)/slotBatches] {
			m.add(v)
		}
		means = append(means, m.mean)
		sum += m.sumSqr
	}
	return means, sum / float64(len(x)-slotBatches)
}

func varianceRatio(batches []float64, inside float64, n int) float64 {
	sd := SD(batches)
	return ratioTo(sd*sd*float64(n)/slotBatches, inside)
}

// ratioTo is a/b with 0/0 = 0.
func ratioTo(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}

// trend fits a line to the batch means.
func trend(y []float64, mean float64) (change, t float64) {
	n := float64(len(y))
	var sxx, sxy, rss float64
	yMean := Mean(y)
	for i, v := range y {
		x := float64(i) - (n-1)/2
		sxx += x * x
		sxy += x * (v - yMean)
	}
	slope := sxy / sxx
	for i, v := range y {
		r := v - yMean - slope*(float64(i)-(n-1)/2)
		rss += r * r
	}
	return slope * n / mean, ratioTo(slope, math.Sqrt(rss/(n-2)/sxx))
}

// warn reports the most specific finding only: a slow start also has a trend
// and moves slowly.
func (s Shape) warn(restSD, mean float64) []Warning {
	rest := Mean(s.Batches[1:])
	switch {
	case math.Abs(s.Head) > headSize && math.Abs(s.Batches[0]-rest) > headSDs*restSD:
		return []Warning{{WarmUp, fmt.Sprintf("the first tenth of the slot is %+.1f %% off the rest: lengthen the settling time", 100*s.Head)}}
	case math.Abs(s.Change) > trendSize && math.Abs(s.T) > trendT:
		return []Warning{{Drifting, fmt.Sprintf("%+.1f %% from the start to the end of the slot", 100*s.Change)}}
	case s.VarianceRatio > unsteadyRatio && SD(s.Batches) > unsteadySize*mean:
		return []Warning{{Unsteady, fmt.Sprintf("the level moves inside the slot: the batch means vary %.1f times as much as the samples explain", s.VarianceRatio)}}
	default:
		return nil
	}
}
