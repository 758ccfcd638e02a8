package load_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/sys/sock"
)

var (
	loopback4 = netip.MustParseAddr("127.0.0.1")
	loopback6 = netip.MustParseAddr("::1")
)

func spec(streams int) load.Spec {
	return load.Spec{Load: "bulk", Family: 4, Streams: streams, Verify: true, Token: load.NewToken()}
}

// start makes both ends on loopback; relay, if any, stands between them.
func start(t *testing.T, s load.Spec, addr netip.Addr) (*load.Receiver, *load.Sender) {
	t.Helper()
	r, err := load.Listen(t.Context(), s, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop() })
	snd, err := load.Dial(t.Context(), s, r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snd.Stop() })
	if n := r.Snapshot().Connected; n != s.Streams {
		t.Fatalf("Dial has returned, the receiver knows %d of %d streams", n, s.Streams)
	}
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, snd
}

// until polls cond, which becomes true by the traffic of the test.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute) // a busy machine is no fault
	defer limit.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-limit.C:
			t.Fatalf("not within a minute: %s", what)
		case <-tick.C:
		}
	}
}

// noLeaks checks at the end of the test that no goroutine and no descriptor
// is left of what it did.
func noLeaks(t *testing.T) {
	t.Helper()
	fds := countFDs(t)
	before := runtime.NumGoroutine()
	t.Cleanup(func() { // runs after the cleanups registered later
		until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
		until(t, "descriptors are closed", func() bool { return countFDs(t) <= fds })
	})
}

func countFDs(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func TestStreams(t *testing.T) {
	for _, tt := range []struct {
		name    string
		streams int
		change  func(*load.Spec)
	}{
		{"one", 1, nil},
		{"eight", 8, nil},
		{"two-hundred", 200, nil},
		{"a-thousand", 1000, nil},
		{"unverified", 4, func(s *load.Spec) { s.Verify = false }},
		{"one-worker", 8, func(s *load.Spec) { s.Workers = 1 }},
		{"three-workers", 8, func(s *load.Spec) { s.Workers = 3 }},
		{"odd-sizes", 3, func(s *load.Spec) { s.Size, s.ReadSize = 1447, 3001 }},
		{"tiny-writes", 2, func(s *load.Spec) { s.Size, s.ReadSize = 7, 5 }},
		{"large-writes", 2, func(s *load.Spec) { s.Size, s.ReadSize = 1<<20, 1<<20 }},
		{"small-buffers", 2, func(s *load.Spec) { s.SendBuffer, s.ReceiveBuffer = 4096, 4096 }},
		{"mss", 2, func(s *load.Spec) { s.MSS = 536 }},
		{"ipv6", 4, func(s *load.Spec) { s.Family = 6 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			s := spec(tt.streams)
			addr := loopback4
			if tt.change != nil {
				tt.change(&s)
			}
			if s.Family == 6 {
				addr = loopback6
			}
			r, snd := start(t, s, addr)
			a := r.Snapshot()
			until(t, "each stream moves 300 KB", func() bool {
				w := load.Delta(a, r.Snapshot())
				return w.Slowest > 300_000
			})
			checkEnds(t, s, a, r.Snapshot(), snd.Snapshot())
		})
	}
}

func checkEnds(t *testing.T, s load.Spec, a, b, sent load.Snapshot) {
	t.Helper()
	w := load.Delta(a, b)
	if w.Void != "" || w.Corrupt != 0 || w.Idle != 0 || w.Bytes < uint64(s.Streams)*200_000 {
		t.Errorf("window = %+v, want a good one", w)
	}
	if sent.Connected != s.Streams || b.Connected != s.Streams || len(sent.Dead)+len(b.Dead) != 0 {
		t.Errorf("sender %+v, receiver %+v, want %d streams alive", sent, b, s.Streams)
	}
	// The oracle is the kernel's own count of payload, which may be ahead of
	// ours. bytes_acked counts the SYN.
	if b.Bytes > b.Info.BytesIn || sent.Info.BytesAcked > sent.Info.BytesSent+uint64(s.Streams) {
		t.Errorf("read %d, kernel received %d; acked %d of %d", b.Bytes, b.Info.BytesIn, sent.Info.BytesAcked, sent.Info.BytesSent)
	}
	// A write counts when it has returned; its data may be there before.
	if b.Bytes > sent.Bytes+uint64(s.Streams*max(s.Size, load.DefaultSize)) {
		t.Errorf("received %d, sent only %d", b.Bytes, sent.Bytes)
	}
	var calls uint64
	for _, n := range b.Sizes {
		calls += n
	}
	if calls != b.Calls && len(b.PerStream) == 1 {
		t.Errorf("sizes add up to %d, calls are %d", calls, b.Calls)
	}
	if s.MSS != 0 && int(sent.Info.SndMSS) > s.MSS {
		t.Errorf("snd_mss = %d, want at most %d", sent.Info.SndMSS, s.MSS)
	}
}

func TestSamplesAndStop(t *testing.T) {
	noLeaks(t)
	r, snd := start(t, spec(2), loopback4)
	until(t, "half a second of traffic", func() bool { return r.Snapshot().Elapsed > 550*time.Millisecond })
	began := time.Now()
	sent := snd.Stop()
	got := r.Stop()
	if d := time.Since(began); d > 500*time.Millisecond {
		t.Errorf("Stop took %v", d)
	}
	if n := len(got.Samples); n < 3 {
		t.Errorf("%d samples in 550 ms, want about 5", n)
	}
	for k := 1; k < len(got.Samples); k++ {
		if p, q := got.Samples[k-1], got.Samples[k]; q.Elapsed <= p.Elapsed || q.Bytes <= p.Bytes {
			t.Errorf("sample %d = %+v after %+v: not rising", k, q, p)
		}
	}
	if got.Final.Bytes == 0 || sent.Final.Info.Streams != 2 || sent.Final.Info.SegsOut == 0 {
		t.Errorf("final figures are empty: %+v, %+v", got.Final, sent.Final)
	}
	if again := r.Stop(); again.Final.Bytes != got.Final.Bytes || r.Snapshot().Bytes != got.Final.Bytes {
		t.Error("the figures changed after Stop")
	}
}

func TestStopFromManySides(t *testing.T) {
	noLeaks(t)
	r, snd := start(t, spec(4), loopback4)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { r.Snapshot(); snd.Stop(); r.Stop(); snd.Snapshot() })
	}
	wg.Wait()
}

func TestPeerDies(t *testing.T) {
	for _, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			noLeaks(t)
			r, snd := start(t, spec(3), loopback4)
			a, b := r.Snapshot, snd.Stop
			if who == "receiver" {
				a, b = snd.Snapshot, r.Stop
			}
			first := a()
			b()
			until(t, "the other end sees it", func() bool { return len(a().Dead) == 3 })
			w := load.Delta(first, a())
			if !strings.Contains(w.Void, "3 of 3 streams ended") {
				t.Errorf("void = %q, want the streams in it", w.Void)
			}
			if d := a().Dead[1]; d.Stream != 1 || d.Reason == "" {
				t.Errorf("death = %+v, want a reason", d)
			}
		})
	}
}

func TestDialErrors(t *testing.T) {
	noLeaks(t)
	closed, err := sock.Listen(netip.AddrPortFrom(loopback4, 0), 1, sock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := closed.LocalAddr()
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = load.Dial(t.Context(), spec(4), addr)
	var se *load.SetupError
	if !errors.As(err, &se) || !se.Refused() || !errors.Is(err, sock.ErrRefused) || se.Addr != addr {
		t.Errorf("Dial(closed port) = %v, want a refused SetupError", err)
	}

	r, err := load.Listen(t.Context(), spec(2), loopback4)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if _, err = load.Dial(t.Context(), spec(2), r.Addr()); !errors.Is(err, load.ErrRejected) {
		t.Errorf("Dial(other token) = %v, want ErrRejected", err)
	}

	silent, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	quick := spec(2)
	quick.SetupTimeout = 50 * time.Millisecond
	to := netip.MustParseAddrPort(silent.Addr().String())
	if _, err = load.Dial(t.Context(), quick, to); !errors.Is(err, load.ErrTimeout) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Dial(silent peer) = %v, want ErrTimeout", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err = load.Dial(ctx, spec(2), to); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dial(cancelled) = %v, want the context's error", err)
	}
}

func TestListenErrors(t *testing.T) {
	noLeaks(t)
	var se *load.SetupError
	if _, err := load.Listen(t.Context(), spec(1), netip.MustParseAddr("192.0.2.77")); !errors.As(err, &se) || se.Op != "listen" {
		t.Errorf("Listen(foreign address) = %v, want a SetupError", err)
	}
	s := spec(1)
	s.Congestion = "nonesuch"
	if _, err := load.Listen(t.Context(), s, loopback4); !errors.As(err, &se) || !strings.Contains(err.Error(), "nonesuch") {
		t.Errorf("Listen(unknown congestion control) = %v, want it named", err)
	}

	s = spec(2)
	s.SetupTimeout = 50 * time.Millisecond
	r, err := load.Listen(t.Context(), s, loopback4)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if err := r.Wait(t.Context()); !errors.Is(err, load.ErrTimeout) {
		t.Errorf("Wait = %v, want ErrTimeout", err)
	}
	if snap := r.Snapshot(); !strings.Contains(snap.Error, "0 of 2 streams") {
		t.Errorf("Error = %q, want how far it came", snap.Error)
	}

	ctx, cancel := context.WithCancel(t.Context())
	r, err = load.Listen(ctx, spec(2), loopback4)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	cancel()
	if err := r.Wait(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v, want the context's error", err)
	}
}

// TestStrangers checks that connections without the token neither count nor
// hold the load up, whatever they send.
func TestStrangers(t *testing.T) {
	noLeaks(t)
	s := spec(4)
	r, err := load.Listen(t.Context(), s, loopback4)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	var silent []net.Conn
	for k, say := range []string{"", "GET / HTTP/1.1\r\nHost: example\r\n\r\n", "offlab\x00\x01", "offlab\x00\x02" + strings.Repeat("x", 24), strings.Repeat("\x00", 4096)} {
		for range 30 {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", r.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if _, err := io.WriteString(c, say); err != nil && k < 4 {
				t.Fatal(err)
			}
			silent = append(silent, c)
		}
	}
	snd, err := load.Dial(t.Context(), s, r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer snd.Stop()
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "data flows", func() bool { return slices.Min(r.Snapshot().PerStream) > 100_000 })
	if got := r.Snapshot(); got.Connected != 4 || got.Corrupt != 0 {
		t.Errorf("snapshot = %+v, want 4 streams, no corruption", got)
	}
	for _, c := range silent {
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 16)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a stranger got %d bytes, %v, want to be closed", n, err)
		}
	}
}
