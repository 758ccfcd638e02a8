package wirecheck_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
	tu "github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/internal/wirecheck"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// A stream is a connection over a card: what the host hands down of it, packet
// by packet.
type stream struct {
	before []tu.Layer // in front of the innermost TCP header
	six    bool
	tunnel bool
	mss    int
	start  int // of the TCP header
	ecn    bool
	count  int // super-packets
}

func super4(id uint16) tu.IP4 { return tu.IP4{ID: id, DF: true} }

var streams = map[string]stream{
	"tcp4":      {before: []tu.Layer{tu.Eth{}}, mss: 1448, start: 34},
	"tcp6":      {before: []tu.Layer{tu.Eth{}}, six: true, mss: 1428, start: 54},
	"tag":       {before: []tu.Layer{tu.Eth{}, tu.Tag{TCI: 10}}, mss: 1448, start: 38},
	"cwr":       {before: []tu.Layer{tu.Eth{}}, mss: 1448, start: 34, ecn: true},
	"small-mss": {before: []tu.Layer{tu.Eth{}}, mss: 48, start: 34},
	"vxlan": {
		before: []tu.Layer{tu.Eth{}, tu.IP4{ID: 9}, tu.VXLAN{VNI: 1, Checksum: true, Partial: true}, tu.Eth{}},
		tunnel: true, mss: 1398, start: 84,
	},
}

func (s stream) build(id uint16, t tu.TCP, payload []byte) []byte {
	l := slices.Clone(s.before)
	if s.tunnel && len(payload) == 0 { // a host has completed it
		l[2], t.Partial = tu.VXLAN{VNI: 1, Checksum: true}, false
	}
	if s.six {
		l = append(l, tu.IP6{})
	} else {
		l = append(l, super4(id))
	}
	return tu.Build(append(l, t, tu.Payload(payload))...)
}

func (s stream) header(size int) vnet.Header {
	if s.tunnel && size == 0 {
		return vnet.Header{}
	}
	h := vnet.Header{Flags: vnet.NeedsCsum, CsumStart: uint16(s.start), CsumOffset: packet.TCPChecksumOffset}
	if size > 0 {
		h.GSOType, h.GSOSize = vnet.GSOTCPv4, uint16(size)
		if s.six {
			h.GSOType = vnet.GSOTCPv6
		}
		if s.ecn {
			h.GSOType |= vnet.GSOECN
		}
	}
	if s.tunnel {
		h.Flags |= vnet.UDPTunnelCsum
		h.GSOType |= vnet.GSOUDPTunnel4
		h.OuterTransport, h.InnerNetwork = 34, 64
	}
	return h
}

// A card is the sending half of a soft NIC and a checker on its wire.
type card struct {
	t       *testing.T
	hooks   softnic.Hooks
	checker *wirecheck.Checker
	now     time.Duration
}

func (c *card) send(data []byte, h vnet.Header) {
	c.t.Helper()
	c.now += time.Millisecond
	p := softnic.Frame{Data: data, Header: h, Count: 1}
	if c.hooks.Super != nil && c.hooks.Super(&p) != softnic.Pass {
		return
	}
	var cutter gso.Splitter
	if err := cutter.Reset(p.Data, p.Header, gso.Options{}); err != nil {
		c.t.Fatal(err)
	}
	var later []byte
	for i := range cutter.Len() {
		b := make([]byte, max(60, cutter.Size(i))+64)
		n, err := cutter.Frame(b, i)
		if err != nil {
			c.t.Fatal(err)
		}
		f := softnic.Frame{Data: b[:max(60, n)], Header: p.Header, Index: i, Count: cutter.Len()}
		if c.hooks.Segment != nil && c.hooks.Segment(&f) == softnic.Later && i < cutter.Len()-1 {
			later = f.Data
			continue
		}
		c.checker.Frame(c.now, f.Data)
		if later != nil {
			c.checker.Frame(c.now, later)
			later = nil
		}
	}
}

// run opens a connection, sends some data and closes it.
func (s stream) run(c *card, agreed *wirecheck.Agreed) {
	c.t.Helper()
	const seq = ^uint32(0) - 20000 // wraps around
	syn := uint8(packet.SYN)
	answer := uint8(packet.SYN | packet.ACK)
	if s.ecn {
		syn, answer = syn|packet.ECE|packet.CWR, answer|packet.ECE
	}
	mss := []byte{2, 4, byte(s.mss >> 8), byte(s.mss)}
	back := wirecheck.New(wirecheck.Config{Agreed: agreed})
	data := make([]byte, 9*s.mss+100)
	for i := range data {
		data[i] = byte(i)
	}
	c.send(s.build(0, tu.TCP{Seq: seq, Flags: syn, Options: mss, Partial: true}, nil), s.header(0))
	back.Frame(0, s.reply(tu.TCP{Src: 443, Dst: 1000, Flags: answer, Options: mss}))
	at, id := seq+1, uint16(0xfff0)
	for i := range max(s.count, 5) {
		t := tu.TCP{Seq: at, Flags: packet.ACK | packet.PSH, Partial: true}
		if s.ecn && i == 1 {
			t.Flags |= packet.CWR
		}
		c.send(s.build(id, t, data), s.header(s.mss))
		at += uint32(len(data))
		id += 10
		if id < 20 {
			id = 20 // 0 is none
		}
	}
	c.send(s.build(id, tu.TCP{Seq: at, Flags: packet.ACK | packet.FIN, Partial: true}, nil), s.header(0))
}

// reply builds a packet of the other end.
func (s stream) reply(t tu.TCP) []byte {
	l := []tu.Layer{tu.Eth{}}
	if s.six {
		l = append(l, tu.IP6{Src: v6[1], Dst: v6[0]})
	} else {
		l = append(l, tu.IP4{Src: v4[1], Dst: v4[0]})
	}
	return tu.Build(append(l, t, tu.Payload(nil))...)
}

var (
	v4 = [2][4]byte{{192, 0, 2, 1}, {192, 0, 2, 2}}
	v6 = [2][16]byte{
		{0x20, 1, 0xd, 0xb8, 15: 1},
		{0x20, 1, 0xd, 0xb8, 15: 2},
	}
)

// seenOf is the violations that the wire shows of a fault, by stream. A fault
// without a row drops or delays packets, breaks what a router sends on, or is
// about receiving: no frame is wrong.
var seenOf = map[string]map[string]string{
	"csum-partial": {"tcp4": "csum csum_short", "tcp6": "csum", "tag": "csum csum_short", "cwr": "csum csum_short", "small-mss": "csum csum_short", "vxlan": "csum csum_outer"},
	"csum-port":    {"vxlan": "csum csum_outer"},
	"csum-second":  {"tcp4": "csum csum_short", "tcp6": "csum", "tag": "csum csum_short", "cwr": "csum csum_short", "small-mss": "csum csum_short", "vxlan": "csum csum_outer"},
	"csum-short":   {"tcp4": "csum_short", "tag": "csum_short", "cwr": "csum_short", "small-mss": "csum_short"},
	"csum-vlan":    {"tag": "csum csum_short"},
	"cwr-all":      {"cwr": "cwr"},
	"ip-id":        {"tcp4": "same_id", "tag": "same_id", "cwr": "same_id", "small-mss": "same_id", "vxlan": "same_id"},
	"mss-bits":     {"tcp4": "small", "tcp6": "small", "tag": "small", "cwr": "small", "vxlan": "small"},
	"outer-csum":   {"vxlan": "csum_outer"},
	"segment-order": {
		"tcp4": "order", "tcp6": "order", "tag": "order", "cwr": "order", "small-mss": "order", "vxlan": "order",
	},
	"trailer": {
		"tcp4": "trailer", "tcp6": "trailer", "tag": "trailer", "cwr": "trailer", "small-mss": "trailer", "vxlan": "trailer",
	},
	"tso-claimed": {
		"tcp4": "too_long", "tcp6": "too_long", "tag": "too_long", "cwr": "too_long", "vxlan": "too_long csum_outer", "small-mss": "big",
	},
	"vlan-first": {"tag": "tag"},
}

// TestFaults: the wire shows of each fault what the table says, and of a healthy
// card nothing.
func TestFaults(t *testing.T) {
	healthy := map[string]string{}
	check := func(name string, hooks func() softnic.Hooks, want map[string]string) {
		for in, s := range streams {
			t.Run(name+"/"+in, func(t *testing.T) {
				agreed := &wirecheck.Agreed{}
				c := &card{t: t, hooks: hooks(), checker: wirecheck.New(wirecheck.Config{Agreed: agreed})}
				s.run(c, agreed)
				r := c.checker.Report()
				if got, want := violations(r), want[in]; got != want {
					t.Errorf("%q, want %q", got, want)
					for k, f := range r.First {
						t.Logf("%s: frame %d: %s", k, f.Number, f.Text)
					}
				}
			})
		}
	}
	check("healthy", func() softnic.Hooks { return softnic.Hooks{} }, healthy)
	for _, e := range fault.Faults.All() {
		check(e.Name(), func() softnic.Hooks {
			return e.Hooks(softnic.Env{Rand: rand.New(rand.NewPCG(1, 2))})
		}, seenOf[e.Name()])
	}
}

func violations(r wirecheck.Report) string {
	var names []string
	for _, k := range slices.Sorted(maps.Keys(r.Counts)) {
		if k.Wrong() {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, " ")
}
