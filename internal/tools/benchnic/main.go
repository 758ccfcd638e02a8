// Command benchnic compares the soft NIC with a minimal loop that copies packets
// from one TAP to another, and with a veth pair: bulk TCP of internal/load
// between two network namespaces, as root.
//
// The loop is what any Go program between two TAPs has to do at least: read a
// packet, write it, wait when there is none. It looks at nothing, so what it
// moves with offloads on is never on any wire.
//
// The two arms of a comparison run in turn, ABBA, so that a drift of the machine
// meets both alike. Both have the same processes: two hosts, and one for what
// lies between. Goodput is as the receiver counts it; CPU per gigabyte is what
// the whole machine spent (/proc/stat, softirqs included), over the payload.
// The exit status is 1 if the median of a ratio misses its target.
//
// Run by "make bench-nic".
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/sys/cpu"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 3 && children[os.Args[1]] != nil {
		if err := children[os.Args[1]](ctx, os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "benchnic %s: %v\n", os.Args[1], err)
			os.Exit(3)
		}
		return
	}
	good, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchnic:", err)
		os.Exit(4)
	}
	if !good {
		os.Exit(1)
	}
}

// children are what this program is when it starts itself, in a namespace of
// its own.
var children = map[string]func(context.Context, string, io.Reader, io.Writer) error{
	"host": hostChild, "nic": nicChild,
}

// config is what the flags say.
type config struct {
	pairs     int
	slot      time.Duration
	warm      time.Duration
	only      string
	pin       bool
	nice      int
	spec      load.Spec
	queues    int
	arm, base string
}

// A row is one comparison: of an arm with a baseline.
type row struct {
	name   string
	arm    nicSpec
	base   nicSpec
	target float64 // of the ratio of goodputs, at least; 0: none
}

var (
	loopOn  = nicSpec{Kind: "loop", Offloads: true}
	loopOff = nicSpec{Kind: "loop"}
	veth    = nicSpec{Kind: "veth", Offloads: true}
	vethOff = nicSpec{Kind: "veth"}
)

var rows = []row{
	{"TSO on, pass-through wire, against the loop", nicSpec{Kind: "softnic", Offloads: true, Through: true}, loopOn, 0.9},
	{"TSO on, cut to frames, hardware GRO, against the loop", nicSpec{Kind: "softnic", Offloads: true, Merge: true}, loopOn, 0.6},
	{"TSO and GRO off, against the loop without offloads", nicSpec{Kind: "softnic"}, loopOff, 1},
	{"TSO on, cut to frames, hardware GRO, against veth", nicSpec{Kind: "softnic", Offloads: true, Merge: true}, veth, 0},
	{"TSO and GRO off, against veth without offloads", nicSpec{Kind: "softnic"}, vethOff, 0},
}

func run(ctx context.Context, args []string, out io.Writer) (good bool, err error) {
	c := config{spec: load.Spec{Load: "bulk", Family: 4, Congestion: "cubic"}}
	fs := flag.NewFlagSet("benchnic", flag.ContinueOnError)
	fs.IntVar(&c.pairs, "pairs", 9, "pairs of slots per comparison")
	fs.DurationVar(&c.slot, "slot", 2*time.Second, "time of one slot")
	fs.DurationVar(&c.warm, "warm", 300*time.Millisecond, "time before a slot that is not measured")
	fs.StringVar(&c.only, "only", "", "only the rows whose name contains this")
	fs.BoolVar(&c.pin, "pin", false, "keep the sending host on CPU 0 and the receiving one on CPU 1")
	fs.IntVar(&c.nice, "nice", -10, "niceness of all processes: other work on the machine meets them less")
	fs.IntVar(&c.spec.Streams, "streams", 1, "TCP connections")
	fs.BoolVar(&c.spec.Verify, "verify", true, "the receiver compares every byte; otherwise it does not even copy (MSG_TRUNC)")
	fs.IntVar(&c.queues, "queues", 1, "queues of the soft NIC")
	fs.StringVar(&c.arm, "arm", "", "compare only this arm, as `JSON` of nicSpec, with -base")
	fs.StringVar(&c.base, "base", `{"kind":"loop","offloads":true}`, "what -arm is compared with")
	if err := fs.Parse(args); err != nil {
		return false, err
	}
	about, err := cpu.Describe()
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "soft NIC, Linux %s, %s, %d CPUs\n", about.Kernel, about.Model, about.CPUs)
	fmt.Fprintf(out, "%d pairs of %v slots, ABBA, %d stream(s), payload checked: %v, MTU 1500, pinned: %v\n",
		c.pairs, c.slot, c.spec.Streams, c.spec.Verify, c.pin)
	list, err := c.rows()
	if err != nil {
		return false, err
	}
	good = true
	for _, r := range list {
		if !strings.Contains(r.name, c.only) {
			continue
		}
		pairs, err := measure(ctx, c, r)
		if err != nil {
			return false, fmt.Errorf("%s: %w", r.name, err)
		}
		good = print(out, r, pairs) && good
	}
	return good, nil
}

// rows returns the comparisons asked for.
func (c config) rows() ([]row, error) {
	if c.arm == "" {
		return rows, nil
	}
	r := row{name: c.arm + " against " + c.base}
	if err := json.Unmarshal([]byte(c.arm), &r.arm); err != nil {
		return nil, fmt.Errorf("-arm: %w", err)
	}
	if err := json.Unmarshal([]byte(c.base), &r.base); err != nil {
		return nil, fmt.Errorf("-base: %w", err)
	}
	return []row{r}, nil
}

// A slot is one measurement.
type slot struct {
	goodput float64    // bit/s
	host    float64    // s per 10⁹ bytes: the machine
	procs   [3]float64 // sender, receiver, what lies between
}

func measure(ctx context.Context, c config, r row) (pairs [][2]slot, err error) {
	var beds [2]*bed
	defer func() {
		for _, b := range beds {
			if b != nil {
				err = b.close(err)
			}
		}
	}()
	for i, s := range []nicSpec{r.arm, r.base} {
		s.Queues = max(s.Queues, c.queues)
		if beds[i], err = newBed(ctx, c, s); err != nil {
			return nil, err
		}
	}
	for n := range c.pairs {
		var pair [2]slot
		for k := range 2 {
			which := (n + k) % 2
			if pair[which], err = beds[which].slot(ctx, c); err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

// print writes one comparison and reports whether its target is met.
func print(out io.Writer, r row, pairs [][2]slot) bool {
	fmt.Fprintf(out, "\n%s\n  %-18s%-26s%-26s%s\n", r.name, "", r.arm.Kind, r.base.Kind, "ratio of the pairs")
	fmt.Fprintf(out, "  %-18s%-26s%-26s%s\n", "", "median (min..max)", "median (min..max)", "median (min..max)")
	goodput := line(out, "goodput, Gbit/s", pairs, func(s slot) float64 { return s.goodput / 1e9 })
	verdict := ""
	ok := goodput >= r.target
	if r.target > 0 {
		verdict = fmt.Sprintf("  ok (>= %g)", r.target)
		if !ok {
			verdict = fmt.Sprintf("  MISSED (>= %g)", r.target)
		}
	}
	fmt.Fprintln(out, verdict)
	line(out, "host CPU, s/GB", pairs, func(s slot) float64 { return s.host })
	fmt.Fprintln(out)
	for i, name := range []string{"sender, s/GB", "receiver, s/GB", "between, s/GB"} {
		line(out, name, pairs, func(s slot) float64 { return s.procs[i] })
		fmt.Fprintln(out)
	}
	line(out, "all three, s/GB", pairs, func(s slot) float64 { return s.procs[0] + s.procs[1] + s.procs[2] })
	fmt.Fprintln(out)
	return ok
}

func line(out io.Writer, name string, pairs [][2]slot, get func(slot) float64) float64 {
	var a, b, ratio []float64
	for _, p := range pairs {
		a, b, ratio = append(a, get(p[0])), append(b, get(p[1])), append(ratio, get(p[0])/get(p[1]))
	}
	fmt.Fprintf(out, "  %-18s%-26s%-26s%s", name, spread(a), spread(b), spread(ratio))
	return stats.Median(ratio)
}
