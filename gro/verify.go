package gro

import (
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
)

// unverified tells which checksums of the packet at hand have to be computed:
// the inner or only one, and that of a tunnel. Not those of a packet that
// cannot merge anyway, those that a device vouches for, counted from the
// outermost one, and those that are not filled in yet.
func (e *Engine) unverified(b []byte) (inner, outer bool) {
	h := &e.h
	good := h.good
	if h.o4 != 0 && !h.oflush && h.outerCounts(b) {
		if good == 0 {
			outer = h.outerSummed(b) && !(h.partial && h.start >= h.o4)
		} else {
			good--
		}
	}
	if h.flush || good > 0 || h.partial && h.start >= h.l4 {
		return false, outer
	}
	return h.proto == packet.ProtoTCP || packet.UDP(b[h.l4:]).Checksum() != 0, outer
}

// outerCounts reports whether the header at o4 has a place for a checksum that
// Linux looks at.
func (h *headers) outerCounts(b []byte) bool {
	switch h.tunnel {
	case packet.IPInIP:
		return false
	case packet.GRE:
		return packet.GREHeader(b[h.o4:]).HasChecksum()
	case packet.NoTunnel: // a tunnel's header that was refused
		if h.proto == packet.ProtoGRE {
			return packet.GREHeader(b[h.o4:]).HasChecksum()
		}
	case packet.VXLAN, packet.Geneve:
	}
	return true
}

// outerSummed reports whether a checksum is there.
func (h *headers) outerSummed(b []byte) bool {
	return h.outerProto() == packet.ProtoGRE || packet.UDP(b[h.o4:]).Checksum() != 0
}

func (h *headers) outerProto() uint8 {
	if h.tunnel == packet.GRE || h.tunnel == packet.NoTunnel && h.proto == packet.ProtoGRE {
		return packet.ProtoGRE
	}
	return packet.ProtoUDP
}

// verify checks what unverified told, with the sum of the payload. valid says
// that some checksum of the packet has been verified, which is what Linux notes
// in ip_summed; it may be so although ok is false, in a tunnel.
func (e *Engine) verify(b []byte, payload checksum.Partial, inner, outer bool) (ok, valid bool) {
	h := &e.h
	if inner || outer {
		payload += headerSum(b[h.l4:h.pay])
	}
	if h.o4 != 0 {
		if ok, valid = e.verifyOuter(b, payload, outer); !ok {
			return false, false
		}
	}
	if inner && (payload+pseudo(b[h.l3:], h.proto, len(b)-h.l4)).Fold() != 0xffff {
		return false, valid
	}
	return true, valid || !h.flush
}

// verifyOuter checks a tunnel's checksum, with the sum of what is behind l4.
func (e *Engine) verifyOuter(b []byte, rest checksum.Partial, compute bool) (ok, valid bool) {
	h := &e.h
	if compute {
		rest += checksum.Sum(b[h.o4:h.l4])
		if h.outerProto() == packet.ProtoUDP {
			rest += pseudo(b[h.o3:], packet.ProtoUDP, len(b)-h.o4)
		}
		if rest.Fold() != 0xffff {
			return false, false
		}
	}
	return true, !h.oflush && h.outerCounts(b)
}

// pseudo returns the sum of the pseudo-header of l4 bytes in an IP packet whose
// header has been checked.
func pseudo(ip []byte, proto uint8, length int) checksum.Partial {
	n := uint64(proto) + uint64(uint32(length))
	if ip[0]>>4 == 4 {
		ip = ip[:packet.IPv4MinLen]
		s := uint64(be.Uint32(ip[12:])) + uint64(be.Uint32(ip[16:])) + n
		return checksum.Partial(s&0xffff + s>>16)
	}
	ip = ip[:packet.IPv6Len]
	for i := 8; i < packet.IPv6Len; i += 4 {
		n += uint64(be.Uint32(ip[i:]))
	}
	return checksum.Partial(n&0xffff + n>>16)
}

// headerSum sums a transport header, whose length is a multiple of 4 and small.
func headerSum(p []byte) checksum.Partial {
	var s uint64
	for ; len(p) >= 4; p = p[4:] {
		s += uint64(be.Uint32(p))
	}
	return checksum.Partial(s&0xffff + s>>16)
}

// fail passes a packet that parse did not accept. What Linux had verified by
// then shows in the output.
func (e *Engine) fail(pk *Packet, b []byte, r Reason) {
	h := &e.h
	if !h.reached && h.o4 == 0 {
		e.pass(pk, r, false)
		return
	}
	var inner, outer bool
	if h.reached {
		inner, outer = e.unverified(b)
	} else {
		h.l4, h.flush = h.o4, true
		_, outer = e.unverified(b)
	}
	h.pay = h.l4
	var sum checksum.Partial
	if inner || outer {
		sum = checksum.Sum(b[h.l4:])
	}
	ok, valid := e.verify(b, sum, inner, outer)
	if !ok {
		r = BadChecksum
	}
	e.pass(pk, r, valid)
}

// segments returns how many segments a pushed aggregate stands for.
func (e *Engine) segments(pk *Packet) int {
	size := int(pk.Header.GSOSize)
	if size == 0 {
		return 1
	}
	n := len(pk.Data)
	for _, p := range pk.Rest {
		n += len(p)
	}
	n -= min(n, e.h.pay)
	return max(1, (n+size-1)/size)
}
