package gso_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// buffers returns n buffers of size bytes each, filled with something else
// than zero.
func buffers(n, size int) ([][]byte, []int) {
	all := bytes.Repeat([]byte{0xa5}, n*size)
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = all[i*size : (i+1)*size : (i+1)*size]
	}
	return bufs, make([]int, n)
}

// split cuts pkt with Split and returns the frames.
func split(pkt []byte, h vnet.Header, o gso.Options) ([][]byte, error) {
	var s gso.Splitter
	if err := s.Reset(pkt, h, o); err != nil {
		return nil, err
	}
	size := 0
	for i := range s.Len() {
		size = max(size, s.Size(i))
	}
	bufs, sizes := buffers(s.Len(), o.Headroom+size)
	n, err := gso.Split(bufs, sizes, pkt, h, o)
	for i := range n {
		bufs[i] = bufs[i][o.Headroom : o.Headroom+sizes[i]]
	}
	return bufs[:n], err
}

// scatter cuts pkt with Scatter and returns the frames put together again.
func scatter(pkt []byte, h vnet.Header, o gso.Options) ([][]byte, error) {
	var s gso.Splitter
	if err := s.Reset(pkt, h, o); err != nil {
		return nil, err
	}
	segs := make([]gso.Segment, s.Len())
	n, err := gso.Scatter(segs, make([]byte, s.Len()*s.HeaderLen()+8), pkt, h, o)
	var out [][]byte
	for _, g := range segs[:n] {
		out = append(out, append(append([]byte{}, g.Header...), g.Payload...))
	}
	return out, err
}

// diff says where two lists of frames differ, or "".
func diff(got, want [][]byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d frames, want %d", len(got), len(want))
	}
	for i := range got {
		if bytes.Equal(got[i], want[i]) {
			continue
		}
		n := min(len(got[i]), len(want[i]))
		for j := range n {
			if got[i][j] != want[i][j] {
				return fmt.Sprintf("frame %d of %d, byte %d of %d: %#02x, want %#02x", i, len(got), j, len(got[i]), got[i][j], want[i][j])
			}
		}
		return fmt.Sprintf("frame %d of %d: %d bytes, want %d", i, len(got), len(got[i]), len(want[i]))
	}
	return ""
}

// TestSplitMatchesReference cuts random super-packets of every kind and
// compares both outputs with frames built one by one.
func TestSplitMatchesReference(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 1000 {
		lim := limits{tunnels: true, maxSegs: 40, maxLen: 65535}
		if i%50 == 0 {
			lim = limits{tunnels: true, maxSegs: 400, maxLen: 512 << 10} // BIG TCP
		}
		p := gen(r, lim)
		pkt, h, o := p.packet()
		before := bytes.Clone(pkt)
		want := p.segments()
		got, err := split(pkt, h, o)
		if d := diff(got, want); d != "" || err != nil {
			t.Fatalf("case %d (seed %d): Split: %v %s\n%+v\n%+v", i, seed, err, d, h, describe(p))
		}
		got, err = scatter(pkt, h, o)
		if d := diff(got, want); d != "" || err != nil {
			t.Fatalf("case %d (seed %d): Scatter: %v %s\n%+v\n%+v", i, seed, err, d, h, describe(p))
		}
		if !bytes.Equal(pkt, before) {
			t.Fatalf("case %d (seed %d): the super-packet changed", i, seed)
		}
	}
}

func describe(p *super) string {
	q := *p
	q.payload = nil
	return fmt.Sprintf("%d bytes of %+v", len(p.payload), q)
}

// TestPseudoChecksum leaves the transport checksum to a device, and is that
// device: the frames must then be those of Full, outer checksums included.
func TestPseudoChecksum(t *testing.T) {
	const seed = 2
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 400 {
		p := gen(r, limits{tunnels: true, maxSegs: 20, maxLen: 65535})
		p.checksum = gso.Pseudo
		pkt, h, o := p.packet()
		segs := make([]gso.Segment, 200)
		n, err := gso.Scatter(segs, make([]byte, 200*400), pkt, h, o)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]byte
		for _, g := range segs[:n] {
			f := append(append([]byte{}, g.Header...), g.Payload...)
			c := ^pkttest.Sum(f[g.CsumStart:], 0)
			if c == 0 && p.udp {
				c = 0xffff
			}
			f[g.CsumStart+g.CsumOffset], f[g.CsumStart+g.CsumOffset+1] = byte(c>>8), byte(c)
			got = append(got, f)
		}
		if d := diff(got, p.segments()); d != "" {
			t.Fatalf("case %d (seed %d): %s\n%s", i, seed, d, describe(p))
		}
		frames, err := split(pkt, h, o)
		if err != nil {
			t.Fatal(err)
		}
		for j, g := range segs[:n] {
			if !bytes.Equal(frames[j], append(append([]byte{}, g.Header...), g.Payload...)) {
				t.Fatalf("case %d (seed %d): Split and Scatter differ in frame %d", i, seed, j)
			}
		}
	}
}

// tcp4 returns a super-packet of n bytes of payload in segments of size.
func tcp4(n, size int) *super {
	return &super{size: size, payload: random(rand.New(rand.NewPCG(7, 7)), n), ip4: pkttest.IP4{ID: 65530, DF: true}, tcp: pkttest.TCP{Seq: 1<<32 - 100, Flags: 0x99}}
}

// TestRoomRunsOut holds n, the contents and the error against each other for
// every number of buffers and sizes. wireguard-go filled two buffers of three
// and reported one: a segment was lost.
func TestRoomRunsOut(t *testing.T) {
	p := tcp4(500, 100)
	pkt, h, o := p.packet()
	want := p.segments()
	for have := range 7 {
		for _, sizes := range []int{have, 6, 2} {
			bufs, _ := buffers(have, 200)
			lens := make([]int, sizes)
			n, err := gso.Split(bufs, lens, pkt, h, o)
			wantN := min(have, sizes, len(want))
			if n != wantN || (n < len(want)) != errors.Is(err, gso.ErrRoom) || n == len(want) && err != nil {
				t.Fatalf("%d buffers, %d sizes: Split = %d, %v, want %d frames", have, sizes, n, err, wantN)
			}
			for i := range bufs {
				if i < n && !bytes.Equal(bufs[i][:lens[i]], want[i]) {
					t.Errorf("%d buffers: frame %d is wrong", have, i)
				}
				if i >= n && bytes.Count(bufs[i], []byte{0xa5}) != len(bufs[i]) {
					t.Errorf("%d buffers: buffer %d was written, but not counted", have, i)
				}
			}
		}
	}
}

// TestBufferTooShort makes one buffer one byte too short for its frame.
func TestBufferTooShort(t *testing.T) {
	p := tcp4(450, 100)
	pkt, h, o := p.packet()
	want := p.segments()
	o.Headroom = 10
	for short := range want {
		bufs, sizes := buffers(len(want), 200)
		bufs[short] = bufs[short][:10+len(want[short])-1]
		n, err := gso.Split(bufs, sizes, pkt, h, o)
		if n != short || !errors.Is(err, gso.ErrRoom) {
			t.Errorf("buffer %d short: Split = %d, %v, want %d, ErrRoom", short, n, err, short)
		}
		if bytes.Count(bufs[short], []byte{0xa5}) != len(bufs[short]) {
			t.Errorf("buffer %d short: written all the same", short)
		}
		for i := range n {
			if bytes.Count(bufs[i][:10], []byte{0xa5}) != 10 || !bytes.Equal(bufs[i][10:10+sizes[i]], want[i]) {
				t.Errorf("buffer %d short: frame %d or its headroom is wrong", short, i)
			}
		}
	}
	bufs, sizes := buffers(1, 5)
	if n, err := gso.Split(bufs, sizes, pkt, h, o); n != 0 || !errors.Is(err, gso.ErrRoom) {
		t.Errorf("buffer shorter than the headroom: Split = %d, %v", n, err)
	}
}

// TestScatterRoomRunsOut does the same for Scatter: too few segments, too
// little scratch.
func TestScatterRoomRunsOut(t *testing.T) {
	p := tcp4(500, 100)
	pkt, h, o := p.packet()
	want := p.segments()
	for segs := range 7 {
		for scratch := 0; scratch <= 6*54; scratch += 9 {
			dst := make([]gso.Segment, segs)
			n, err := gso.Scatter(dst, make([]byte, scratch), pkt, h, o)
			wantN := min(segs, scratch/54, len(want))
			if n != wantN || (n < len(want)) != errors.Is(err, gso.ErrRoom) {
				t.Fatalf("%d segments, %d bytes: Scatter = %d, %v, want %d", segs, scratch, n, err, wantN)
			}
			for i, g := range dst {
				if i < n && !bytes.Equal(append(append([]byte{}, g.Header...), g.Payload...), want[i]) {
					t.Errorf("%d segments, %d bytes: segment %d is wrong", segs, scratch, i)
				}
				if i >= n && g.Header != nil {
					t.Errorf("%d segments, %d bytes: segment %d was set, but not counted", segs, scratch, i)
				}
			}
		}
	}
}

// TestResume takes up a Splitter where Split ran out of buffers.
func TestResume(t *testing.T) {
	p := tcp4(500, 100)
	pkt, h, o := p.packet()
	bufs, sizes := buffers(2, 200)
	n, err := gso.Split(bufs, sizes, pkt, h, o)
	if n != 2 || !errors.Is(err, gso.ErrRoom) {
		t.Fatalf("Split = %d, %v", n, err)
	}
	got := [][]byte{bufs[0][:sizes[0]], bufs[1][:sizes[1]]}
	var s gso.Splitter
	if err := s.Reset(pkt, h, o); err != nil {
		t.Fatal(err)
	}
	for i := n; i < s.Len(); i++ {
		b := make([]byte, s.Size(i))
		if _, err := s.Frame(b, i); err != nil {
			t.Fatal(err)
		}
		got = append(got, b)
	}
	if d := diff(got, p.segments()); d != "" {
		t.Error(d)
	}
}

func TestFrameIndexPanics(t *testing.T) {
	var s gso.Splitter
	pkt, h, o := tcp4(300, 100).packet()
	if err := s.Reset(pkt, h, o); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{-1, 3} {
		for name, f := range map[string]func(){
			"Frame":   func() { _, _ = s.Frame(make([]byte, 200), i) },
			"Segment": func() { _ = s.Segment(new(gso.Segment), make([]byte, 200), i) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s(%d) did not panic", name, i)
					}
				}()
				f()
			}()
		}
	}
}

// TestPartial checks GSO_PARTIAL: a large frame whose headers describe one
// segment, and what is left over. A device that replicates the headers with
// inner IDs counting up and outer IDs fixed, must arrive at the segments.
func TestPartial(t *testing.T) {
	for _, tt := range []struct {
		n, size int
		want    []int // segments per frame
	}{
		{450, 100, []int{4, 1}},
		{400, 100, []int{4}},
		{150, 100, []int{1, 1}},
		{90000, 1448, []int{45, 17, 1}},
		{65160, 1448, []int{45}},
		{130000, 65000, []int{1, 1}},
	} {
		p := tcp4(tt.n, tt.size)
		p.tunnel, p.csum, p.fixed = packet.VXLAN, true, true
		pkt, h, o := p.packet()
		o.Partial = true
		segs := make([]gso.Segment, 100)
		n, err := gso.Scatter(segs, make([]byte, 10000), pkt, h, o)
		if err != nil {
			t.Fatal(err)
		}
		var counts []int
		seg, off := 0, 0
		for i, g := range segs[:n] {
			counts = append(counts, g.Segments)
			if (g.GSOSize != 0) != (g.Segments > 1) {
				t.Errorf("%d/%d: frame %d has GSO size %d and %d segments", tt.n, tt.size, i, g.GSOSize, g.Segments)
			}
			one := p.frame(seg, off, min(off+tt.size, len(p.payload)), true)
			wantPart(t, p, g, one, i == n-1)
			seg += g.Segments
			off += len(g.Payload)
		}
		if fmt.Sprint(counts) != fmt.Sprint(tt.want) || off != tt.n {
			t.Errorf("%d bytes in %d: frames of %v segments, %d bytes, want %v", tt.n, tt.size, counts, off, tt.want)
		}
	}
}

// wantPart compares the headers of a partial frame with those of its first
// segment, which differ in FIN and PSH of the last frame and in the outer
// checksum: that is final while the inner one is not, and so it is checked by
// completing the inner one.
func wantPart(t *testing.T, p *super, g gso.Segment, one []byte, last bool) {
	t.Helper()
	f := append(append([]byte{}, g.Header...), g.Payload...)
	f = f[:len(one)]
	flags := g.CsumStart + 13
	if last {
		one[flags] |= p.tcp.Flags & 9
	}
	if !bytes.Equal(f[:40], one[:40]) || !bytes.Equal(f[42:], one[42:]) {
		t.Errorf("partial headers\n%x, want\n%x", f[:len(g.Header)], one[:len(g.Header)])
	}
	c := ^pkttest.Sum(f[g.CsumStart:], 0)
	f[g.CsumStart+16], f[g.CsumStart+17] = byte(c>>8), byte(c)
	if got := pkttest.Sum(f[34:], uint32(pkttest.Pseudo(f[14:], 17, len(f)-34))); got != 0xffff {
		t.Errorf("outer checksum of a partial frame: sum %#04x, want 0xffff", got)
	}
}
