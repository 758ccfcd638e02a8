package wirecheck_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/offlab/offlab/gso"
	tu "github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/internal/wirecheck"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

// A seg is a data segment of one flow.
type seg struct {
	seq   uint32
	size  int
	id    uint16
	flags uint8
	ttl   byte
	tos   byte
	tags  int
	after time.Duration
	tail  string // behind the packet
}

func (s seg) frame() []byte {
	l := []tu.Layer{tu.Eth{}}
	for range s.tags {
		l = append(l, tu.Tag{TCI: 10})
	}
	l = append(l, tu.IP4{ID: s.id, DF: true, TTL: s.ttl, TOS: s.tos}, tu.TCP{Seq: s.seq, Flags: s.flags | packet.ACK}, tu.Payload(make([]byte, s.size)))
	return append(tu.Build(l...), s.tail...)
}

// TestFlow: what one segment after another shows, with the words about it.
func TestFlow(t *testing.T) {
	for _, tt := range []struct {
		name string
		segs []seg
		want string // violations
		text string // of the first
		more map[wirecheck.Kind]uint64
	}{
		{
			name: "in-order", segs: []seg{{seq: 1000, size: 100, id: 1}, {seq: 1100, size: 100, id: 2}, {seq: 1200, size: 100, id: 3, flags: packet.PSH}},
			more: map[wirecheck.Kind]uint64{wirecheck.Data: 3, wirecheck.Psh: 1},
		},
		{
			name: "order", want: "order", text: "out of order by 3 × MSS: behind 300 bytes",
			segs: []seg{{seq: 0, size: 100, id: 1}, {seq: 200, size: 100, id: 3}, {seq: 300, size: 100, id: 4}, {seq: 400, size: 100, id: 5}, {seq: 100, size: 100, id: 2, after: time.Second}},
			more: map[wirecheck.Kind]uint64{wirecheck.Gap: 0},
		},
		{
			name: "sent-again-after-a-loss", segs: []seg{{seq: 0, size: 100, id: 1}, {seq: 200, size: 100, id: 3}, {seq: 100, size: 100, id: 4}},
			more: map[wirecheck.Kind]uint64{wirecheck.Gap: 1, wirecheck.Late: 1},
		},
		{
			name: "sent-again", segs: []seg{{seq: 0, size: 100, id: 1}, {seq: 100, size: 100, id: 2}, {seq: 0, size: 100, id: 3}},
			more: map[wirecheck.Kind]uint64{wirecheck.Again: 1},
		},
		{
			name: "order-without-id", want: "order", segs: []seg{{seq: 0, size: 100}, {seq: 200, size: 100}, {seq: 100, size: 100, after: time.Microsecond}},
		},
		{
			name: "late-without-id", segs: []seg{{seq: 0, size: 100}, {seq: 200, size: 100}, {seq: 100, size: 100, after: time.Millisecond}},
			more: map[wirecheck.Kind]uint64{wirecheck.Gap: 1, wirecheck.Late: 1},
		},
		{name: "overlap", want: "overlap", text: "its first 40 bytes", segs: []seg{{size: 100, id: 1}, {seq: 60, size: 100, id: 2}}},
		{name: "fin", want: "fin", text: "100 bytes behind the end", segs: []seg{{size: 100, id: 1, flags: packet.FIN}, {seq: 100, size: 100, id: 2}}},
		{name: "tag", want: "tag", text: "0 tags, the segment before has 2", segs: []seg{{size: 100, id: 1, tags: 2}, {seq: 100, size: 100, id: 2}}},
		{name: "tag-of-an-old-flow", segs: []seg{{size: 100, id: 1, tags: 1}, {seq: 0, size: 100, id: 2}}},
		{name: "tag-gained", segs: []seg{{size: 100, id: 1}, {seq: 100, size: 100, id: 2, tags: 1}}},
		{name: "ttl", want: "ttl", text: "63 behind 64", segs: []seg{{size: 100, id: 1}, {seq: 100, size: 100, id: 2, ttl: 63}}},
		{name: "dscp", want: "dscp", segs: []seg{{size: 100, id: 1}, {seq: 100, size: 100, id: 2, tos: 4}}},
		{name: "ecn-is-no-dscp", segs: []seg{{size: 100, id: 1, tos: 2}, {seq: 100, size: 100, id: 2, tos: 3}}},
		{name: "same-id", want: "same_id", text: "ID 7 on 3 segments", segs: []seg{{size: 100, id: 7}, {seq: 100, size: 100, id: 7}, {seq: 200, size: 100, id: 7}}},
		{name: "no-id", segs: []seg{{size: 100}, {seq: 100, size: 100}, {seq: 200, size: 100}}},
		{name: "trailer", want: "trailer", text: "2 bytes behind the packet: 61 62", segs: []seg{{size: 100, tail: "ab"}}},
		{name: "padding", segs: []seg{{size: 2, tail: "ab"}}, more: map[wirecheck.Kind]uint64{wirecheck.Padding: 1}},
		{name: "too-long", want: "too_long", text: "1540 bytes on a wire of 1500", segs: []seg{{size: 1500}}},
		{name: "full-and-trailer", want: "trailer", segs: []seg{{size: 1460, tail: "ab"}}},
		{name: "tags-are-not-of-the-mtu", segs: []seg{{size: 1460, tags: 2}}},
		{name: "cwr-of-unknown-ecn", segs: []seg{{size: 100, id: 1, flags: packet.CWR}, {seq: 100, size: 100, id: 2, flags: packet.CWR}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := wirecheck.New(wirecheck.Config{})
			now := time.Duration(0)
			for _, s := range tt.segs {
				now += s.after
				c.Frame(now, s.frame())
			}
			r := c.Report()
			if got := violations(r); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			for k, f := range r.First {
				if k.Wrong() && !strings.Contains(f.Text, tt.text) {
					t.Errorf("%s: %q, want %q in it", k, f.Text, tt.text)
				}
			}
			for k, n := range tt.more {
				if r.Counts[k] != n {
					t.Errorf("%d times %s, want %d", r.Counts[k], k, n)
				}
			}
			if r.Frames != uint64(len(tt.segs)) {
				t.Errorf("%d frames, want %d", r.Frames, len(tt.segs))
			}
		})
	}
}

// TestHostile: headers that claim what is not there.
func TestHostile(t *testing.T) {
	good := seg{size: 100}.frame()
	for _, tt := range []struct {
		name   string
		change func(b []byte) []byte
		want   string
	}{
		{"cut", func(b []byte) []byte { return b[:80] }, "truncated"},
		{"cut-in-header", func(b []byte) []byte { return b[:40] }, "header"},
		{"empty", func([]byte) []byte { return nil }, "header"},
		{"length-0", func(b []byte) []byte { packet.IPv4(b[14:]).SetTotalLen(0); return b }, "header"},
		{"length-30", func(b []byte) []byte { packet.IPv4(b[14:]).SetTotalLen(30); return b }, "header"},
		{"ip-sum", func(b []byte) []byte { b[24]++; return b }, "csum_ip"},
		{"sum", func(b []byte) []byte { b[100]++; return b }, "csum"},
		{"arp", func(b []byte) []byte { b[12], b[13] = 8, 6; return b }, ""},
	} {
		c := wirecheck.New(wirecheck.Config{})
		c.Frame(0, tt.change(append([]byte(nil), good...)))
		if got := violations(c.Report()); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestMTUGrows: the MSS that a host announces tells of its MTU.
func TestMTUGrows(t *testing.T) {
	c := wirecheck.New(wirecheck.Config{})
	c.Frame(0, tu.Build(tu.Eth{}, tu.IP4{}, tu.TCP{Flags: packet.SYN, Options: []byte{1, 1, 2, 4, 8960 >> 8, 8960 & 0xff, 0, 0}}, tu.Payload(nil)))
	c.Frame(0, tu.Build(tu.Eth{}, tu.IP4{}, tu.TCP{Seq: 1}, tu.Payload(make([]byte, 8960))))
	if got := violations(c.Report()); got != "" {
		t.Errorf("%q, want nothing", got)
	}
	c.Reset()
	c.Frame(0, tu.Build(tu.Eth{}, tu.IP4{}, tu.TCP{Seq: 1}, tu.Payload(make([]byte, 8960))))
	if got := violations(c.Report()); got != "too_long" {
		t.Errorf("after Reset %q, want too_long", got)
	}
}

// TestFresh: what is left over of a connection that began before is not looked
// at, and what is no TCP is.
func TestFresh(t *testing.T) {
	c := wirecheck.New(wirecheck.Config{Fresh: true})
	bad := seg{size: 100, seq: 1, tail: "x"}.frame()
	c.Frame(0, bad)
	if r := c.Report(); violations(r) != "" || r.Counts[wirecheck.Stray] != 1 {
		t.Errorf("an old connection has %q, %+v", violations(r), r.Counts)
	}
	c.Frame(0, seg{size: 0, flags: packet.SYN}.frame())
	c.Frame(0, bad)
	if got := violations(c.Report()); got != "trailer" {
		t.Errorf("a new connection has %q, want trailer", got)
	}
	c.Reset()
	c.Frame(0, bad)
	c.Frame(0, append(tu.Build(tu.Eth{}, tu.IP4{}, tu.UDP{}, tu.Payload(make([]byte, 100))), 1))
	if r := c.Report(); r.Counts[wirecheck.Trailer] != 1 || r.Counts[wirecheck.Stray] != 1 {
		t.Errorf("after Reset: %+v, want one stray and one trailer", r.Counts)
	}
}

// TestAlone: without all frames there are no gaps to see, and a frame is what it
// is.
func TestAlone(t *testing.T) {
	c := wirecheck.New(wirecheck.Config{Alone: true})
	c.Frame(0, seg{seq: 1, size: 100, tags: 1}.frame())
	c.Frame(0, seg{seq: 101, size: 100, tail: "x"}.frame())
	c.Frame(0, seg{seq: 501, size: 100}.frame())
	if r := c.Report(); violations(r) != "trailer" || r.Counts[wirecheck.Gap]+r.Counts[wirecheck.Data] != 0 {
		t.Errorf("%+v, want one trailer", r.Counts)
	}
}

// TestReport: a report survives JSON, and two add up.
func TestReport(t *testing.T) {
	c := wirecheck.New(wirecheck.Config{})
	c.Frame(0, seg{size: 100, tail: "x"}.frame())
	b, err := json.Marshal(c.Report())
	if err != nil {
		t.Fatal(err)
	}
	var r wirecheck.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	sum := r.Add(c.Report())
	if sum.Frames != 2 || sum.Counts[wirecheck.Trailer] != 2 || sum.Wrong() != 2 || sum.First[wirecheck.Trailer].Number != 1 {
		t.Errorf("%s adds up to %+v", b, sum)
	}
	for _, k := range wirecheck.Kinds() {
		if k.Title() == "" || k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

// TestHealthy: whatever gso makes of random super-packets has no violation.
func TestHealthy(t *testing.T) {
	const seed = 20261130
	rng := rand.New(rand.NewPCG(seed, 1))
	agreed := &wirecheck.Agreed{}
	c := wirecheck.New(wirecheck.Config{Agreed: agreed})
	seq, id := rng.Uint32(), uint16(1)
	for i := range 2000 {
		size := 1 + rng.IntN(1448)
		data := make([]byte, size+1+rng.IntN(40_000))
		flags := uint8(packet.ACK)
		if rng.IntN(2) == 0 {
			flags |= packet.PSH
		}
		h := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv4, GSOSize: uint16(size), CsumStart: 34, CsumOffset: 16}
		b := tu.Build(tu.Eth{}, tu.IP4{ID: id, DF: true}, tu.TCP{Seq: seq, Flags: flags, Partial: true}, tu.Payload(data))
		var s gso.Splitter
		if err := s.Reset(b, h, gso.Options{}); err != nil {
			t.Fatal(err)
		}
		for j := range s.Len() {
			f := make([]byte, max(60, s.Size(j)))
			if _, err := s.Frame(f, j); err != nil {
				t.Fatal(err)
			}
			c.Frame(time.Duration(i)*time.Millisecond, f)
		}
		seq += uint32(len(data))
		id += uint16(s.Len())
		if id == 0 {
			id = 1
		}
	}
	if got := violations(c.Report()); got != "" {
		t.Errorf("%q (seed %d): %+v", got, seed, c.Report().First)
	}
}

func TestNoAllocs(t *testing.T) {
	c := wirecheck.New(wirecheck.Config{Agreed: &wirecheck.Agreed{}})
	bad := seg{size: 1400, tail: "x"}.frame()
	c.Frame(0, bad)
	if n := testing.AllocsPerRun(100, func() { c.Frame(0, bad) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// FuzzFrames: no frame, and no two frames, make a Checker panic, and counts do
// not wrap.
func FuzzFrames(f *testing.F) {
	f.Add(seg{size: 100, tags: 1}.frame(), seg{seq: 50, size: 100}.frame())
	f.Add(seg{size: 10, flags: packet.SYN}.frame(), seg{size: 10, flags: packet.FIN}.frame())
	f.Add(tu.Build(tu.Eth{}, tu.IP4{}, tu.VXLAN{Checksum: true}, tu.Eth{}, tu.IP6{}, tu.TCP{}, tu.Payload("x")), []byte{})
	f.Add(tu.Build(tu.Eth{}, tu.IP6{}, tu.Ext{Words: 1}, tu.UDP{}, tu.Payload("x")), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		c := wirecheck.New(wirecheck.Config{Agreed: &wirecheck.Agreed{}})
		for range 2 {
			c.Frame(0, a)
			c.Frame(time.Second, b)
		}
		for k, n := range c.Report().Counts {
			if n > 8 {
				t.Errorf("%d times %s in four frames", n, k)
			}
		}
	})
}

// BenchmarkFrame is the cost of a full segment, and for comparison that of its
// checksum alone.
func BenchmarkFrame(b *testing.B) {
	const n = 512
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = seg{size: 1448, seq: uint32(i * 1448), id: uint16(i + 1)}.frame()
	}
	b.Run("what=check", func(b *testing.B) {
		c := wirecheck.New(wirecheck.Config{})
		b.SetBytes(int64(len(frames[0])))
		for i := 0; b.Loop(); i++ {
			if i%n == 0 {
				c.Reset()
			}
			c.Frame(0, frames[i%n])
		}
	})
	b.Run("what=sum", func(b *testing.B) {
		b.SetBytes(int64(len(frames[0])))
		for i := 0; b.Loop(); i++ {
			checksum.Sum(frames[i%n][34:])
		}
	})
}
