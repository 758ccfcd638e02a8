package load_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/offlab/offlab/internal/load"
)

// relayed is how much of a stream a relay holds and spoils.
const relayed = 1 << 20

// A relay stands between the sender and the receiver. Of one stream it takes
// the first MiB, spoils it and passes it on; all else passes as it is.
type relay struct {
	t      *testing.T
	ln     net.Listener
	to     string
	victim uint32
	spoil  func([]byte) []byte
	wg     sync.WaitGroup

	mu         sync.Mutex
	was, is    []byte // of the victim
	connection []net.Conn
}

func newRelay(t *testing.T, r *load.Receiver, victim uint32, spoil func([]byte) []byte) *relay {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", netip.AddrPortFrom(r.Addr().Addr(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	p := &relay{t: t, ln: ln, to: r.Addr().String(), victim: victim, spoil: spoil}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close() // ends accept
		p.mu.Lock()
		for _, c := range p.connection {
			_ = c.Close() // ends the copies
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *relay) addr() netip.AddrPort { return netip.MustParseAddrPort(p.ln.Addr().String()) }

func (p *relay) accept() {
	for {
		in, err := p.ln.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(p.t.Context(), "tcp", p.to)
		if err != nil {
			p.t.Error(err)
			return
		}
		p.mu.Lock()
		p.connection = append(p.connection, in, out)
		p.mu.Unlock()
		p.wg.Go(func() { _ = pass(in, out) }) // ends with the connection
		p.wg.Go(func() {
			if err := p.forward(out, in); err != nil && !errors.Is(err, net.ErrClosed) {
				p.t.Logf("relay: %v", err)
			}
		})
	}
}

func (p *relay) forward(out io.Writer, in io.Reader) error {
	var hello [32]byte
	if _, err := io.ReadFull(in, hello[:]); err != nil {
		return err
	}
	if _, err := out.Write(hello[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(hello[24:]) == p.victim {
		was := make([]byte, relayed)
		if _, err := io.ReadFull(in, was); err != nil {
			return err
		}
		is := p.spoil(bytes.Clone(was))
		p.mu.Lock()
		p.was, p.is = was, is
		p.mu.Unlock()
		if _, err := out.Write(is); err != nil {
			return err
		}
	}
	return pass(out, in)
}

// pass copies through memory. Left alone, io.Copy would splice, and the
// runtime keeps its pipes until the next collection: noLeaks would see them.
func pass(out io.Writer, in io.Reader) error {
	_, err := io.Copy(struct{ io.Writer }{out}, struct{ io.Reader }{in})
	return err
}

// differences is the oracle: the relay has seen the right bytes.
func (p *relay) differences() (n, first int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first = -1
	for i := range min(len(p.was), len(p.is)) {
		if p.was[i] != p.is[i] {
			if n == 0 {
				first = i
			}
			n++
		}
	}
	return n, first
}

// swap exchanges the pieces of n bytes at i and j.
func swap(b []byte, i, j, n int) []byte {
	x := bytes.Clone(b[i : i+n])
	copy(b[i:], b[j:j+n])
	copy(b[j:], x)
	return b
}

func TestCorruptionIsSeen(t *testing.T) {
	const page, mss = 4096, 1448
	for _, tt := range []struct {
		name   string
		spoil  func([]byte) []byte
		shifts bool // everything after it is out of place
		origin load.Origin
		move   int64
	}{
		{name: "flip", origin: load.InPlace, spoil: func(b []byte) []byte { b[300_001] ^= 4; return b }},
		{name: "flip-in-a-stamp", origin: load.InPlace, spoil: func(b []byte) []byte { b[64*1000] ^= 1; return b }},
		{name: "flip-first", origin: load.InPlace, spoil: func(b []byte) []byte { b[0] ^= 0x80; return b }},
		{name: "swap-segments", origin: load.Elsewhere, move: mss, spoil: func(b []byte) []byte { return swap(b, 20*mss, 21*mss, mss) }},
		{name: "swap-pages", origin: load.Elsewhere, move: 16 * page, spoil: func(b []byte) []byte { return swap(b, 7*page, 23*page, page) }},
		{name: "page-twice", origin: load.Elsewhere, move: -page, spoil: func(b []byte) []byte { copy(b[10*page:], b[9*page:10*page]); return b }},
		{name: "zero-page", origin: load.Unknown, spoil: func(b []byte) []byte { clear(b[10*page : 11*page]); return b }},
		{
			name: "lost-page", shifts: true, origin: load.Elsewhere, move: page,
			spoil: func(b []byte) []byte { return append(b[:50*page], b[51*page:]...) },
		},
		{
			name: "lost-64k", shifts: true, origin: load.Elsewhere, move: 65536,
			spoil: func(b []byte) []byte { return append(b[:50*page], b[66*page:]...) },
		},
		{
			name: "doubled-segment", shifts: true, origin: load.Elsewhere, move: -mss,
			spoil: func(b []byte) []byte {
				return append(append(bytes.Clone(b[:100*mss]), b[99*mss:100*mss]...), b[100*mss:]...)
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			s, addr := spec(3), loopback4
			if tt.name == "swap-pages" {
				s.Family, addr = 6, loopback6
			}
			r, err := load.Listen(t.Context(), s, addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Stop() })
			p := newRelay(t, r, 1, tt.spoil)
			snd, err := load.Dial(t.Context(), s, p.addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { snd.Stop() })
			until(t, "the spoiled part has passed", func() bool { return r.Snapshot().PerStream[1] > relayed+100_000 })
			got := r.Snapshot()
			n, first := p.differences()
			if !tt.shifts && got.Corrupt != uint64(n) || tt.shifts && got.Corrupt < uint64(n) {
				t.Errorf("%d corrupt bytes, want %d", got.Corrupt, n)
			}
			c := got.Corruption
			if c == nil || c.Stream != 1 || c.Offset != uint64(first) || c.Origin != tt.origin || c.Shift != tt.move {
				t.Fatalf("corruption = %+v, want stream 1, offset %d, %s, shift %d", c, first, tt.origin, tt.move)
			}
			k := min(len(c.Want), len(p.is)-first)
			if !bytes.Equal(c.Want[:k], p.was[first:first+k]) || !bytes.Equal(c.Got[:k], p.is[first:first+k]) {
				t.Errorf("want % x, got % x, not what the relay saw", c.Want, c.Got)
			}
		})
	}
}

// TestRelayAlone checks that the relay spoils nothing by itself.
func TestRelayAlone(t *testing.T) {
	s := spec(2)
	r, err := load.Listen(t.Context(), s, loopback4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop() })
	p := newRelay(t, r, 1, func(b []byte) []byte { return b })
	snd, err := load.Dial(t.Context(), s, p.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snd.Stop() })
	until(t, "data passes", func() bool { return r.Snapshot().PerStream[1] > relayed+100_000 })
	if got := r.Snapshot(); got.Corrupt != 0 || got.Corruption != nil {
		t.Errorf("%d corrupt bytes, %+v, want none", got.Corrupt, got.Corruption)
	}
}
