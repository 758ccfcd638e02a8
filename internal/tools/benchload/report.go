package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/offlab/offlab/internal/stats"
)

// printRow prints one comparison and reports whether its targets are met.
func printRow(out io.Writer, r row, pairs [][2]slot) bool {
	fmt.Fprintf(out, "\n%s\n%-26s%-26s%-26s%s\n", r.name, "", "offlab", "iperf3", "offlab/iperf3")
	fmt.Fprintf(out, "%-26s%-26s%-26s%s\n", "", "median (min..max)", "median (min..max)", "mean, 95 % interval, min..max of pairs")
	good := true
	for _, m := range []struct {
		name   string
		get    func(slot) float64
		lower  bool
		target float64 // 0: none
	}{
		{"goodput, Gbit/s", func(s slot) float64 { return s.goodput / 1e9 }, false, r.goodput},
		{"host CPU, s/GB", func(s slot) float64 { return s.host }, true, r.cpu},
		{"process CPU, s/GB", func(s slot) float64 { return s.procs }, true, procTarget(r)},
	} {
		a, b, d := columns(pairs, m.get)
		res := stats.Decide(d, stats.Options{LowerIsBetter: m.lower, BFirst: firsts(len(d))})
		ratio := 1 + res.Effect
		fmt.Fprintf(out, "%-26s%-26s%-26s%s", m.name, spread(a), spread(b), ratios(ratio, res.Interval, d))
		if m.target != 0 {
			ok := ratio >= m.target
			if m.lower {
				ok = ratio <= m.target
			}
			fmt.Fprintf(out, "  %s", verdict(ok, m.lower, m.target))
			good = good && ok
		}
		fmt.Fprintln(out)
	}
	return good
}

func procTarget(r row) float64 {
	if r.procRule {
		return r.cpu
	}
	return 0
}

// columns returns the figures of both programs and the log ratios of the pairs.
func columns(pairs [][2]slot, get func(slot) float64) (a, b, d []float64) {
	for _, p := range pairs {
		x, y := get(p[0]), get(p[1])
		a, b, d = append(a, x), append(b, y), append(d, math.Log(x/y))
	}
	return a, b, d
}

// firsts tells in which pairs offlab ran first.
func firsts(n int) []bool {
	f := make([]bool, n)
	for i := range f {
		f[i] = i%2 == 0
	}
	return f
}

func spread(x []float64) string {
	return fmt.Sprintf("%.3g (%.3g..%.3g)", stats.Median(x), slices.Min(x), slices.Max(x))
}

func ratios(ratio float64, i stats.Interval, d []float64) string {
	span := "[unbounded]"
	if i.Bounded() {
		span = fmt.Sprintf("[%.2f, %.2f]", 1+i.Low, 1+i.High)
	}
	return fmt.Sprintf("%.2f %s %.2f..%.2f", ratio, span, math.Exp(slices.Min(d)), math.Exp(slices.Max(d)))
}

func verdict(ok, lower bool, target float64) string {
	sign := ">="
	if lower {
		sign = "<="
	}
	if ok {
		return fmt.Sprintf("ok (%s %g)", sign, target)
	}
	return fmt.Sprintf("MISSED (%s %g)", sign, target)
}
