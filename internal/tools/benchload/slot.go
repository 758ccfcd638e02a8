package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/sys/cpu"
)

// A slot is one run of one of the two programs.
type slot struct {
	goodput     float64 // bit/s
	host, procs float64 // CPU seconds per 10⁹ bytes
}

// traffic is what a run of a program has moved and what its processes spent.
type traffic struct {
	goodput float64
	bytes   float64
	procs   time.Duration
}

// measure runs the pairs of a row: offlab first in even pairs, second in odd.
func measure(ctx context.Context, b *bed, c config, r row, idle float64) (pairs [][2]slot, err error) {
	tools := [2]func(context.Context, *bed, config, row) (traffic, error){runOfflab, runIperf}
	if c.against != "" {
		tools[1] = func(ctx context.Context, b *bed, c config, r row) (traffic, error) {
			c.spec = c.against
			return runOfflab(ctx, b, c, r)
		}
	}
	for n := range c.pairs {
		var pair [2]slot
		for k := range 2 {
			which := (n + k) % 2
			if pair[which], err = runSlot(ctx, idle, func() (traffic, error) { return tools[which](ctx, b, c, r) }); err != nil {
				return nil, fmt.Errorf("%s, pair %d: %w", r.name, n+1, err)
			}
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

func runSlot(ctx context.Context, idle float64, f func() (traffic, error)) (slot, error) {
	if err := ctx.Err(); err != nil {
		return slot{}, err
	}
	before, err := cpu.Host()
	if err != nil {
		return slot{}, err
	}
	began := time.Now()
	t, err := f()
	if err != nil {
		return slot{}, err
	}
	took := time.Since(began).Seconds()
	after, err := cpu.Host()
	if err != nil {
		return slot{}, err
	}
	gb := t.bytes / 1e9
	return slot{
		goodput: t.goodput,
		host:    (after.Sub(before).Busy() - idle*took) / gb,
		procs:   t.procs.Seconds() / gb,
	}, nil
}

// A proc is a running child and the pipes to it.
type proc struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startProc(cmd *exec.Cmd) (*proc, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &proc{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// ask sends a line, if there is one, and decodes the line that answers.
func (p *proc) ask(line string, into any) error {
	if line != "" {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			return err
		}
	}
	b, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: no answer: %w", p.cmd, errors.Join(err, p.cmd.Wait()))
	}
	return json.Unmarshal(b, into)
}

// end waits for the child, whose input is closed, and returns its CPU time.
func (p *proc) end() (time.Duration, error) {
	if err := p.in.Close(); err != nil {
		return 0, err
	}
	err := p.cmd.Wait()
	return spent(p.cmd), err
}

func spent(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// runOfflab runs both ends of offlab's load as children.
func runOfflab(ctx context.Context, b *bed, c config, r row) (t traffic, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the children when something fails
	spec := load.Spec{
		Load: "bulk", Family: 4, Streams: r.streams, Verify: r.verify,
		Token: load.NewToken(), Congestion: c.congestion,
	}
	if err := json.Unmarshal([]byte(c.spec), &spec); err != nil {
		return t, fmt.Errorf("-spec: %w", err)
	}
	var addr netip.AddrPort
	rcv, err := startEnd(ctx, b, "receive", childSpec{spec, netip.AddrPortFrom(receiverIP(), 0), c.cpu(1)}, &addr)
	if err != nil {
		return t, err
	}
	snd, err := startEnd(ctx, b, "send", childSpec{spec, addr, c.cpu(0)}, &addr)
	if err != nil {
		return t, err
	}
	var from, to, final load.Snapshot
	if err := rcv.ask("snapshot", &from); err != nil {
		return t, err
	}
	select {
	case <-ctx.Done():
		return t, ctx.Err()
	case <-time.After(c.slot):
	}
	if err := rcv.ask("snapshot", &to); err != nil {
		return t, err
	}
	if err := errors.Join(snd.ask("stop", &final), rcv.ask("stop", &final)); err != nil {
		return t, err
	}
	w := load.Delta(from, to)
	if w.Void != "" || w.Corrupt != 0 {
		return t, fmt.Errorf("offlab: void %q, %d corrupt bytes", w.Void, w.Corrupt)
	}
	sent, err := snd.end()
	if err != nil {
		return t, err
	}
	received, err := rcv.end()
	return traffic{w.BitsPerSecond(), float64(final.Bytes), sent + received}, err
}

func startEnd(ctx context.Context, b *bed, role string, c childSpec, addr *netip.AddrPort) (*proc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	ns := b.receiver
	if role == "send" {
		ns = b.sender
	}
	p, err := startProc(b.command(ctx, ns, self, childArg, role, string(arg)))
	if err != nil {
		return nil, err
	}
	return p, p.ask("", addr)
}

// runIperf runs a server of iperf3 and a client, with their defaults.
func runIperf(ctx context.Context, b *bed, c config, r row) (t traffic, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv, err := startProc(b.command(ctx, b.receiver, c.pinned(1, "iperf3", "-s", "-1", "--forceflush")...))
	if err != nil {
		return t, err
	}
	for line := ""; !strings.Contains(line, "Server listening"); {
		if line, err = srv.out.ReadString('\n'); err != nil {
			return t, fmt.Errorf("iperf3 -s: %w", errors.Join(err, srv.cmd.Wait()))
		}
	}
	// The rest of the server's output goes where it does not block it.
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, srv.out)
		drained <- err
	}()
	seconds := strconv.FormatFloat(c.slot.Seconds(), 'f', -1, 64)
	cli := b.command(ctx, b.sender, c.pinned(0, "iperf3", "-c", receiverAddr, "-J",
		"-t", seconds, "-P", strconv.Itoa(r.streams), "-C", c.congestion)...)
	var out bytes.Buffer
	cli.Stdout = &out
	if err := cli.Run(); err != nil {
		return t, fmt.Errorf("iperf3 -c: %w: %s", err, out.String())
	}
	if err := <-drained; err != nil {
		return t, err
	}
	received, err := srv.end()
	if err != nil {
		return t, err
	}
	var report struct {
		End struct {
			Received struct {
				Bytes float64 `json:"bytes"`
				Rate  float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return t, fmt.Errorf("iperf3 -J: %w", err)
	}
	got := report.End.Received
	return traffic{got.Rate, got.Bytes, spent(cli) + received}, nil
}

func iperfVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "iperf3", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("iperf3 --version: %w", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}

// cpu returns the CPU of an end, -1 for any.
func (c config) cpu(n int) int {
	if !c.pin {
		return -1
	}
	return n
}

// pinned returns a command line that runs on one CPU.
func (c config) pinned(n int, args ...string) []string {
	if !c.pin {
		return args
	}
	return append([]string{"taskset", "-c", strconv.Itoa(n)}, args...)
}
