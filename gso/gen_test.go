package gso_test

import (
	"math/rand/v2"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// super is a super-packet as the fields it is made of. Its segments are built
// from the same fields, one by one, by pkttest: the reference shares no code
// with the library.
type super struct {
	noEth    bool
	tags     []pkttest.Tag
	tunnel   packet.Tunnel
	plain    bool // the virtio header does not know of the UDP tunnel
	outer6   bool
	outerID  uint16
	csum     bool // outer checksum of VXLAN, Geneve or GRE
	key      bool
	bridged  bool // GRE carries Ethernet
	gnvOpts  int
	v6       bool
	ext      int // bytes of destination options
	ip4      pkttest.IP4
	ip6      pkttest.IP6
	udp      bool
	tcp      pkttest.TCP
	size     int
	payload  []byte
	ecnBit   bool
	noCsum   bool // without NEEDS_CSUM
	fixed    bool // fixed outer, or only, ID
	fixedIn  bool
	accECN   bool
	checksum gso.Checksum
}

// frame builds the frame that holds payload[from:to] as segment seg.
func (p *super) frame(seg, from, to int, partial bool) []byte {
	var l []pkttest.Layer
	if !p.noEth {
		l = append(l, pkttest.Eth{})
		for _, t := range p.tags {
			l = append(l, t)
		}
	}
	step := func(fixed bool) uint16 {
		if fixed {
			return 0
		}
		return uint16(seg)
	}
	ip4, tunnelled := p.ip4, p.tunnel != packet.NoTunnel
	if tunnelled {
		if p.outer6 {
			l = append(l, pkttest.IP6{Class: 2, Flow: 0x777, Src: [16]byte{0xfd, 1: 1}, Dst: [16]byte{0xfd, 1: 2}})
		} else {
			l = append(l, pkttest.IP4{ID: p.outerID + step(p.fixed), DF: true, Src: [4]byte{10, 1}, Dst: [4]byte{10, 2}})
		}
		switch p.tunnel {
		case packet.VXLAN:
			l = append(l, pkttest.VXLAN{VNI: 42, Checksum: p.csum, Partial: partial}, pkttest.Eth{Last: 3})
		case packet.Geneve:
			l = append(l, pkttest.Geneve{VNI: 42, Checksum: p.csum, Options: make([]byte, p.gnvOpts), Partial: partial}, pkttest.Eth{Last: 3})
		case packet.GRE:
			l = append(l, pkttest.GRE{Checksum: p.csum, HasKey: p.key, Key: 7, Partial: partial})
			if p.bridged {
				l = append(l, pkttest.Eth{Last: 4})
			}
		case packet.IPInIP, packet.NoTunnel:
		}
		ip4.ID += step(p.fixedIn)
	} else {
		ip4.ID += step(p.fixed)
	}
	if p.v6 {
		l = append(l, p.ip6)
		if p.ext > 0 {
			l = append(l, pkttest.Ext{Words: p.ext/8 - 1})
		}
	} else {
		l = append(l, ip4)
	}
	if p.udp {
		l = append(l, pkttest.UDP{Src: p.tcp.Src, Dst: p.tcp.Dst, Partial: partial && !p.noCsum})
	} else {
		t := p.tcp
		t.Partial = partial && !p.noCsum
		t.Seq += uint32(from)
		if to < len(p.payload) {
			t.Flags &^= 0x09 // FIN, PSH
		}
		if from > 0 && !p.accECN {
			t.Flags &^= 0x80 // CWR
		}
		l = append(l, t)
	}
	return pkttest.Build(append(l, pkttest.Payload(p.payload[from:to]))...)
}

// packet returns the super-packet and what describes it.
func (p *super) packet() ([]byte, vnet.Header, gso.Options) {
	b := p.frame(0, 0, len(p.payload), true)
	l4 := 20 + len(p.tcp.Options)
	h := vnet.Header{GSOType: vnet.GSOTCPv4, CsumOffset: 16, GSOSize: uint16(p.size)}
	if p.v6 {
		h.GSOType = vnet.GSOTCPv6
	}
	if p.udp {
		l4, h.GSOType, h.CsumOffset = 8, vnet.GSOUDPL4, 6
	}
	if p.ecnBit {
		h.GSOType |= vnet.GSOECN
	}
	hdr := len(b) - len(p.payload)
	h.HdrLen, h.CsumStart = uint16(hdr), uint16(hdr-l4)
	if p.noCsum {
		h.CsumStart, h.CsumOffset = 0, 0
	} else {
		h.Flags = vnet.NeedsCsum
	}
	o := gso.Options{FixedID: p.fixed, FixedInnerID: p.fixedIn, AccECN: p.accECN, Checksum: p.checksum}
	link := 14 + 4*len(p.tags)
	if p.noEth {
		o.Start, link = packet.StartIP, 0
	}
	if p.udpTunnel() && !p.plain {
		h.GSOType |= vnet.GSOUDPTunnel4
		h.OuterTransport = uint16(link + 20)
		if p.outer6 {
			h.GSOType ^= vnet.GSOUDPTunnel4 | vnet.GSOUDPTunnel6
			h.OuterTransport = uint16(link + 40)
		}
		l3 := 20 + len(p.ip4.Options)
		if p.v6 {
			l3 = 40 + p.ext
		}
		h.InnerNetwork = uint16(hdr - l4 - l3)
		if p.csum {
			h.Flags |= vnet.UDPTunnelCsum
		}
	}
	return b, h, o
}

func (p *super) udpTunnel() bool { return p.tunnel == packet.VXLAN || p.tunnel == packet.Geneve }

// segments returns the frames that the super-packet has to become.
func (p *super) segments() [][]byte {
	var out [][]byte
	for from := 0; from < len(p.payload); from += p.size {
		out = append(out, p.frame(len(out), from, min(from+p.size, len(p.payload)), false))
	}
	return out
}

// limits of what gen makes; the kernel takes less than the library.
type limits struct {
	tunnels bool // any tunnel, fixed IDs, AccECN
	maxSegs int
	maxLen  int // payload and headers
}

// gen makes a random super-packet.
func gen(r *rand.Rand, lim limits) *super {
	p := &super{v6: r.IntN(2) == 0, udp: r.IntN(3) == 0}
	if r.IntN(3) == 0 {
		for range 1 + r.IntN(2) {
			p.tags = append(p.tags, pkttest.Tag{Type: []uint16{0x8100, 0x88a8}[r.IntN(2)], TCI: uint16(r.Uint32())})
		}
	}
	if lim.tunnels {
		genTunnel(p, r)
	}
	p.ip4 = pkttest.IP4{TOS: byte(r.Uint32()), ID: uint16(r.Uint32()), DF: r.IntN(2) == 0, Reserved: r.IntN(8) == 0, TTL: byte(1 + r.IntN(255)), Src: [4]byte{10, byte(r.Uint32()), 3, 4}, Dst: [4]byte{10, 5, byte(r.Uint32()), 7}}
	p.ip6 = pkttest.IP6{Class: byte(r.Uint32()), Flow: r.Uint32() & 0xfffff, Hops: byte(1 + r.IntN(255)), Src: [16]byte{0xfd, byte(r.Uint32()), 15: byte(r.Uint32())}, Dst: [16]byte{0xfd, byte(r.Uint32()), 7: 3}}
	if r.IntN(4) == 0 {
		p.ip4.Options = nops(4 * (1 + r.IntN(5)))
		if !p.udp {
			p.ext = 8 * (1 + r.IntN(3))
		}
	}
	p.tcp = pkttest.TCP{Src: uint16(1 + r.IntN(65535)), Dst: uint16(1 + r.IntN(4000)), Seq: r.Uint32(), Ack: r.Uint32(), Reserved: byte(r.Uint32()), Flags: byte(r.Uint32()) | 0x10, Window: uint16(r.Uint32()), Urg: uint16(r.Uint32())}
	if r.IntN(4) == 0 {
		p.tcp.Seq = -r.Uint32() % 40000 // wraps inside the packet
	}
	if !p.udp {
		p.tcp.Options = random(r, 4*r.IntN(11))
		p.ecnBit = r.IntN(4) == 0
		p.noCsum = r.IntN(8) == 0
	}
	genSizes(p, r, lim)
	return p
}

func genTunnel(p *super, r *rand.Rand) {
	p.noEth = r.IntN(3) == 0
	p.tunnel = packet.Tunnel(r.IntN(5))
	p.outer6, p.csum, p.key, p.bridged = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(3) == 0
	p.outerID = uint16(r.Uint32())
	p.gnvOpts = 4 * r.IntN(8)
	p.plain = r.IntN(2) == 0
	p.fixed, p.fixedIn, p.accECN = r.IntN(3) == 0, r.IntN(3) == 0, r.IntN(4) == 0
}

func genSizes(p *super, r *rand.Rand, lim limits) {
	p.size = 8 + r.IntN(1453)
	switch r.IntN(4) {
	case 0:
		p.size = 1448
	case 1:
		p.size = 8 + r.IntN(60)
	}
	if p.udp && r.IntN(5) == 0 {
		p.size = 1 + r.IntN(16)
	}
	if p.udp {
		lim.maxSegs = min(lim.maxSegs, gso.MaxUDPSegments)
	}
	room := lim.maxLen - 200
	segs := 2 + r.IntN(max(1, min(room/p.size, lim.maxSegs)-1))
	n := segs*p.size - r.IntN(p.size)
	if r.IntN(3) == 0 {
		n = segs * p.size
	}
	p.payload = random(r, max(p.size+1, min(n, room, p.size*lim.maxSegs)))
}

func nops(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 1
	}
	return b
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	i := 0
	for ; i+8 <= n; i += 8 {
		v := r.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
	for ; i < n; i++ {
		b[i] = byte(r.Uint32())
	}
	return b
}
