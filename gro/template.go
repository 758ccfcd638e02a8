package gro

import (
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// The template path is for all that the fast path is not for: IPv6, UDP, tags
// and tunnels. It tries whether the packet continues the flow that was touched
// last, by one comparison of all headers under a mask that leaves out what may
// differ. As the fast path it changes nothing before it knows, and what it does
// not take goes the general way.

// maskWords is how much of the headers a mask covers: VXLAN between two IPv6
// headers, with TCP options, needs 156 bytes.
const maskWords = 20

// A mask has a zero for each bit that may differ between two packets of a flow
// with such headers.
type mask struct {
	sig   uint64
	flags byte // of a GRE header: it says which fields follow
	n     int  // bytes of headers
	words [maskWords]uint64
}

// maskOf returns the mask for the headers of f. There are few kinds at a time,
// so they share a small cache.
func (e *Engine) maskOf(f *flow) *mask {
	var gre byte
	if f.tunnel() == packet.GRE {
		gre = f.buf[f.o4]
	}
	for i := range e.masks {
		if m := &e.masks[i]; m.sig == f.sig && m.n == f.pay && m.flags == gre {
			return m
		}
	}
	m := &e.masks[e.nextMask]
	e.nextMask = (e.nextMask + 1) % len(e.masks)
	m.sig, m.n, m.flags = f.sig, f.pay, gre
	var b [maskWords * 8]byte
	for i := range b[:f.pay] {
		b[i] = 0xff
	}
	maskIP(b[f.l3:], f.buf[f.l3])
	t := b[f.l4:]
	if f.proto() == packet.ProtoTCP {
		clear(t[4:8])   // sequence number
		clear(t[16:20]) // checksum, urgent pointer
		t[13] &^= endFlags
	} else {
		clear(t[4:8]) // length, checksum
	}
	if f.o4 != 0 {
		maskIP(b[f.o3:], f.buf[f.o3])
		switch o := b[f.o4:]; f.tunnel() {
		case packet.VXLAN, packet.Geneve:
			clear(o[4:8])
		case packet.GRE:
			if gre&0xa0 == 0x80 { // a checksum; with a key Linux compares it
				clear(o[4:8])
			}
		case packet.NoTunnel, packet.IPInIP:
		}
	}
	for i := range m.words {
		m.words[i] = le.Uint64(b[i*8:])
	}
	return m
}

// maskIP leaves out the length and, of IPv4, the ID and the checksum.
func maskIP(b []byte, version byte) {
	if version>>4 == 6 {
		clear(b[4:6])
		return
	}
	clear(b[2:6])
	clear(b[10:12])
}

// template merges the packet if it continues the flow touched last, and reports
// whether it has dealt with it.
func (e *Engine) template(pk *Packet) bool {
	f, b := e.recent, pk.Data
	if f == nil || len(b) <= f.pay || f.pay > maskWords*8 || pk.Header.GSOType != vnet.GSONone || len(pk.Rest) != 0 ||
		f.in.GSOType != vnet.GSONone || f.bucket != pk.Hash&e.bucketMask {
		return false
	}
	m := e.maskOf(f)
	if !m.equal(f.buf[:f.pay], b[:f.pay]) || !f.lengthsFit(b) {
		return false
	}
	h := &e.h
	h.l3, h.l4, h.pay, h.o3, h.o4, h.sig, h.bucket = f.l3, f.l4, f.pay, f.o3, f.o4, f.sig, f.bucket
	h.tunnel, h.proto, h.v6, h.o6 = f.tunnel(), f.proto(), f.buf[f.l3]>>4 == 6, f.o4 != 0 && f.buf[f.o3]>>4 == 6
	h.flush, h.oflush, h.reached = false, false, false
	e.claims(pk)
	n := len(b) - f.pay
	if n > f.gso || f.size+n >= e.limit() || e.ipMismatch(f, b) != accepted {
		return false
	}
	t := b[f.l4:]
	if h.proto == packet.ProtoUDP {
		if packet.UDP(t).Length() != packet.UDPLen+n || packet.UDP(t).Checksum() == 0 {
			return false
		}
		e.mergeUDP(f, pk, b)
		return true
	}
	if packet.TCP(t).Seq() != f.seq || e.opt.Semantics != Linux72 && t[13]&packet.CWR != 0 {
		return false
	}
	e.mergeTCP(f, pk, b, 1, true)
	return true
}

// equal compares two runs of headers, which have the length of the mask.
func (m *mask) equal(x, y []byte) bool {
	var d uint64
	i := 0
	for len(x) >= 8 && len(y) >= 8 {
		d |= (le.Uint64(x) ^ le.Uint64(y)) & m.words[i]
		x, y = x[8:], y[8:]
		i++
	}
	for j := range x {
		d |= uint64(x[j]^y[j]) << (8 * j) & m.words[i]
	}
	return d == 0
}

// lengthsFit reports whether the lengths and header checksums of the packet,
// whose headers are otherwise those of f, are right.
func (f *flow) lengthsFit(b []byte) bool {
	if f.o4 != 0 {
		if t := f.tunnel(); t == packet.VXLAN || t == packet.Geneve {
			if (packet.UDP(b[f.o4:]).Checksum() == 0) != (packet.UDP(f.buf[f.o4:]).Checksum() == 0) {
				return false
			}
		}
		if !ipFits(b[f.o3:]) {
			return false
		}
	}
	return ipFits(b[f.l3:])
}

func ipFits(ip []byte) bool {
	if ip[0]>>4 == 6 {
		return packet.IPv6(ip).PayloadLen() == len(ip)-packet.IPv6Len
	}
	return packet.IPv4(ip).TotalLen() == len(ip) && headerSum(ip[:packet.IPv4MinLen]).Fold() == 0xffff
}
