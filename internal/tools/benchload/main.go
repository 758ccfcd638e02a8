// Command benchload measures the bulk load of offlab beside iperf3, over one
// veth pair between two network namespaces, as root.
//
// The two run in turn, ABBA, so that a drift of the machine meets both
// alike. Both get the same CPUs (the sender the first, the receiver the
// second), the same congestion control and the same time, and both are
// measured the same way: goodput as the receiver reports it; CPU per gigabyte
// as all that the host spent from before the start of the first process until
// after the end of the last (/proc/stat, softirqs included, what an idle second
// costs subtracted), and as what the two processes spent (wait4), over the
// payload received.
//
// The ratio is that of offlab to iperf3 with the anytime-valid interval of
// internal/stats. The exit status is 1 if the mean of a ratio is on the wrong
// side of its target.
//
// Run by "make bench-load".
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/sys/cpu"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 4 && os.Args[1] == childArg {
		if err := child(ctx, os.Args[2], os.Args[3], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "benchload:", err)
			os.Exit(3)
		}
		return
	}
	good, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchload:", err)
		os.Exit(4)
	}
	if !good {
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	pairs      int
	slot       time.Duration
	congestion string
	pin        bool
	only       string
	spec       string // fields of load.Spec, as JSON
	against    string // the same for a second offlab in the place of iperf3
}

// A row is one comparison. Its targets are ratios of offlab to iperf3.
type row struct {
	name     string
	streams  int
	verify   bool
	goodput  float64 // at least
	cpu      float64 // at most; 0: no target
	procRule bool    // the processes' own CPU must not exceed cpu either
}

var rows = []row{
	{name: "1 stream, payload checked", streams: 1, verify: true, goodput: 1, cpu: 1, procRule: true},
	{name: "8 streams, payload checked", streams: 8, verify: true, goodput: 1, cpu: 1, procRule: true},
	{name: "1 stream, not copied (MSG_TRUNC)", streams: 1, goodput: 1.2},
}

func run(ctx context.Context, args []string, out io.Writer) (good bool, err error) {
	var c config
	fs := flag.NewFlagSet("benchload", flag.ContinueOnError)
	fs.IntVar(&c.pairs, "pairs", 9, "pairs of slots per comparison")
	fs.DurationVar(&c.slot, "slot", 2*time.Second, "time of one slot")
	fs.StringVar(&c.congestion, "congestion", "cubic", "congestion control of both")
	fs.BoolVar(&c.pin, "pin", runtime.NumCPU() > 1, "give the sender CPU 0 and the receiver CPU 1")
	fs.StringVar(&c.spec, "spec", "{}", "fields of load.Spec to set, as `JSON`")
	fs.StringVar(&c.against, "against", "", "compare with offlab and these fields (`JSON`) in the place of iperf3")
	fs.StringVar(&c.only, "only", "", "only the rows whose name contains this")
	if err := fs.Parse(args); err != nil {
		return false, err
	}
	if c.pairs < 1 || c.slot < time.Second || c.slot%time.Second != 0 { // iperf3 reads -t as an integer, and 0 as forever
		return false, fmt.Errorf("%d pairs of %v: want 1 or more of whole seconds", c.pairs, c.slot)
	}
	b, err := newBed(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if e := b.close(ctx); err == nil {
			err = e
		}
	}()
	idle, err := idleShare(ctx)
	if err != nil {
		return false, err
	}
	if err := heading(ctx, out, c, idle); err != nil {
		return false, err
	}
	if idle > busy {
		idle = 0 // that was no idle host
	}
	good = true
	for _, r := range rows {
		if !strings.Contains(r.name, c.only) {
			continue
		}
		pairs, err := measure(ctx, b, c, r, idle)
		if err != nil {
			return false, err
		}
		good = printRow(out, r, pairs) && good
	}
	return good, nil
}

func heading(ctx context.Context, out io.Writer, c config, idle float64) error {
	about, err := cpu.Describe()
	if err != nil {
		return err
	}
	version, err := iperfVersion(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "offlab against %s, veth, Linux %s, %s, %d CPUs\n", version, about.Kernel, about.Model, about.CPUs)
	fmt.Fprintf(out, "%d pairs of %v slots, ABBA, %s, pinned: %v, idle host: %.1f %% of a CPU\n",
		c.pairs, c.slot, c.congestion, c.pin, idle*100)
	if idle > busy {
		fmt.Fprintln(out, "warning: other work runs on this host, is in the host CPU figures, and nothing is subtracted")
	}
	if c.against != "" {
		fmt.Fprintf(out, "no iperf3: its column is offlab with %s, the other has %s\n", c.against, c.spec)
	}
	fmt.Fprintf(out, "offlab: plain writes of %d KiB (no sendfile, no MSG_ZEROCOPY); iperf3: its defaults, 128 KiB\n", load.DefaultSize>>10)
	return nil
}

// busy is the share of a CPU above which a host is not idle.
const busy = 0.1

// idleShare returns the CPUs that the host is busy with while nothing is
// measured: the least of some tries, since other work that happens to run then
// would be taken off figures it is not in.
func idleShare(ctx context.Context) (float64, error) {
	const tries, span = 5, 300 * time.Millisecond
	least := math.Inf(1)
	for range tries {
		before, err := cpu.Host()
		if err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(span):
		}
		after, err := cpu.Host()
		if err != nil {
			return 0, err
		}
		least = min(least, after.Sub(before).Busy()/span.Seconds())
	}
	return least, nil
}
