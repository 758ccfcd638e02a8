package gro_test

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/offlab/offlab/internal/testutil/pkttest"
)

var be = binary.BigEndian

// A tunnelKind is an encapsulation of the generator.
type tunnelKind uint8

const (
	plain tunnelKind = iota
	vxlan
	vxlanCsum
	gre
	greKey
	greCsum
	greKeyCsum
	greTEB
	ipip
	geneve
	geneveCsum
	tagged
	qinq
	tunnelKinds
)

// kernelKinds are those that every kernel merges once it has VXLAN; Geneve and
// VLAN need modules.
var kernelKinds = []tunnelKind{plain, vxlan, vxlanCsum, gre, greKey, greCsum, greKeyCsum, greTEB, ipip}

// genFlow is one sender.
type genFlow struct {
	kind        tunnelKind
	o6          bool // outer IPv6
	vni         byte
	v6, udp     bool
	mac         byte
	src, dst    byte
	sp, dp      uint16
	seq, ack    uint32
	win         uint16
	id, oid     uint16
	idmode      int
	oidmode     int
	df, odf     bool
	ttl, tos    byte
	label       uint32
	ts          bool
	tsv         uint32
	mss         int
	ext         byte
	ecn         byte
	oport       uint16
	randomBytes *rand.ChaCha8
}

const mutators = 32

// frame returns the next frame of the flow with n bytes of payload; mut is one
// deviation.
func (fl *genFlow) frame(r *rand.Rand, n int, flags byte, mut int) []byte {
	l4 := fl.transport(r, n, flags, mut)
	ip := fl.network(r, l4, mut)
	inner := append(ip, l4...)
	f := fl.wrap(r, inner, mut)
	switch mut {
	case 20: // trailing padding
		f = append(f, make([]byte, 1+r.IntN(6))...)
	case 21: // an unknown type
		be.PutUint16(f[12:], 0x88b5)
	case 22: // another address
		f[0] ^= 4
	case 23: // truncated
		f = f[:14+r.IntN(len(f)-14)]
	}
	return f
}

func (fl *genFlow) transport(r *rand.Rand, n int, flags byte, mut int) []byte {
	var l4 []byte
	if fl.udp {
		l4 = make([]byte, 8+n)
		be.PutUint16(l4[4:], uint16(len(l4)))
		if mut == 16 {
			be.PutUint16(l4[4:], uint16(len(l4)-1))
		}
	} else {
		thl := 20
		if fl.ts {
			thl = 32
		}
		if mut == 13 {
			thl += 4
		}
		l4 = make([]byte, thl+n)
		seq, ack, win, tsv := fl.seq, fl.ack, fl.win, fl.tsv
		switch mut {
		case 5:
			seq += uint32(r.IntN(3)) - 1
		case 6:
			ack++
		case 7:
			win ^= 1
		case 9:
			tsv++
		}
		be.PutUint32(l4[4:], seq)
		be.PutUint32(l4[8:], ack)
		l4[12], l4[13] = byte(thl/4)<<4, flags
		be.PutUint16(l4[14:], win)
		for i := 20; i < thl; i++ {
			l4[i] = 1
		}
		if fl.ts {
			copy(l4[20:], []byte{1, 1, 8, 10})
			be.PutUint32(l4[24:], tsv)
			be.PutUint32(l4[28:], 5)
		}
		switch mut {
		case 14:
			l4[12] |= byte(1 << r.IntN(4))
		case 15:
			be.PutUint16(l4[18:], 7)
		case 24:
			l4[12] = byte(r.IntN(16)) << 4 // a wrong data offset under a right checksum
		}
	}
	be.PutUint16(l4, fl.sp)
	be.PutUint16(l4[2:], fl.dp)
	_, _ = fl.randomBytes.Read(l4[len(l4)-n:])
	return l4
}

// network returns the IP header and fills in the transport checksum.
func (fl *genFlow) network(r *rand.Rand, l4 []byte, mut int) []byte {
	proto := byte(6)
	if fl.udp {
		proto = 17
	}
	p := ipFields{
		tos: fl.tos, ttl: fl.ttl, proto: proto, src: fl.src, dst: fl.dst, n: len(l4),
		id: fl.id, df: fl.df, label: fl.label, ext: fl.ext,
	}
	switch mut {
	case 1:
		p.ttl++
	case 2:
		p.tos ^= byte(1 << r.IntN(8))
	case 3:
		p.df = !p.df
	case 4:
		p.id += uint16(r.IntN(5))
	case 8:
		p.label ^= 1
	case 10:
		p.options = true
	case 11:
		p.frag = []uint16{0x2000, 1, 0x8000}[r.IntN(3)]
	case 12:
		p.ext ^= 1
	}
	ip := p.v4()
	if fl.v6 {
		ip = p.v6()
	}
	if mut == 17 && !fl.v6 {
		ip[10] ^= 1
	}
	co := 16
	if fl.udp {
		co = 6
	}
	c := ^pkttest.Sum(l4, uint32(pkttest.Pseudo(ip, proto, len(l4))))
	if c == 0 && fl.udp {
		c = 0xffff
	}
	be.PutUint16(l4[co:], c)
	switch {
	case mut == 18:
		l4[co] ^= 0x55
	case mut == 19 && fl.udp:
		l4[6], l4[7] = 0, 0
	}
	return ip
}

// ipFields are those of an IP header before n bytes.
type ipFields struct {
	tos, ttl, proto, src, dst byte
	n                         int

	options  bool // IPv4
	id, frag uint16
	df       bool

	label uint32 // IPv6
	ext   byte   // 2 or 3: destination options, with that byte at their end
}

func (p ipFields) v4() []byte {
	ip := make([]byte, 20, 24)
	if p.options {
		ip = ip[:24]
	}
	ip[0], ip[1] = 0x40|byte(len(ip)/4), p.tos
	be.PutUint16(ip[2:], uint16(len(ip)+p.n))
	be.PutUint16(ip[4:], p.id)
	if p.df {
		p.frag |= 0x4000
	}
	be.PutUint16(ip[6:], p.frag)
	ip[8], ip[9] = p.ttl, p.proto
	copy(ip[12:], []byte{10, 0, 0, p.src, 10, 0, 0, p.dst})
	for i := 20; i < len(ip); i++ {
		ip[i] = 1
	}
	be.PutUint16(ip[10:], ^pkttest.Sum(ip, 0))
	return ip
}

func (p ipFields) v6() []byte {
	ip := make([]byte, 48)
	ip[0] = 0x60 | p.tos>>4
	ip[1] = p.tos<<4 | byte(p.label>>16)
	be.PutUint16(ip[2:], uint16(p.label))
	ip[6], ip[7] = p.proto, p.ttl
	ip[8], ip[23], ip[24], ip[39] = 0xfd, p.src, 0xfd, p.dst
	if p.ext&2 != 0 {
		ip[6] = 60
		copy(ip[40:], []byte{p.proto, 0, 1, 4, 0, 0, 0, p.ext})
	} else {
		ip = ip[:40]
	}
	be.PutUint16(ip[4:], uint16(len(ip)-40+p.n))
	return ip
}

// wrap puts the link and, in a tunnel, the outer headers before an IP packet.
func (fl *genFlow) wrap(r *rand.Rand, inner []byte, mut int) []byte {
	et := uint16(0x0800)
	if fl.v6 {
		et = 0x86dd
	}
	link := []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, fl.mac}
	ieth := []byte{2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, fl.mac, byte(et >> 8), byte(et)}
	if mut == 25 {
		ieth[5]++
	}
	vni := fl.vni
	if mut == 26 {
		vni++
	}
	var l4 []byte
	var proto byte
	switch fl.kind {
	case plain:
		return append(be.AppendUint16(link, et), inner...)
	case tagged, qinq:
		if fl.kind == qinq {
			link = append(link, 0x88, 0xa8, 0, 7)
		}
		link = append(link, 0x81, 0, 0x20, vni)
		return append(be.AppendUint16(link, et), inner...)
	case vxlan, vxlanCsum:
		l4 = append([]byte{8, 0, 0, 0, 0, 0, vni, 0}, ieth...)
		l4 = append(udpHeader(fl.oport, 4789, len(l4)+len(inner)), l4...)
		proto = 17
	case geneve, geneveCsum:
		l4 = append([]byte{1, 0, 0x65, 0x58, 0, 0, vni, 0, 1, 2, 3, vni}, ieth...)
		l4 = append(udpHeader(fl.oport, 6081, len(l4)+len(inner)), l4...)
		proto = 17
	case gre:
		l4, proto = []byte{0, 0, byte(et >> 8), byte(et)}, 47
	case greKey:
		l4, proto = []byte{0x20, 0, byte(et >> 8), byte(et), 0, 0, 0, vni}, 47
	case greCsum:
		l4, proto = []byte{0x80, 0, byte(et >> 8), byte(et), 0, 0, 0, 0}, 47
	case greKeyCsum:
		vni = 7 // one key for all: see K6
		l4, proto = []byte{0xa0, 0, byte(et >> 8), byte(et), 0, 0, 0, 0, 0, 0, 0, vni}, 47
	case greTEB:
		l4, proto = append([]byte{0, 0, 0x65, 0x58}, ieth...), 47
	case ipip, tunnelKinds:
		proto = 4
		if fl.v6 {
			proto = 41
		}
	}
	if mut == 27 && proto == 47 {
		l4[0] |= 0x10 // a sequence number, which is not there
	}
	l4 = append(l4, inner...)
	return fl.outer(r, link, l4, proto, mut)
}

func (fl *genFlow) outer(r *rand.Rand, link, l4 []byte, proto byte, mut int) []byte {
	p := ipFields{ttl: 60, proto: proto, src: 101, dst: 102, n: len(l4), id: fl.oid, df: fl.odf, label: 9}
	switch mut {
	case 28:
		p.ttl++
	case 29:
		p.df = !p.df
	case 30:
		p.id += uint16(r.IntN(4))
	}
	ip := p.v4()
	if fl.o6 {
		ip = p.v6()
		link = append(link, 0x86, 0xdd)
	} else {
		link = append(link, 8, 0)
	}
	switch fl.kind { //nolint:exhaustive // the others have no checksum
	case vxlanCsum, geneveCsum:
		c := ^pkttest.Sum(l4, uint32(pkttest.Pseudo(ip, 17, len(l4))))
		if c == 0 {
			c = 0xffff
		}
		be.PutUint16(l4[6:], c)
		if mut == 31 {
			l4[6] ^= 0x11
		}
	case greCsum, greKeyCsum:
		be.PutUint16(l4[4:], ^pkttest.Sum(l4, 0))
		if mut == 31 {
			l4[4] ^= 0x11
		}
	}
	return append(append(link, ip...), l4...)
}

func udpHeader(sp, dp uint16, n int) []byte {
	u := make([]byte, 8)
	be.PutUint16(u, sp)
	be.PutUint16(u[2:], dp)
	be.PutUint16(u[4:], uint16(8+n))
	return u
}

// burst returns up to limit frames of a few flows, most of them in order and a
// few deviating.
func burst(r *rand.Rand, limit int, kinds []tunnelKind) (frames [][]byte) {
	nf := 1 + r.IntN(3)
	if r.IntN(4) == 0 {
		nf = 1 + r.IntN(14)
	}
	flows := make([]*genFlow, nf)
	for i := range flows {
		flows[i] = randomFlow(r, kinds)
	}
	n := 1 + r.IntN(limit)
	mp := []float64{0.02, 0.1, 0.3}[r.IntN(3)]
	var cur *genFlow
	for len(frames) < n {
		if cur == nil || r.IntN(3) == 0 {
			cur = flows[r.IntN(nf)]
		}
		frames = append(frames, cur.step(r, mp))
	}
	return frames
}

func randomFlow(r *rand.Rand, kinds []tunnelKind) *genFlow {
	fl := &genFlow{
		v6: r.IntN(2) == 0, udp: r.IntN(3) == 0, mac: byte(1 + r.IntN(2)), src: byte(1 + r.IntN(2)), dst: 7,
		sp: uint16(1000 + r.IntN(4)), dp: 443, seq: r.Uint32(), ack: 5, win: 500, id: uint16(r.Uint32()),
		idmode: r.IntN(3), df: r.IntN(2) == 0, ttl: 64, ts: r.IntN(2) == 0, mss: 1 + r.IntN(1448),
		ext: byte(r.IntN(4) & 2), label: 5, oport: uint16(50000 + r.IntN(2)), o6: r.IntN(2) == 0,
		kind: kinds[r.IntN(len(kinds))], vni: byte(r.IntN(2)), oid: uint16(r.Uint32()), oidmode: r.IntN(3), odf: r.IntN(2) == 0,
	}
	var seed [32]byte
	be.PutUint64(seed[:], r.Uint64())
	fl.randomBytes = rand.NewChaCha8(seed)
	if r.IntN(6) == 0 {
		fl.mss = 3000 + r.IntN(5900)
	}
	if r.IntN(8) == 0 {
		fl.ecn = []byte{0x80, 0x40, 0xc0}[r.IntN(3)]
	}
	if r.IntN(10) == 0 {
		fl.seq = 0xffffffff - uint32(r.IntN(3000))
	}
	return fl
}

// step returns the flow's next frame, with probability mp a deviating one.
func (fl *genFlow) step(r *rand.Rand, mp float64) []byte {
	k := fl.mss
	flags := byte(0x10) | fl.ecn
	if fl.ecn != 0 && r.IntN(4) == 0 {
		flags ^= 0x80
	}
	mut := 0
	if r.Float64() < mp {
		mut = 1 + r.IntN(mutators-1)
		switch r.IntN(5) {
		case 0:
			flags ^= byte(1 << r.IntN(8))
			mut = 0
		case 1:
			k = r.IntN(fl.mss + 2)
			mut = 0
		}
	}
	f := fl.frame(r, k, flags, mut)
	if r.IntN(40) != 0 {
		fl.seq += uint32(k)
	}
	fl.id, fl.idmode = nextID(r, fl.id, fl.idmode)
	fl.oid, fl.oidmode = nextID(r, fl.oid, fl.oidmode)
	return f
}

// nextID counts up (mode 0), stays (1), or does either for a while (2).
func nextID(r *rand.Rand, id uint16, mode int) (uint16, int) {
	switch mode {
	case 0:
		return id + 1, 0
	case 2:
		if r.IntN(8) == 0 {
			return id + 1, 2
		}
		if r.IntN(8) == 0 {
			return id, 0
		}
	}
	return id, mode
}
