package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/sys/cpu"
	"github.com/offlab/offlab/internal/sys/netns"
)

// The addresses are those for documentation (RFC 5737).
var addresses = [2]netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("192.0.2.2/24")}

const device = "p0" // in both hosts

// A bed is two hosts and what joins them.
type bed struct {
	hosts [2]*proc
	nic   *proc
}

func newBed(ctx context.Context, c config, s nicSpec) (b *bed, err error) {
	b = &bed{}
	defer func() {
		if err != nil {
			err = b.close(err)
		}
	}()
	for i := range b.hosts {
		pin := -1
		if c.pin {
			pin = i
		}
		if b.hosts[i], err = start(ctx, c, "host", strconv.Itoa(pin)); err != nil {
			return b, err
		}
	}
	pids := [2]int{b.hosts[0].cmd.Process.Pid, b.hosts[1].cmd.Process.Pid}
	if s.Kind == "veth" {
		if err := b.hosts[0].ask(request{Veth: pids[1]}, nil); err != nil {
			return b, err
		}
	} else {
		s.PIDs = pids
		arg, err := json.Marshal(s)
		if err != nil {
			return b, err
		}
		if b.nic, err = start(ctx, c, "nic", string(arg)); err != nil {
			return b, err
		}
	}
	for i, h := range b.hosts {
		if err := h.ask(request{Setup: &setup{Address: addresses[i], Features: s.features()}}, nil); err != nil {
			return b, err
		}
	}
	return b, nil
}

// close ends the processes, which takes the namespaces with them.
func (b *bed) close(err error) error {
	for _, p := range []*proc{b.nic, b.hosts[0], b.hosts[1]} {
		if p != nil {
			err = errors.Join(err, p.end())
		}
	}
	return err
}

// slot runs one load and measures it.
func (b *bed) slot(ctx context.Context, c config) (s slot, err error) {
	spec := c.spec
	spec.Token = load.NewToken()
	var addr netip.AddrPort
	rcv, snd := b.hosts[1], b.hosts[0]
	if err := rcv.ask(request{Listen: &spec, Addr: netip.AddrPortFrom(addresses[1].Addr(), 0)}, &addr); err != nil {
		return s, err
	}
	if err := snd.ask(request{Dial: &spec, Addr: addr}, nil); err != nil {
		return s, err
	}
	var from, to load.Snapshot
	if err := wait(ctx, c.warm); err != nil {
		return s, err
	}
	before, err := b.spent()
	if err != nil {
		return s, err
	}
	if err := rcv.ask(request{Snapshot: true}, &from); err != nil {
		return s, err
	}
	if err := wait(ctx, c.slot); err != nil {
		return s, err
	}
	if err := rcv.ask(request{Snapshot: true}, &to); err != nil {
		return s, err
	}
	after, err := b.spent()
	if err != nil {
		return s, err
	}
	w := load.Delta(from, to)
	if err := errors.Join(snd.ask(request{Stop: true}, nil), rcv.ask(request{Stop: true}, nil)); err != nil {
		return s, err
	}
	if w.Void != "" || w.Corrupt != 0 {
		return s, fmt.Errorf("void %q, %d corrupt bytes", w.Void, w.Corrupt)
	}
	gb := w.BitsPerSecond() * c.slot.Seconds() / 8e9
	s = slot{goodput: w.BitsPerSecond(), host: (after.host - before.host) / gb}
	for i := range s.procs {
		s.procs[i] = (after.procs[i] - before.procs[i]) / gb
	}
	return s, nil
}

// spent is CPU time in seconds: of the whole machine, and of the processes.
type spent struct {
	host  float64
	procs [3]float64
}

func (b *bed) spent() (s spent, err error) {
	t, err := cpu.Host()
	if err != nil {
		return s, err
	}
	s.host = t.Busy()
	for i, p := range []*proc{b.hosts[0], b.hosts[1], b.nic} {
		if p == nil {
			continue
		}
		if s.procs[i], err = p.spent(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// spent reads the CPU time of a process, the system's included.
func (p *proc) spent() (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything. utime and stime are the
	// 12th and 13th field behind it, in hundredths (proc_pid_stat(5)).
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("%q has too few fields", b)
	}
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	return float64(user+system) / 100, errors.Join(err1, err2)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// A proc is a child, in a network namespace of its own, that answers each line
// of JSON with one.
type proc struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(ctx context.Context, c config, role, arg string) (*proc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", strconv.Itoa(c.nice), self, role, arg)
	netns.Prepare(cmd, netns.Options{Net: true})
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	p := &proc{cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.answer(nil) // it is ready
}

func (p *proc) ask(r request, into any) error {
	if err := json.NewEncoder(p.in).Encode(r); err != nil {
		return err
	}
	return p.answer(into)
}

func (p *proc) answer(into any) error {
	b, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: no answer: %w", p.cmd, err)
	}
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return fmt.Errorf("%s: %s", p.cmd.Args[4], a.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.Value, into)
}

// end closes the child's input, which ends it.
func (p *proc) end() error {
	if err := p.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return p.cmd.Wait()
}

func spread(x []float64) string {
	return fmt.Sprintf("%.3g (%.3g..%.3g)", stats.Median(x), slices.Min(x), slices.Max(x))
}
