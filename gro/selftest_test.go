package gro_test

import (
	"slices"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
)

// proto is a stack of the kernel's GRO self-test.
type proto string

const (
	ipv4   proto = "ipv4"
	ipv6   proto = "ipv6"
	ipip4  proto = "ipip"
	ip6ip6 proto = "ip6ip6"
)

// seg is one segment, with the defaults of the self-test: port 8000, DF with a
// constant ID.
type seg struct {
	at, n   int // sequence number and payload
	ip4     pkttest.IP4
	ip6     pkttest.IP6
	ext     pkttest.Layer
	tcp     pkttest.TCP
	spoil   func(frame []byte, l *packet.Layout)
	restart bool // flush before it
}

func at(off, n int, mods ...func(*seg)) seg {
	s := seg{
		at: off, n: n,
		ip4: pkttest.IP4{ID: 8, DF: true},
		tcp: pkttest.TCP{Src: 1000, Dst: 8000, Ack: 7, Window: 1400, Seq: uint32(off)},
	}
	for _, m := range mods {
		m(&s)
	}
	return s
}

func flags(f byte) func(*seg) { return func(s *seg) { s.tcp.Flags |= packet.ACK | f } }
func id(v uint16, df bool) func(*seg) {
	return func(s *seg) { s.ip4.ID, s.ip4.DF = v, df }
}
func options(o ...byte) func(*seg) { return func(s *seg) { s.tcp.Options = o } }
func class(v byte) func(*seg)      { return func(s *seg) { s.ip4.TOS, s.ip6.Class = v, v } }
func spoil(f func(frame []byte, l *packet.Layout)) func(*seg) {
	return func(s *seg) { s.spoil = f }
}

func (s seg) frame(tb testing.TB, p proto) []byte {
	tb.Helper()
	layers := []pkttest.Layer{pkttest.Eth{}}
	switch p {
	case ipip4:
		layers = append(layers, pkttest.IP4{ID: 77, DF: true, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}})
	case ip6ip6:
		layers = append(layers, pkttest.IP6{Src: [16]byte{0xfd, 15: 1}, Dst: [16]byte{0xfd, 15: 2}})
	case ipv4, ipv6:
	}
	if p == ipv6 || p == ip6ip6 {
		layers = append(layers, s.ip6)
	} else {
		layers = append(layers, s.ip4)
	}
	if s.ext != nil {
		layers = append(layers, s.ext)
	}
	payload := make([]byte, s.n)
	for i := range payload {
		payload[i] = byte(s.at + i)
	}
	f := pkttest.Build(append(layers, s.tcp, pkttest.Payload(payload))...)
	if s.spoil != nil {
		l, err := packet.Parse(f, packet.StartEthernet)
		if err != nil {
			tb.Fatal(err)
		}
		s.spoil(f, &l)
	}
	return f
}

// A selfCase is one case of tools/testing/selftests/net gro.c, whose receiver
// looks at the lengths of the payloads it gets.
type selfCase struct {
	name  string
	only  []proto // none: all
	sends []seg
	want  []int
	other map[gro.Semantics][]int // where a version differs
}

const (
	selfMSS = 4096 - 40 - 20 // the self-test's segments of 4096 bytes
)

// large returns segments that fill an IP packet of 65535 bytes when last is 0,
// then one that does not continue them.
func large(overhead, extra int) []seg {
	room := 65535 - overhead
	var s []seg
	n := 0
	for ; n+selfMSS <= room; n += selfMSS {
		s = append(s, at(n, selfMSS))
	}
	rem := room - n + extra
	return append(s, at(n, rem), at(n+selfMSS+1, rem))
}

func largeWant(overhead, extra int) []int {
	room := 65535 - overhead
	rem := room % selfMSS
	if extra == 0 {
		return []int{room, rem}
	}
	return []int{room - rem, rem + extra, rem + extra}
}

func timestamp(v byte, order int) []byte {
	ts := []byte{8, 10, 0, 0, 0, v, 0, 0, 0, 0}
	switch order {
	case 1:
		return slices.Concat([]byte{1}, ts, []byte{1})
	case 2:
		return slices.Concat(ts, []byte{1, 1})
	}
	return slices.Concat([]byte{1, 1}, ts)
}

var old = []gro.Semantics{gro.Linux612, gro.Linux616}

func differs(want []int, sems ...gro.Semantics) map[gro.Semantics][]int {
	m := map[gro.Semantics][]int{}
	for _, s := range sems {
		m[s] = want
	}
	return m
}

func selfCases() []selfCase {
	wscale := []byte{1, 3, 3, 7, 1, 1, 1, 1, 1, 1, 1, 1}
	badIP := spoil(func(f []byte, l *packet.Layout) { f[l.Innermost().Network+10] ^= 1 })
	badTCP := spoil(func(f []byte, l *packet.Layout) { f[l.Innermost().Transport+16]-- })
	dest := func(v int) func(*seg) {
		return func(s *seg) { s.ext = pkttest.Ext{Words: v} }
	}
	flagged := func(f byte) []seg {
		return []seg{at(0, 100), at(100, 100), at(200, 0, flags(f)), at(200, 100), at(300, 100)}
	}
	cases := []selfCase{
		{name: "data_same", sends: []seg{at(0, 100), at(100, 100)}, want: []int{200}},
		{name: "data_lrg_sml", sends: []seg{at(0, 100), at(100, 50)}, want: []int{150}},
		{name: "data_lrg_1byte", sends: []seg{at(0, 100), at(100, 1)}, want: []int{101}},
		{name: "data_sml_lrg", sends: []seg{at(0, 50), at(50, 100)}, want: []int{50, 100}},
		{name: "data_burst", sends: []seg{at(0, 100), at(100, 100), at(200, 100, func(s *seg) { s.restart = true }), at(300, 100)}, want: []int{200, 200}},
		{name: "ack", sends: []seg{at(0, 0), at(0, 0), at(0, 0, func(s *seg) { s.tcp.Ack++ })}, want: []int{0, 0, 0}},
		{name: "flags_psh", sends: []seg{at(0, 100), at(100, 100), at(200, 100, flags(packet.PSH)), at(300, 100), at(400, 100)}, want: []int{300, 200}},
		{name: "flags_syn", sends: flagged(packet.SYN), want: []int{200, 0, 200}},
		{name: "flags_rst", sends: flagged(packet.RST), want: []int{200, 0, 200}},
		{name: "flags_urg", sends: flagged(packet.URG), want: []int{200, 0, 200}},
		{
			name:  "flags_cwr",
			sends: []seg{at(0, 100), at(100, 100, flags(packet.CWR)), at(200, 100, flags(packet.CWR)), at(300, 100), at(400, 100)},
			want:  []int{100, 200, 200},
			other: map[gro.Semantics][]int{gro.Linux612: {100, 100, 300}, gro.Linux616: {100, 100, 100, 200}, gro.Linux618: {100, 100, 100, 200}},
		},
		{name: "single", sends: []seg{at(0, 100)}, want: []int{100}},
		{name: "tcp_csum", sends: []seg{at(0, 100), at(100, 100, badTCP)}, want: []int{100, 100}},
		{name: "tcp_seq", sends: []seg{at(0, 100), at(101, 100)}, want: []int{100, 100}},
		{name: "tcp_ts", sends: []seg{
			at(0, 100, options(timestamp(0, 0)...)), at(100, 100, options(timestamp(0, 0)...)), at(200, 100, options(timestamp(100, 0)...)),
			at(300, 100, options(timestamp(100, 1)...)), at(400, 100, options(timestamp(100, 2)...)),
		}, want: []int{200, 100, 100, 100}},
		{name: "tcp_opt", sends: []seg{
			at(0, 100, options(timestamp(0, 0)...)), at(100, 100, options(timestamp(0, 0)...)), at(200, 100, options(wscale...)),
		}, want: []int{200, 100}},
		{name: "ip_ecn", sends: []seg{at(0, 100), at(100, 100, class(2))}, want: []int{100, 100}},
		{name: "ip_tos", sends: []seg{at(0, 100), at(100, 100, class(0x40))}, want: []int{100, 100}},
		{name: "ip_ttl", sends: []seg{at(0, 100), at(100, 100, func(s *seg) { s.ip4.TTL, s.ip6.Hops = 63, 63 })}, want: []int{100, 100}},
	}
	v4 := []proto{ipv4, ipip4}
	v6 := []proto{ipv6, ip6ip6}
	cases = append(cases, []selfCase{
		{name: "ip_csum", only: v4, sends: []seg{at(0, 100), at(100, 100, badIP), at(200, 100)}, want: []int{100, 100, 100}},
		{name: "ip_opt", only: v4, sends: []seg{at(0, 100), at(100, 100, func(s *seg) { s.ip4.Options = []byte{1, 1, 1, 1} }), at(200, 100)}, want: []int{100, 100, 100}},
		{name: "ip_frag4", only: v4, sends: []seg{at(0, 100), at(100, 100, func(s *seg) { s.ip4.MF, s.ip4.DF = true, false })}, want: []int{100, 100}},
		{name: "ip_id_df1_inc", only: v4, sends: []seg{at(0, 100, id(8, true)), at(100, 100, id(9, true))}, want: []int{200}},
		{name: "ip_id_df1_fixed", only: v4, sends: []seg{at(0, 100, id(8, true)), at(100, 100, id(8, true))}, want: []int{200}},
		{name: "ip_id_df0_inc", only: v4, sends: []seg{at(0, 100, id(8, false)), at(100, 100, id(9, false))}, want: []int{200}},
		{
			name: "ip_id_df0_fixed", only: v4, sends: []seg{at(0, 100, id(8, false)), at(100, 100, id(8, false))}, want: []int{200},
			other: differs([]int{100, 100}, old...),
		},
		{name: "ip_id_df1_inc_fixed", only: v4, sends: []seg{at(0, 100, id(8, true)), at(100, 100, id(9, true)), at(200, 100, id(9, true))}, want: []int{200, 100}},
		{name: "ip_id_df1_fixed_inc", only: v4, sends: []seg{at(0, 100, id(8, true)), at(100, 100, id(8, true)), at(200, 100, id(9, true))}, want: []int{200, 100}},
		{name: "ip_frag6", only: v6, sends: []seg{at(0, 100), at(100, 100), at(200, 100, func(s *seg) { s.ext, s.restart = pkttest.Ext{Proto: 44}, true }), at(300, 100, func(s *seg) { s.restart = true })}, want: []int{200, 100, 100}},
		{name: "ip_v6ext_same", only: v6, sends: []seg{at(0, 100, dest(0)), at(100, 100, dest(0))}, want: []int{200}},
		{name: "ip_v6ext_diff", only: v6, sends: []seg{at(0, 100, dest(0)), at(100, 100, dest(1))}, want: []int{100, 100}},
	}...)
	for _, p := range []struct {
		p    proto
		over int
	}{{ipv4, 40}, {ipv6, 60}, {ipip4, 60}, {ip6ip6, 100}} {
		cases = append(cases,
			selfCase{name: "large_max", only: []proto{p.p}, sends: large(p.over, 0), want: largeWant(p.over, 0)},
			selfCase{name: "large_rem", only: []proto{p.p}, sends: large(p.over, 1), want: largeWant(p.over, 1)})
	}
	return cases
}

// TestSelftest has the cases of the kernel's GRO self-test, for each version.
//
// The self-test's receiver is a packet socket of one flow, and its order that
// of sending. In ip_frag6 and data_burst the sender pauses, which flushes.
func TestSelftest(t *testing.T) {
	for _, sem := range []gro.Semantics{gro.Linux612, gro.Linux616, gro.Linux618, gro.Linux72} {
		for _, c := range selfCases() {
			for _, p := range []proto{ipv4, ipv6, ipip4, ip6ip6} {
				if len(c.only) > 0 && !slices.Contains(c.only, p) {
					continue
				}
				t.Run(sem.String()+"/"+string(p)+"/"+c.name, func(t *testing.T) {
					want := c.want
					if o, ok := c.other[sem]; ok {
						want = o
					}
					for _, gather := range []bool{false, true} {
						if got := selfRun(t, c, p, gro.Options{Semantics: sem, Gather: gather}); !slices.Equal(got, want) {
							t.Errorf("payloads (gather %v) = %v, want %v", gather, got, want)
						}
					}
				})
			}
		}
	}
}

func selfRun(t *testing.T, c selfCase, p proto, opt gro.Options) (got []int) {
	t.Helper()
	e := newEngine(t, opt)
	var all []result
	for _, s := range c.sends {
		if s.restart {
			all = keep(all, e.Flush(0))
		}
		all = keep(all, e.Push(0, gro.Packet{Data: s.frame(t, p)}))
	}
	for _, r := range keep(all, e.Flush(0)) {
		got = append(got, payloadLen(t, r.Data))
	}
	return got
}

func payloadLen(tb testing.TB, f []byte) int {
	tb.Helper()
	l, err := packet.Parse(f, packet.StartEthernet)
	if err != nil {
		tb.Fatalf("%v: %x", err, head(f))
	}
	return len(f) - l.Innermost().Payload
}

// TestSelftestCapacity has N flows of two segments, the second with PSH: all
// merge up to the number of held flows, in the order of the second segments.
func TestSelftestCapacity(t *testing.T) {
	for _, n := range []int{8, 64, 512, 4096} {
		e := newEngine(t, gro.Options{MaxFlows: n})
		var all []result
		for round := range 2 {
			for i := range n {
				s := at(round*100, 100)
				s.tcp.Src = uint16(1 + i)
				if round == 1 {
					flags(packet.PSH)(&s)
				}
				all = keep(all, e.Push(0, gro.Packet{Data: s.frame(t, ipv4)}))
			}
		}
		all = keep(all, e.Flush(0))
		if len(all) != n {
			t.Fatalf("%d flows: %d outputs", n, len(all))
		}
		for i, r := range all {
			if got := int(be.Uint16(r.Data[34:])); got != 1+i || payloadLen(t, r.Data) != 200 || r.Reason != gro.Push {
				t.Fatalf("%d flows: output %d is of port %d, %d bytes, %v", n, i, got, payloadLen(t, r.Data), r.Reason)
			}
		}
	}
}
