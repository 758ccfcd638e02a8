package gro

import (
	"encoding/binary"
	"math/bits"

	"github.com/offlab/offlab/packet"
)

var be = binary.BigEndian

// accepted is what functions return in place of a Reason if there is none.
const accepted = reasons

// maxLayers is Linux's GRO_RECURSION_LIMIT: so many handlers may call each
// other, a tag and a header of IP being one each.
const maxLayers = 15

// headers says where the headers of the packet at hand are, and what of them
// the rules need. Offsets count from the first byte pushed.
type headers struct {
	l3, l4, pay int // the innermost IP header, transport header and payload
	o3, o4      int // the outer IP header and what follows it, in a tunnel
	layers      int
	sig         uint64 // equal for packets with the same headers at the same places
	bucket      uint32
	tunnel      packet.Tunnel
	proto       uint8
	v6, o6      bool
	flush       bool // a length in the headers is wrong: cannot merge
	oflush      bool // the same of the outer headers alone
	reached     bool // parse failed behind the point where Linux verifies l4
	partial     bool // the checksum from start on is the device's to complete
	start       int
	good        int // checksums that the device has verified
}

// parse walks the headers as Linux's receive handlers do and returns accepted,
// or why the packet is passed at once. Then h.o4 tells whether the outer
// checksum of a tunnel would have been looked at first.
func (e *Engine) parse(b []byte, h *headers) Reason {
	h.pay, h.o3, h.o4, h.layers, h.tunnel, h.flush, h.oflush, h.reached = 0, 0, 0, 0, packet.NoTunnel, false, false, false
	if !e.link {
		return e.network(b, h, ipType(b), 0)
	}
	if len(b) < packet.EthernetLen {
		return Truncated
	}
	et, off := be.Uint16(b[12:]), packet.EthernetLen
	if et == packet.EtherTypeVLAN || et == packet.EtherTypeQinQ {
		var r Reason
		if et, off, r = e.tags(b, h, et, off); r != accepted {
			return r
		}
	}
	return e.network(b, h, et, off)
}

// ipType returns the EtherType of a packet without link header.
func ipType(b []byte) uint16 {
	if len(b) > 0 && b[0]>>4 == 4 {
		return packet.EtherTypeIPv4
	}
	if len(b) > 0 && b[0]>>4 == 6 {
		return packet.EtherTypeIPv6
	}
	return 0
}

// tags skips VLAN tags: et is the EtherType at off-2.
func (e *Engine) tags(b []byte, h *headers, et uint16, off int) (uint16, int, Reason) {
	for et == packet.EtherTypeVLAN || et == packet.EtherTypeQinQ {
		if e.opt.NoVLAN {
			return et, off, Unknown
		}
		if len(b)-off < packet.VLANLen {
			return et, off, Truncated
		}
		if h.layers++; h.layers == maxLayers {
			return et, off, Nested
		}
		et = be.Uint16(b[off+2:])
		off += packet.VLANLen
	}
	return et, off, accepted
}

// network reads the IP header at off, and what follows it.
func (e *Engine) network(b []byte, h *headers, et uint16, off int) Reason {
	h.l3 = off
	var r Reason
	switch et {
	case packet.EtherTypeIPv4:
		h.v6 = false
		r = h.ipv4(b, off)
	case packet.EtherTypeIPv6:
		h.v6 = true
		r = h.ipv6(b, off)
	default:
		return Unknown
	}
	if r != accepted {
		return r
	}
	if h.layers++; h.layers == maxLayers {
		return Nested
	}
	switch h.proto {
	case packet.ProtoTCP:
		return h.tcp(b)
	case packet.ProtoUDP:
		return e.udp(b, h)
	case packet.ProtoGRE:
		return e.gre(b, h)
	case packet.ProtoIPv4:
		return e.enter(b, h, packet.IPInIP, packet.EtherTypeIPv4, h.l4)
	case packet.ProtoIPv6:
		return e.enter(b, h, packet.IPInIP, packet.EtherTypeIPv6, h.l4)
	}
	return Unknown
}

// ipv4 reads an IPv4 header. Linux looks for a handler of the protocol before
// it looks at the header; the outcome is the same.
func (h *headers) ipv4(b []byte, off int) Reason {
	if len(b)-off < packet.IPv4MinLen {
		return Truncated
	}
	p := b[off : off+packet.IPv4MinLen]
	if p[0] != 0x45 {
		return IPOptions
	}
	frag := be.Uint16(p[6:])
	if frag&(packet.IPv4MF|0x1fff) != 0 {
		return Fragmented
	}
	s := uint64(be.Uint32(p)) + uint64(be.Uint32(p[4:])) + uint64(be.Uint32(p[8:])) +
		uint64(be.Uint32(p[12:])) + uint64(be.Uint32(p[16:]))
	if s = s>>32 + s&0xffffffff; fold(s) != 0xffff {
		return BadHeaderChecksum
	}
	if int(be.Uint16(p[2:])) != len(b)-off || frag&packet.IPv4Reserved != 0 {
		h.flush = true
	}
	h.proto, h.l4 = p[9], off+packet.IPv4MinLen
	return accepted
}

// ipv6 reads an IPv6 header and the extension headers that Linux skips. Linux
// does not look at the version, and would compare a wrong one as IPv4; the
// stack drops such a packet later, here it is not merged.
func (h *headers) ipv6(b []byte, off int) Reason {
	if len(b)-off < packet.IPv6Len {
		return Truncated
	}
	p := b[off : off+packet.IPv6Len]
	if p[0]>>4 != 6 {
		return Unknown
	}
	if int(be.Uint16(p[4:])) != len(b)-off-packet.IPv6Len {
		h.flush = true
	}
	proto := p[6]
	off += packet.IPv6Len
	for proto == packet.ProtoDestOpts || proto == packet.ProtoRouting || proto == packet.ProtoHopByHop {
		if len(b)-off < 8 {
			return Truncated
		}
		n := 8 + int(b[off+1])*8
		if len(b)-off < n {
			return Truncated
		}
		proto = b[off]
		off += n
	}
	if proto == packet.ProtoFragment {
		return Fragmented
	}
	h.proto, h.l4 = proto, off
	return accepted
}

// tcp checks that the TCP header is there, which Linux does after it verified
// the checksum.
func (h *headers) tcp(b []byte) Reason {
	if len(b)-h.l4 < packet.TCPMinLen {
		return Truncated
	}
	n := int(b[h.l4+12]>>4) * 4
	if n < packet.TCPMinLen || n > len(b)-h.l4 {
		h.reached = true
		return Truncated
	}
	h.pay = h.l4 + n
	return accepted
}

// udp tells a tunnel from plain UDP by the destination port, where Linux looks
// for a socket.
func (e *Engine) udp(b []byte, h *headers) Reason {
	if len(b)-h.l4 < packet.UDPLen {
		return Truncated
	}
	h.pay = h.l4 + packet.UDPLen
	port := be.Uint16(b[h.l4+2:])
	if port == 0 || port != e.opt.VXLANPort && port != e.opt.GenevePort {
		return accepted
	}
	if h.tunnel != packet.NoTunnel {
		h.reached = true
		return Nested
	}
	h.o4, h.oflush = h.l4, h.flush
	if h.flush && be.Uint16(b[h.l4+6:]) != 0 && h.good == 0 && !h.partial {
		return BadLength // Linux did not verify, so cannot convert
	}
	if e.opt.TunnelChecksum && be.Uint16(b[h.l4+6:]) == 0 {
		return NoChecksum
	}
	if port == e.opt.VXLANPort {
		if len(b)-h.pay < packet.VXLANLen {
			return Truncated
		}
		return e.enter(b, h, packet.VXLAN, packet.EtherTypeTEB, h.pay+packet.VXLANLen)
	}
	if len(b)-h.pay < packet.GeneveMinLen {
		return Truncated
	}
	g := packet.GeneveHeader(b[h.pay:])
	if g.Version() != 0 || g.OAM() {
		return TunnelHeader
	}
	if len(b)-h.pay < g.HeaderLen() {
		return Truncated
	}
	return e.enter(b, h, packet.Geneve, g.Protocol(), h.pay+g.HeaderLen())
}

// gre reads a GRE header. Linux takes version 0 with key and checksum only: a
// sequence number could not be made again on segmentation.
func (e *Engine) gre(b []byte, h *headers) Reason {
	if h.tunnel != packet.NoTunnel {
		return Nested
	}
	if len(b)-h.l4 < packet.GREMinLen {
		return Truncated
	}
	g := packet.GREHeader(b[h.l4:])
	if g[0]&^0xa0 != 0 || g[1] != 0 {
		return TunnelHeader
	}
	if len(g) < g.HeaderLen() {
		return Truncated
	}
	switch g.Protocol() {
	case packet.EtherTypeIPv4, packet.EtherTypeIPv6, packet.EtherTypeTEB, packet.EtherTypeVLAN, packet.EtherTypeQinQ:
	default:
		return Unknown // before the checksum is looked at
	}
	h.o4, h.oflush = h.l4, h.flush
	return e.enter(b, h, packet.GRE, g.Protocol(), h.l4+g.HeaderLen())
}

// enter goes into a tunnel: what it carries begins at off with EtherType et.
func (e *Engine) enter(b []byte, h *headers, t packet.Tunnel, et uint16, off int) Reason {
	if h.tunnel != packet.NoTunnel {
		return Nested
	}
	h.tunnel, h.o3, h.o4, h.o6, h.oflush = t, h.l3, h.l4, h.v6, h.flush
	if h.layers++; h.layers >= maxLayers {
		return Nested
	}
	if et == packet.EtherTypeTEB {
		if len(b)-off < packet.EthernetLen {
			return Truncated
		}
		et = be.Uint16(b[off+12:])
		off += packet.EthernetLen
	}
	var r Reason
	if et, off, r = e.tags(b, h, et, off); r != accepted {
		return r
	}
	return e.network(b, h, et, off)
}

// fold brings a sum below 1<<34 to 16 bits.
func fold(s uint64) uint16 {
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s&0xffff)
}

// signature is that of a packet outside tunnels. Offsets are at most MaxHeader.
func signature(l3, l4 int, bucket uint32, proto uint8) uint64 {
	return uint64(l3) | uint64(l4)<<10 | uint64(bucket)<<40 | uint64(proto)<<56
}

// identify sets the signature and returns the hash of the flow.
func (e *Engine) identify(b []byte, h *headers) uint32 {
	h.sig = signature(h.l3, h.l4, h.bucket, h.proto) | uint64(h.o3)<<20 | uint64(h.o4)<<30 | uint64(h.tunnel)<<52
	if h.v6 {
		h.sig |= 1 << 55
	}
	p := uint64(le.Uint32(b[h.l4:])) | uint64(h.proto)<<32 | uint64(h.bucket)<<40
	var a uint64
	if h.v6 {
		ip := b[h.l3 : h.l3+packet.IPv6Len]
		p ^= uint64(le.Uint32(ip)&0xffff0ff0) << 32
		hi, lo := bits.Mul64(le.Uint64(ip[8:])^e.seed[0], le.Uint64(ip[16:])^e.seed[1])
		hi2, lo2 := bits.Mul64(le.Uint64(ip[24:])^e.seed[1], le.Uint64(ip[32:])^e.seed[0])
		a = hi ^ lo ^ bits.RotateLeft64(hi2^lo2, 31)
	} else {
		a = le.Uint64(b[h.l3+12:])
	}
	if h.tunnel == packet.VXLAN || h.tunnel == packet.Geneve {
		p ^= uint64(le.Uint32(b[h.o4+12:])) << 24
	}
	return e.hash4(a, p)
}
