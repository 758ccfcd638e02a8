package gro

import "github.com/offlab/offlab/packet"

// same reports whether the packet at hand belongs to the flow, as Linux's
// same_flow has it: equal link headers, addresses, flow label, tunnel and
// ports. The two signatures are equal, so all headers are at the same offsets.
func (e *Engine) same(f *flow, b []byte) bool {
	h, a := &e.h, f.buf
	if le.Uint32(a[h.l4:]) != le.Uint32(b[h.l4:]) {
		return false
	}
	if h.o4 == 0 {
		return sameIP(a, b, h.l3, h.l4) && sameLink(a, b, h.l3)
	}
	return sameLink(a, b, h.o3) && sameIP(a, b, h.o3, h.o4) && sameIP(a, b, h.l3, h.l4) && h.sameTunnel(a, b)
}

// sameLink compares the Ethernet header and the tags: everything before the IP
// header at n.
func sameLink(a, b []byte, n int) bool {
	switch n {
	case 0:
		return true
	case packet.EthernetLen:
		return le.Uint64(a) == le.Uint64(b) && le.Uint64(a[6:]) == le.Uint64(b[6:])
	}
	return string(a[:n]) == string(b[:n])
}

// sameIP compares the identity in two IP headers at l3 whose extension headers
// end at l4. The protocol and version are in the signature; between IPv6
// headers it is the first next header that has to be equal, and the bytes of
// all extension headers.
func sameIP(a, b []byte, l3, l4 int) bool {
	if l4-l3 == packet.IPv4MinLen {
		return le.Uint64(a[l3+12:]) == le.Uint64(b[l3+12:])
	}
	x, y := a[l3:l3+packet.IPv6Len], b[l3:l3+packet.IPv6Len]
	if (le.Uint32(x)^le.Uint32(y))&0xffff0ff0 != 0 || x[6] != y[6] ||
		le.Uint64(x[8:]) != le.Uint64(y[8:]) || le.Uint64(x[16:]) != le.Uint64(y[16:]) ||
		le.Uint64(x[24:]) != le.Uint64(y[24:]) || le.Uint64(x[32:]) != le.Uint64(y[32:]) {
		return false
	}
	return string(a[l3+packet.IPv6Len:l4]) == string(b[l3+packet.IPv6Len:l4])
}

// sameTunnel compares the tunnel headers and what lies between them and the
// inner IP header.
func (h *headers) sameTunnel(a, b []byte) bool {
	at := h.o4
	switch h.tunnel {
	case packet.VXLAN, packet.Geneve:
		// The ports, and whether there is a checksum; not the length.
		ua, ub := packet.UDP(a[at:]), packet.UDP(b[at:])
		if string(ua[:4]) != string(ub[:4]) || (ua.Checksum() == 0) != (ub.Checksum() == 0) {
			return false
		}
		at += packet.UDPLen
	case packet.GRE:
		// Flags and protocol. Linux compares the word behind them if there is a
		// key; with a checksum too that word is the checksum and not the key
		// (net/ipv4/gre_offload.c, 7.2). Equally long packets have equal ones,
		// as what is summed has a right checksum itself; a short last segment
		// has not and does not merge. The key is under the checksum, and is
		// compared here as well.
		if string(a[at:at+4]) != string(b[at:at+4]) {
			return false
		}
		g := packet.GREHeader(a[at:])
		at += packet.GREMinLen
		if g.HasChecksum() && !g.HasKey() {
			at += 4
		}
	case packet.NoTunnel, packet.IPInIP:
	}
	return string(a[at:h.l3]) == string(b[at:h.l3])
}

// ipMismatch compares those fields of the IP headers that must be equal within
// an aggregate but do not name a flow. It leaves in e.fixed what f.fixed
// becomes if the packet is merged.
func (e *Engine) ipMismatch(f *flow, b []byte) Reason {
	h := &e.h
	e.fixed = f.fixed
	if h.o4 != 0 {
		if r := e.levelMismatch(f, b, h.o3, h.o6, true); r != accepted {
			return r
		}
	}
	return e.levelMismatch(f, b, h.l3, h.v6, false)
}

func (e *Engine) levelMismatch(f *flow, b []byte, l3 int, v6, outer bool) Reason {
	if v6 {
		x, y := f.buf[l3:l3+8], b[l3:l3+8]
		switch {
		case x[0] != y[0] || (x[1]^y[1])&0xf0 != 0:
			return TOSChanged
		case x[7] != y[7]:
			return TTLChanged
		}
		return accepted
	}
	x, y := f.buf[l3:l3+packet.IPv4MinLen], b[l3:l3+packet.IPv4MinLen]
	switch {
	case x[8] != y[8]:
		return TTLChanged
	case x[1] != y[1]:
		return TOSChanged
	case (x[6]^y[6])&0x40 != 0:
		return DFChanged
	}
	d := be.Uint16(y[4:]) - be.Uint16(x[4:])
	bit := uint8(fixedInner)
	df := y[6]&0x40 != 0
	switch e.opt.Semantics {
	case Linux612, Linux616:
		if outer && df {
			return accepted
		}
		if f.count == 1 && d == 0 && df {
			e.fixed |= bit // one flag for both levels
		}
	case Linux618, Linux72:
		if outer {
			bit = fixedOuter
		}
		if f.count == 1 && d == 0 {
			e.fixed |= bit
		}
	}
	want := uint16(f.count)
	if e.fixed&bit != 0 {
		want = 0
	}
	if d != want {
		return IDJump
	}
	return accepted
}
