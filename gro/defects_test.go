package gro_test

import (
	"fmt"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// outcome is what a defect test looks at: "200/2 push" is an output of 200
// bytes of payload in two segments that left because of PSH.
func outcomes(tb testing.TB, rs []result) []string {
	tb.Helper()
	var s []string
	for _, r := range rs {
		s = append(s, fmt.Sprintf("%d/%d %v", payloadLen(tb, r.Data), r.Segments, r.Reason))
	}
	return s
}

// A defect is one that another engine was seen to have.
type defect struct {
	name  string // what goes wrong, and in which engine
	proto proto
	sends []seg
	want  []string
}

var defects = []defect{
	{
		"merges-across-window-wireguard-go-tailscale-gvisor", ipv4,
		[]seg{at(0, 100), at(100, 100, func(s *seg) { s.tcp.Window++ })},
		[]string{"100/1 window-changed", "100/1 flushed"},
	},
	{
		"merges-across-ip-id-jump-wireguard-go-tailscale-gvisor", ipv4,
		[]seg{at(0, 100, id(1, true)), at(100, 100, id(3, true))},
		[]string{"100/1 id-jump", "100/1 flushed"},
	},
	{
		"merges-across-flow-label-wireguard-go", ipv6,
		[]seg{at(0, 100), at(100, 100, func(s *seg) { s.ip6.Flow = 1 })},
		[]string{"100/1 flushed", "100/1 flushed"},
	},
	{
		"merges-across-reserved-bits-wireguard-go-gvisor", ipv4,
		[]seg{at(0, 100), at(100, 100, func(s *seg) { s.tcp.Reserved = 1 })},
		[]string{"100/1 flags-changed", "100/1 flushed"},
	},
	{
		"merges-across-df-gvisor", ipv4,
		[]seg{at(0, 100, id(1, true)), at(100, 100, id(2, false))},
		[]string{"100/1 df-changed", "100/1 flushed"},
	},
	{
		"merges-bad-ipv4-checksum-wireguard-go", ipv4,
		[]seg{at(0, 100), at(100, 100, spoil(func(f []byte, l *packet.Layout) { f[l.Network+11] ^= 1 }))},
		[]string{"100/1 bad-header-checksum", "100/1 flushed"},
	},
	{
		"merges-bad-tcp-checksum-dpdk", ipv4,
		[]seg{at(0, 100), at(100, 100, spoil(func(f []byte, l *packet.Layout) { f[len(f)-1] ^= 1 }))},
		[]string{"100/1 bad-checksum", "100/1 flushed"},
	},
	{
		// A second packet that is wrong must not decide whether the ID is fixed.
		"bad-checksum-decides-nothing", ipv4,
		[]seg{
			at(0, 100, id(8, true)),
			at(100, 100, id(8, true), spoil(func(f []byte, _ *packet.Layout) { f[len(f)-1] ^= 1 })),
			at(100, 100, id(9, true)),
		},
		[]string{"100/1 bad-checksum", "200/2 flushed"},
	},
	{
		"fin-never-merges-wireguard-go", ipv4,
		[]seg{at(0, 100), at(100, 100, flags(packet.FIN))},
		[]string{"200/2 fin"},
	},
	{
		"ece-never-merges-wireguard-go", ipv4,
		[]seg{at(0, 100, flags(packet.ECE)), at(100, 100, flags(packet.ECE))},
		[]string{"200/2 flushed"},
	},
	{
		"merges-a-larger-segment-gvisor", ipv4,
		[]seg{at(0, 500), at(500, 1000)},
		[]string{"500/1 larger", "1000/1 flushed"},
	},
	{
		"merges-across-ttl-dpdk-vpp", ipv4,
		[]seg{at(0, 100), at(100, 100, func(s *seg) { s.ip4.TTL = 63 })},
		[]string{"100/1 ttl-changed", "100/1 flushed"},
	},
	{
		"merges-across-tos-dpdk-vpp", ipv6,
		[]seg{at(0, 100), at(100, 100, class(3))},
		[]string{"100/1 tos-changed", "100/1 flushed"},
	},
	{
		"merges-across-timestamps-vpp", ipv4,
		[]seg{at(0, 100, options(timestamp(1, 0)...)), at(100, 100, options(timestamp(2, 0)...))},
		[]string{"100/1 options-changed", "100/1 flushed"},
	},
	{
		"writes-the-last-ack-vpp", ipv4,
		[]seg{at(0, 100), at(100, 100, func(s *seg) { s.tcp.Ack++ })},
		[]string{"100/1 ack-changed", "100/1 flushed"},
	},
	{
		"goes-on-after-a-short-segment-dpdk", ipv4,
		[]seg{at(0, 100), at(100, 50), at(150, 100)},
		[]string{"150/2 short", "100/1 flushed"},
	},
	{
		"prepends-out-of-order-wireguard-go-dpdk", ipv4,
		[]seg{at(100, 100), at(0, 100)},
		[]string{"100/1 out-of-order", "100/1 flushed"},
	},
	{
		"small-packets-excluded-vpp", ipv4,
		[]seg{at(0, 1), at(1, 1), at(2, 1)},
		[]string{"3/3 flushed"},
	},
	{
		"loses-an-ack-behind-data-gvisor-11198", ipv4,
		[]seg{at(0, 100), at(100, 0, func(s *seg) { s.tcp.Ack++ })},
		[]string{"100/1 ack-changed", "0/1 no-payload"},
	},
}

// TestDefectsElsewhere has the defects of other engines that were executed.
func TestDefectsElsewhere(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			var frames [][]byte
			for _, s := range d.sends {
				frames = append(frames, s.frame(t, d.proto))
			}
			e := newEngine(t, gro.Options{})
			if got := outcomes(t, runBurst(e, frames)); fmt.Sprint(got) != fmt.Sprint(d.want) {
				t.Errorf("outputs %v, want %v", got, d.want)
			}
		})
	}
}

// TestFlushDeliversEveryFlow: gvisor#14081 delivers one packet per bucket.
func TestFlushDeliversEveryFlow(t *testing.T) {
	for _, buckets := range []int{1, 8} {
		e := newEngine(t, gro.Options{Buckets: buckets})
		for i := range 3 {
			s := at(0, 100)
			s.tcp.Src = uint16(2000 + i)
			if out := e.Push(0, gro.Packet{Data: s.frame(t, ipv4), Hash: 5}); len(out) != 0 {
				t.Fatalf("Push returned %d outputs", len(out))
			}
		}
		if got := len(e.Flush(0)); got != 3 {
			t.Errorf("%d buckets: Flush returned %d outputs, want 3", buckets, got)
		}
	}
}

// TestAggregateKeepsSegmentSize: gVisor does not record it, so that its result
// cannot be segmented again.
func TestAggregateKeepsSegmentSize(t *testing.T) {
	e := newEngine(t, gro.Options{})
	got := runBurst(e, [][]byte{at(0, 700).frame(t, ipv4), at(700, 700).frame(t, ipv4), at(1400, 3).frame(t, ipv4)})
	want := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv4, GSOSize: 700, CsumStart: 34, CsumOffset: 16}
	if len(got) != 1 || got[0].Header != want || got[0].Segments != 3 {
		t.Errorf("got %+v, want one output with %+v", got, want)
	}
}

func datagrams(n int, layers ...pkttest.Layer) []byte {
	return pkttest.Build(append(append([]pkttest.Layer{pkttest.Eth{}}, layers...), pkttest.Payload(make([]byte, n)))...)
}

// TestUDPWithoutChecksum: tailscale/wireguard-go#70. Linux does not merge it
// either: GSO could not tell that there was none.
func TestUDPWithoutChecksum(t *testing.T) {
	e := newEngine(t, gro.Options{UDP: true})
	f := datagrams(100, pkttest.IP4{}, pkttest.UDP{NoChecksum: true})
	got := runBurst(e, [][]byte{f, f})
	if len(got) != 2 || got[0].Reason != gro.NoChecksum || got[0].Header.Flags != vnet.DataValid {
		t.Errorf("got %+v, want both passed", got)
	}
}

// TestUDPStopsAt64: Linux's UDP_GRO_CNT_MAX. A receiver may not take more, and
// Linux's USO refuses more than 128.
func TestUDPStopsAt64(t *testing.T) {
	e := newEngine(t, gro.Options{UDP: true})
	var frames [][]byte
	for i := range 130 {
		frames = append(frames, datagrams(100, pkttest.IP4{ID: uint16(i)}, pkttest.UDP{}))
	}
	got := outcomes(t, runBurst(e, frames))
	if want := []string{"6400/64 segment-limit", "6400/64 segment-limit", "200/2 flushed"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPaddingPreventsMerging: Ethernet pads to 60 bytes, and Linux does not trim.
func TestPaddingPreventsMerging(t *testing.T) {
	e := newEngine(t, gro.Options{})
	a, b := at(0, 100).frame(t, ipv4), append(at(100, 2).frame(t, ipv4), 0, 0, 0, 0)
	got := runBurst(e, [][]byte{a, b})
	if len(got) != 2 || got[0].Reason != gro.BadFollower || got[1].Reason != gro.BadLength || len(got[1].Data) != len(b) {
		t.Errorf("got %+v", got)
	}
}

// TestHeadersStraddleBuffers: drivers whose header is not in the first buffer
// (ena on AWS). Every split of the frames gives the same as whole ones.
func TestHeadersStraddleBuffers(t *testing.T) {
	frames := [][]byte{at(0, 100).frame(t, ip6ip6), at(100, 100).frame(t, ip6ip6), at(200, 60).frame(t, ip6ip6)}
	for _, gather := range []bool{false, true} {
		want := runBurst(newEngine(t, gro.Options{}), frames)
		e := newEngine(t, gro.Options{Gather: gather})
		for cut := 0; cut <= len(frames[2]); cut++ {
			var pkts []gro.Packet
			for i, f := range frames {
				if i == 1 && cut%2 == 0 {
					pkts = append(pkts, gro.Packet{Data: f})
					continue
				}
				mid := min(len(f), cut+7)
				pkts = append(pkts, gro.Packet{Data: f[:cut], Rest: [][]byte{f[cut:mid], nil, f[mid:]}})
			}
			if d := diffResults(pushAll(e, pkts), want); d != "" {
				t.Fatalf("gather %v, cut at %d: %s", gather, cut, d)
			}
			// Also what is passed or held alone comes out whole.
			single := pushAll(e, pkts[2:])
			if len(single) != 1 || string(single[0].Data) != string(frames[2]) {
				t.Fatalf("gather %v, cut at %d: a single packet changed", gather, cut)
			}
		}
	}
}

// TestAggregateAsInput is the last line of Linux's TCP rules: what a device has
// already merged.
func TestAggregateAsInput(t *testing.T) {
	super := func(at0, n int) []byte { return at(at0, n, id(uint16(at0/100), true)).frame(t, ipv4) }
	head := vnet.Header{GSOType: vnet.GSOTCPv4, GSOSize: 100, Flags: vnet.DataValid}
	for _, c := range []struct {
		name string
		pkts []gro.Packet
		want []string
	}{
		{
			"trusted-merge",
			[]gro.Packet{{Data: super(0, 300), Header: head, Trusted: true}, {Data: super(300, 200), Header: head, Trusted: true}, {Data: super(500, 100)}},
			[]string{"600/6 flushed"},
		},
		{
			"untrusted-pass",
			[]gro.Packet{{Data: super(0, 300), Header: head}, {Data: super(300, 200), Header: head}},
			[]string{"300/3 already-merged", "200/2 already-merged"},
		},
		{
			"other-size",
			[]gro.Packet{{Data: super(0, 100)}, {Data: super(100, 200), Header: vnet.Header{GSOType: vnet.GSOTCPv4, GSOSize: 50}, Trusted: true}},
			[]string{"100/1 bad-follower", "200/4 flushed"},
		},
		{
			"short-end-merged-then-ends",
			[]gro.Packet{{Data: super(0, 200), Header: head, Trusted: true}, {Data: super(200, 150), Header: head, Trusted: true}},
			[]string{"350/4 short"},
		},
		{
			"short-end-alone",
			[]gro.Packet{{Data: super(0, 150), Header: head, Trusted: true}},
			[]string{"150/2 lone-end"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, gather := range []bool{false, true} {
				e := newEngine(t, gro.Options{Gather: gather})
				if got := outcomes(t, pushAll(e, c.pkts)); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("gather %v: %v, want %v", gather, got, c.want)
				}
			}
		})
	}
}

// TestImpossibleGSOType: a driver handed up gso_type 35530 (lede-project#122).
// It passes as it came.
func TestImpossibleGSOType(t *testing.T) {
	e := newEngine(t, gro.Options{UDP: true})
	h := vnet.Header{GSOType: 0x8a, GSOSize: 3426}
	got := pushAll(e, []gro.Packet{{Data: at(0, 100).frame(t, ipv4), Header: h}, {Data: at(100, 100).frame(t, ipv4), Header: h, Trusted: true}})
	if len(got) != 2 || got[0].Header.GSOType != 0x8a || got[1].Header.GSOType != 0x8a {
		t.Errorf("got %+v, want both passed", got)
	}
}
