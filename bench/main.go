// Command bench measures the engine beside other engines: the same work on the
// same buffers, in the same run. It is a module of its own, so that what it
// compares with never enters the graph of the libraries.
//
// What is measured is the CPU time of the thread. A repetition takes about
// 10 ms for each side, in turns of 1 ms, and which side begins changes: what
// disturbs a processor for longer than that hits both. The ratio is that of ours
// to theirs, repetition by repetition.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// A row is one line of the table.
type row struct {
	work   string
	units  int    // per call: segments, packets; 1 for a checksum
	unit   string // what a unit is
	ours   func()
	anchor string // whose the other side is; "" if there is none
	theirs func()
	target string // to reach, as the project set it
}

// rows are all lines of the table. Each file adds its own.
func rows() []row {
	var all []row
	for _, f := range []func() []row{checksumRows, gsoRows, groRows} {
		all = append(all, f()...)
	}
	return all
}

func main() {
	reps := flag.Int("reps", 15, "repetitions of each side, at least 9")
	only := flag.String("only", "", "only rows whose work contains this")
	flag.Parse()
	if *reps < 9 {
		fmt.Fprintln(os.Stderr, "bench: -reps must be at least 9")
		os.Exit(2)
	}
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	fmt.Printf("%s %s/%s, %s, %d repetitions\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, cpu(), *reps)
	fmt.Printf("thread CPU time, median (min – max); ratio of ours to theirs per repetition\n\n")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "work\tours\tanchor\ttheirs\tratio\tto reach")
	for _, r := range rows() {
		if strings.Contains(r.work, *only) {
			fmt.Fprintln(w, measure(r, *reps))
		}
	}
	w.Flush()
}

// measure runs a row and returns its line.
func measure(r row, reps int) string {
	runtime.GC()
	n := calibrate(r.ours)
	ours := make([]float64, 0, reps)
	if r.theirs == nil {
		for range reps {
			ours = append(ours, sample(r.ours, n*turns)/float64(r.units))
		}
		return fmt.Sprintf("%s\t%s %s\t–\t–\t–\t%s", r.work, spread(ours), r.unit, r.target)
	}
	m := calibrate(r.theirs)
	theirs, ratio := make([]float64, 0, reps), make([]float64, 0, reps)
	for i := range reps {
		var a, b float64
		for range turns {
			if i%2 == 0 {
				a += sample(r.ours, n)
			}
			b += sample(r.theirs, m)
			if i%2 != 0 {
				a += sample(r.ours, n)
			}
		}
		ours = append(ours, a/turns/float64(r.units))
		theirs = append(theirs, b/turns/float64(r.units))
		ratio = append(ratio, a/b)
	}
	return fmt.Sprintf("%s\t%s %s\t%s\t%s\t%s\t%s", r.work, spread(ours), r.unit, r.anchor, spread(theirs), spreadRatio(ratio), r.target)
}

// turns is how often the sides alternate within a repetition.
const turns = 10

// calibrate returns how many calls take about 1 ms.
func calibrate(f func()) int {
	f()
	for n := 1; ; n *= 2 {
		if t := sample(f, n) * float64(n); t > 1e6 {
			return max(1, int(float64(n)*1e6/t))
		}
	}
}

// sample returns the CPU time of one call in ns, over n calls.
func sample(f func(), n int) float64 {
	start := threadTime()
	for range n {
		f()
	}
	return float64(threadTime()-start) / float64(n)
}

func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

func spread(v []float64) string {
	s := slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.1f (%.1f – %.1f)", s[len(s)/2], s[0], s[len(s)-1])
}

func spreadRatio(v []float64) string {
	s := slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.2f (%.2f – %.2f)", s[len(s)/2], s[0], s[len(s)-1])
}

func cpu() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown processor"
}
