package gro_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// stamps returns the recommended options with two timestamps.
func stamps(value, echo uint32) []byte {
	o := []byte{1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0}
	be.PutUint32(o[4:], value)
	be.PutUint32(o[8:], echo)
	return o
}

func frames(tb testing.TB, p proto, segs ...seg) (pkts []gro.Packet) {
	tb.Helper()
	for _, s := range segs {
		pkts = append(pkts, gro.Packet{Data: s.frame(tb, p)})
	}
	return pkts
}

// TestLRORules has each rule of net/ipv4/inet_lro.c.
func TestLRORules(t *testing.T) {
	ts := func(v, e uint32) func(*seg) { return options(stamps(v, e)...) }
	tests := []struct {
		name  string
		proto proto
		opt   gro.Options
		sends []seg
		want  []string
	}{
		{name: "merges", sends: []seg{at(0, 100), at(100, 100)}, want: []string{"200/2 flushed"}},
		{name: "larger-merges", sends: []seg{at(0, 100), at(100, 300)}, want: []string{"400/2 flushed"}},
		{name: "goes-on-after-short", sends: []seg{at(0, 100), at(100, 50), at(150, 100)}, want: []string{"250/3 flushed"}},
		{name: "push-is-ignored", sends: []seg{at(0, 100), at(100, 100, flags(packet.PSH)), at(200, 100)}, want: []string{"300/3 flushed"}},
		{name: "window-ack-ttl-id-are-not-compared", sends: []seg{at(0, 100, id(1, true)), at(100, 100, id(9, true), func(s *seg) {
			s.tcp.Window, s.tcp.Ack, s.ip4.TTL = 7, 9, 3
		})}, want: []string{"200/2 flushed"}},
		{name: "out-of-order-ends", sends: []seg{at(0, 100), at(300, 100), at(400, 100)}, want: []string{"100/1 out-of-order", "100/1 lone-end", "100/1 flushed"}},
		{name: "fin-ends", sends: []seg{at(0, 100), at(100, 100, flags(packet.FIN))}, want: []string{"100/1 bad-follower", "100/1 control"}},
		{name: "ece-ends", sends: []seg{at(0, 100), at(100, 100, flags(packet.ECE))}, want: []string{"100/1 bad-follower", "100/1 control"}},
		{name: "congestion-experienced-ends", sends: []seg{at(0, 100), at(100, 100, class(3))}, want: []string{"100/1 bad-follower", "100/1 not-eligible"}},
		{name: "other-ecn-merges", sends: []seg{at(0, 100, class(2)), at(100, 100, class(2))}, want: []string{"200/2 flushed"}},
		{name: "no-payload", sends: []seg{at(0, 100), at(100, 0)}, want: []string{"100/1 bad-follower", "0/1 no-payload"}},
		{name: "timestamp-merges", sends: []seg{at(0, 100, ts(5, 1)), at(100, 100, ts(6, 2))}, want: []string{"200/2 flushed"}},
		{name: "timestamp-goes-back", sends: []seg{at(0, 100, ts(5, 1)), at(100, 100, ts(4, 2))}, want: []string{"100/1 bad-follower", "100/1 not-eligible"}},
		{name: "no-echo", sends: []seg{at(0, 100, ts(5, 0))}, want: []string{"100/1 not-eligible"}},
		{name: "other-options", sends: []seg{at(0, 100, options(1, 1, 1, 1))}, want: []string{"100/1 not-eligible"}},
		{name: "timestamp-missing", sends: []seg{at(0, 100, ts(5, 1)), at(100, 100)}, want: []string{"100/1 bad-follower", "100/1 not-eligible"}},
		{name: "ip-options", sends: []seg{at(0, 100), at(100, 100, func(s *seg) { s.ip4.Options = []byte{1, 1, 1, 1} })}, want: []string{"100/1 bad-follower", "100/1 ip-options"}},
		{name: "ipv6-passes", proto: ipv6, sends: []seg{at(0, 100), at(100, 100)}, want: []string{"100/1 unknown", "100/1 unknown"}},
		{
			name: "no-descriptor", opt: gro.Options{MaxFlows: 1}, sends: []seg{at(0, 100), at(0, 100, func(s *seg) { s.tcp.Src = 7 })},
			want: []string{"100/1 no-room", "100/1 flushed"},
		},
		{name: "max-aggr", opt: gro.Options{MaxSegments: 2}, sends: []seg{at(0, 100), at(100, 100), at(200, 100)}, want: []string{"200/2 segment-limit", "100/1 flushed"}},
		{
			name: "mtu-from-the-end", opt: gro.Options{Limits: gro.Limits{MTU: 65000}}, sends: []seg{at(0, 300), at(300, 300), at(600, 10)},
			want: []string{"600/2 size-limit", "10/1 flushed"},
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			p := c.proto
			if p == "" {
				p = ipv4
			}
			for _, gather := range []bool{false, true} {
				c.opt.Policy, c.opt.Gather = gro.LRO, gather
				got := outcomes(t, pushAll(newEngine(t, c.opt), frames(t, p, c.sends...)))
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("gather %v: outputs differ (-want +got):\n%s", gather, d)
				}
			}
		})
	}
}

// TestLROHeader looks at what LRO writes: acknowledgment, window and echo of the
// last segment, the first timestamp, and a checksum that is right if those of
// the segments were, odd lengths included.
func TestLROHeader(t *testing.T) {
	for _, broken := range []bool{false, true} {
		e := newEngine(t, gro.Options{Policy: gro.LRO})
		pkts := frames(t, ipv4, at(0, 101, options(stamps(10, 20)...)),
			at(101, 33, options(stamps(11, 21)...), func(s *seg) { s.tcp.Window, s.tcp.Ack = 9, 99 }),
			at(134, 200, options(stamps(12, 22)...), func(s *seg) { s.tcp.Window, s.tcp.Ack = 10, 100 }))
		if broken {
			pkts[1].Data[len(pkts[1].Data)-1] ^= 1
		}
		got := pushAll(e, pkts)
		if len(got) != 1 {
			t.Fatalf("%d outputs, want 1", len(got))
		}
		b := got[0].Data
		ip, tcp := packet.IPv4(b[14:]), packet.TCP(b[34:])
		if tcp.Ack() != 100 || tcp.Window() != 10 || be.Uint32(tcp.Options()[4:]) != 10 || be.Uint32(tcp.Options()[8:]) != 22 {
			t.Errorf("ack %d, window %d, options %x", tcp.Ack(), tcp.Window(), tcp.Options())
		}
		if ip.TotalLen() != 20+32+334 || pkttest.Sum(ip[:20], 0) != 0xffff {
			t.Errorf("IP header %x", ip[:20])
		}
		if valid := pkttest.Sum(tcp, uint32(pkttest.Pseudo(ip, 6, len(tcp)))) == 0xffff; valid == broken {
			t.Errorf("checksum valid: %v with a broken segment: %v", valid, broken)
		}
		if got[0].Header.GSOType != vnet.GSONone || got[0].Header.GSOSize != 200 {
			t.Errorf("header %+v, want the largest size and no type", got[0].Header)
		}
	}
}

// TestHardwareLimits has what a device does not do, or does in bounds.
func TestHardwareLimits(t *testing.T) {
	ts := options(timestamp(1, 0)...)
	tests := []struct {
		name  string
		proto proto
		opt   gro.Options
		sends []seg
		want  []string
	}{
		{name: "bnx2x-merges", opt: gro.BNX2X(), sends: []seg{at(0, 100, ts), at(100, 100, ts)}, want: []string{"200/2 flushed"}},
		{
			name: "bnx2x-options", opt: gro.BNX2X(), sends: []seg{at(0, 100), at(100, 100, options(1, 1, 1, 1))},
			want: []string{"100/1 bad-follower", "100/1 not-eligible"},
		},
		{name: "bnx2x-tunnel", proto: ipip4, opt: gro.BNX2X(), sends: []seg{at(0, 100), at(100, 100)}, want: []string{"100/1 not-eligible", "100/1 not-eligible"}},
		{
			name: "bnx2x-extension-header", proto: ipv6, opt: gro.BNX2X(), sends: []seg{at(0, 100, func(s *seg) { s.ext = pkttest.Ext{} })},
			want: []string{"100/1 not-eligible"},
		},
		{
			name: "qede-small-packet-ends", opt: gro.QEDE(1500), sends: []seg{at(0, 1000), at(1000, 1000), at(2000, 100), at(2100, 1000)},
			want: []string{"2000/2 bad-follower", "100/1 not-eligible", "1000/1 flushed"},
		},
		{name: "qede-consistent", opt: gro.QEDE(1500), sends: []seg{at(0, 1000), at(1000, 1100)}, want: []string{"1000/1 larger", "1100/1 flushed"}},
		{
			name: "qede-out-of-order", opt: gro.QEDE(1500), sends: []seg{at(0, 1000), at(2000, 1000), at(3000, 1000)},
			want: []string{"1000/1 out-of-order", "2000/2 flushed"},
		},
		{name: "bnxt-small", opt: gro.BNXT(1448), sends: []seg{at(0, 100)}, want: []string{"100/1 not-eligible"}},
		{
			name: "bad-checksum-ends-in-order", opt: gro.QEDE(1500), sends: []seg{at(0, 1000), at(1000, 1000, spoil(func(f []byte, _ *packet.Layout) { f[len(f)-1]++ }))},
			want: []string{"1000/1 bad-follower", "1000/1 bad-checksum"},
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			p := c.proto
			if p == "" {
				p = ipv4
			}
			if got := outcomes(t, pushAll(newEngine(t, c.opt), frames(t, p, c.sends...))); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("outputs %v, want %v", got, c.want)
			}
		})
	}
}

// TestHardwareBounds: as many aggregations as the device has, and as many
// segments; other flows pass and keep their order.
func TestHardwareBounds(t *testing.T) {
	e := newEngine(t, gro.BNX2X())
	var pkts []gro.Packet
	for i := range 130 {
		s := at(0, 100)
		s.tcp.Src = uint16(100 + i%65)
		s.at += i / 65 * 100
		s.tcp.Seq = uint32(s.at)
		pkts = append(pkts, gro.Packet{Data: s.frame(t, ipv4)})
	}
	got := pushAll(e, pkts)
	if len(got) != 66 || got[0].Reason != gro.NoRoom || got[1].Reason != gro.NoRoom || got[2].Segments != 2 {
		t.Errorf("%d outputs, the first %v %v", len(got), got[0].Reason, got[1].Reason)
	}

	opt := gro.BNXT(1448)
	if opt.MaxSegments != 33 { // 32·1448 bytes fit in 16 pages; 64 do not
		t.Errorf("bnxt: %d segments, want 33", opt.MaxSegments)
	}
	opt.MaxSegments = 5
	pkts = nil
	for i := range 12 {
		pkts = append(pkts, gro.Packet{Data: at(i*1000, 1000).frame(t, ipv4)})
	}
	want := []string{"5000/5 segment-limit", "5000/5 segment-limit", "2000/2 flushed"}
	if got := outcomes(t, pushAll(newEngine(t, opt), pkts)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outputs %v, want %v", got, want)
	}
}

// TestHold: with Options.Hold packets stay over several calls and leave when
// they are old, not sooner.
func TestHold(t *testing.T) {
	const us = time.Microsecond
	e := newEngine(t, gro.Options{Hold: 100 * us})
	push := func(now time.Duration, s seg) []string {
		return outcomes(t, keep(nil, e.Push(now, gro.Packet{Data: s.frame(t, ipv4)})))
	}
	other := func(s *seg) { s.tcp.Src = 7 }
	if _, ok := e.Deadline(); ok {
		t.Error("an empty engine has a deadline")
	}
	push(0, at(0, 100))
	push(50*us, at(0, 100, other))
	push(60*us, at(100, 100))
	if at, ok := e.Deadline(); !ok || at != 100*us {
		t.Errorf("Deadline() = %v, %v, want 100µs", at, ok)
	}
	if got := len(e.Flush(99 * us)); got != 0 {
		t.Errorf("Flush at 99 µs returned %d outputs", got)
	}
	if got := outcomes(t, keep(nil, e.Flush(100*us))); fmt.Sprint(got) != "[200/2 timeout]" {
		t.Errorf("Flush at 100 µs returned %v", got)
	}
	if got := push(149*us, at(200, 100)); len(got) != 0 {
		t.Errorf("Push at 149 µs returned %v", got)
	}
	if got := push(150*us, at(300, 100)); fmt.Sprint(got) != "[100/1 timeout]" {
		t.Errorf("Push at 150 µs returned %v", got)
	}
	if e.Held() != 1 {
		t.Errorf("Held() = %d, want 1", e.Held())
	}
	if got := outcomes(t, keep(nil, e.FlushAll())); fmt.Sprint(got) != "[200/2 flushed]" || e.Count(gro.Timeout) != 2 {
		t.Errorf("FlushAll returned %v; %d timeouts", got, e.Count(gro.Timeout))
	}
}

// TestMemoryIsBounded: a flood of flows completes the oldest and takes no more
// memory than was there.
func TestMemoryIsBounded(t *testing.T) {
	for _, gather := range []bool{false, true} {
		e := newEngine(t, gro.Options{MaxFlows: 16, Gather: gather})
		evicted := 0
		for i := range 5000 {
			s := at(0, 100)
			s.ip4.Src, s.ip4.Dst = [4]byte{10, 1, byte(i >> 8), byte(i)}, [4]byte{10, 2, 0, 1}
			for _, r := range keep(nil, e.Push(0, gro.Packet{Data: s.frame(t, ipv4)})) {
				if r.Reason != gro.Evicted || int(be.Uint16(r.Data[28:])) != evicted {
					t.Fatalf("output %v of flow %d, want evicted %d", r.Reason, be.Uint16(r.Data[28:]), evicted)
				}
				evicted++
			}
			if e.Held() > 16 || e.Flows() > 16+16 {
				t.Fatalf("held %d with %d buffers, want at most 16 and 32", e.Held(), e.Flows())
			}
		}
		if evicted != 5000-16 {
			t.Errorf("%d evicted", evicted)
		}
	}
}

// TestBigTCP merges beyond 64 KB when asked; the IP length is 0 then.
func TestBigTCP(t *testing.T) {
	for _, p := range []proto{ipv4, ipv6} {
		e := newEngine(t, gro.Options{MaxSize: gro.MaxMaxSize})
		var pkts []gro.Packet
		for i := range 100 {
			pkts = append(pkts, gro.Packet{Data: at(i*4000, 4000).frame(t, p)})
		}
		got := pushAll(e, pkts)
		if len(got) != 1 || got[0].Segments != 100 {
			t.Fatalf("%s: %d outputs", p, len(got))
		}
		l, err := packet.Parse(got[0].Data, packet.StartEthernet)
		if err != nil || l.Length != map[proto]int{ipv4: 0, ipv6: 40}[p] {
			t.Errorf("%s: length %d, %v", p, l.Length, err)
		}
	}
}

// TestIPOnly: on a TUN the packets begin with the IP header.
func TestIPOnly(t *testing.T) {
	e := newEngine(t, gro.Options{Start: packet.StartIP})
	var pkts []gro.Packet
	for _, p := range []proto{ipv4, ipv6} {
		for i := range 3 {
			pkts = append(pkts, gro.Packet{Data: at(i*100, 100).frame(t, p)[14:]})
		}
	}
	got := pushAll(e, pkts)
	if len(got) != 2 || got[0].Segments != 3 || got[1].Segments != 3 || got[0].Header.CsumStart != 20 || got[1].Header.CsumStart != 40 {
		t.Errorf("got %d outputs: %+v", len(got), got)
	}
}

// TestChecksumFlags: what a device says about a checksum spares its
// computation, and a checksum that is not there yet is not missed.
func TestChecksumFlags(t *testing.T) {
	bad := spoil(func(f []byte, l *packet.Layout) { f[l.Innermost().Transport+16] ^= 1 })
	tests := []struct {
		name string
		opt  gro.Options
		h    vnet.Header
		want string
	}{
		{"unknown", gro.Options{}, vnet.Header{}, "[100/1 bad-checksum 100/1 bad-checksum]"},
		{"trusted", gro.Options{TrustChecksums: true}, vnet.Header{}, "[200/2 flushed]"},
		{"verified", gro.Options{}, vnet.Header{Flags: vnet.DataValid}, "[200/2 flushed]"},
		{"to-be-filled-in", gro.Options{}, vnet.Header{Flags: vnet.NeedsCsum, CsumStart: 34, CsumOffset: 16}, "[200/2 flushed]"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			pkts := frames(t, ipv4, at(0, 100, bad), at(100, 100, bad))
			pkts[0].Header, pkts[1].Header = c.h, c.h
			if got := outcomes(t, pushAll(newEngine(t, c.opt), pkts)); fmt.Sprint(got) != c.want {
				t.Errorf("outputs %v, want %v", got, c.want)
			}
		})
	}
}

// TestOptionErrors has each option out of its range.
func TestOptionErrors(t *testing.T) {
	for _, c := range []struct {
		want string
		opt  gro.Options
	}{
		{"Policy", gro.Options{Policy: 9}},
		{"Semantics", gro.Options{Semantics: 9}},
		{"Start", gro.Options{Start: 9}},
		{"MaxFlows", gro.Options{MaxFlows: -1}},
		{"MaxFlows", gro.Options{MaxFlows: 12, Buckets: 8}},
		{"Buckets", gro.Options{Buckets: 3}},
		{"MaxSize", gro.Options{MaxSize: 20}},
		{"MaxSize", gro.Options{Policy: gro.LRO, MaxSize: 100000}},
		{"MaxSegments", gro.Options{MaxSegments: -1}},
		{"Hold", gro.Options{Hold: -1}},
		{"Limits.MinSize", gro.Options{Limits: gro.Limits{MinSize: -1}}},
		{"Limits.MTU", gro.Options{Limits: gro.Limits{MTU: 1}}},
	} {
		_, err := gro.New(c.opt)
		var oe *gro.OptionError
		if !errors.As(err, &oe) || oe.Option != c.want {
			t.Errorf("New(%+v): %v, want an error of %s", c.opt, err, c.want)
		}
	}
}

// TestNames: every value has a name of its own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range gro.Reasons() {
		if s := r.String(); s == "" || s == "unknown-reason" || seen[s] {
			t.Errorf("reason %d is called %q", r, s)
		} else {
			seen[s] = true
		}
	}
	if got := gro.Reason(255).String(); got != "unknown-reason" {
		t.Errorf("Reason(255) is called %q", got)
	}
	if got := fmt.Sprint(gro.Linux, gro.LRO, gro.Hardware, gro.Policy(9), gro.Linux612, gro.Linux616, gro.Linux618, gro.Linux72); got != "linux lro hardware unknown 6.12 6.16 6.18 7.2" {
		t.Errorf("names are %q", got)
	}
}

// TestNoAllocs: nothing is allocated per packet, in any mode and policy.
func TestNoAllocs(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  gro.Options
	}{
		{"copy", gro.Options{}},
		{"gather", gro.Options{Gather: true}},
		{"trusted", gro.Options{Gather: true, TrustChecksums: true}},
		{"lro", gro.Options{Policy: gro.LRO}},
		{"hardware", gro.QEDE(1500)},
	} {
		for _, flows := range []int{1, 64, 128} { // more than can be held
			pkts, _ := train(flows, 10, 1448, tcp4)
			e := newEngine(t, c.opt)
			run := func() { e.Push(0, pkts...); e.Flush(0) }
			run() // buffers of the outputs of one call
			if got := testing.AllocsPerRun(10, run); got != 0 {
				t.Errorf("%s, %d flows: %v allocations", c.name, flows, got)
			}
		}
	}
}
