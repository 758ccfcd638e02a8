package gso

import (
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

// jumboLen is the length of a hop-by-hop header that holds a jumbo payload
// option and nothing else (RFC 2675).
const jumboLen = 8

// prepare sums up what the headers of all segments have in common.
func (s *Splitter) prepare(l *packet.Layout, st *packet.Stack) Error {
	inTunnel := l.Tunnel != packet.NoTunnel
	s.outLen = s.hdrLen
	if !inTunnel {
		s.findJumbo(st)
	}
	s.ip = s.level(st, st.Payload, s.opt.FixedID && !inTunnel || s.opt.FixedInnerID && inTunnel)
	s.transport(st)
	if !s.opt.AccECN {
		s.cwr = packet.CWR
	}
	if inTunnel {
		s.outer = s.level(&l.Stack, st.Payload, s.opt.FixedID)
		if e := s.tunnel(l); e != 0 {
			return e
		}
	}
	longest := min(s.size, len(s.pkt)-s.hdrLen)
	if s.ip.base+longest > 65535 || inTunnel && s.outer.base+longest > 65535 {
		return ErrTooLong
	}
	if s.opt.Checksum == Pseudo {
		s.csumStart, s.csumOffset = s.l4.at, packet.TCPChecksumOffset
		if s.mode == udp {
			s.csumOffset = packet.UDPChecksumOffset
		}
	}
	if s.opt.Partial {
		s.chunk()
	}
	s.prepareMiddle()
	return 0
}

// prepareMiddle edits the headers of frame 1 once, for all frames that differ
// from it in little.
func (s *Splitter) prepareMiddle() {
	hl := s.outLen
	if s.per != 0 || s.count < 4 || hl > len(s.mid.header) || hl < 16 {
		return
	}
	m := &s.mid
	m.count = s.count - 2
	s.copyHeader(m.header[:hl])
	s.edit(m.header[:hl], 1, s.size, 0)
	m.ip = s.ip.sum + uint32(s.ip.base+s.size)
	m.outer = s.outer.sum + uint32(s.outer.base+s.size)
	length := uint32(s.l4.len + s.size)
	if s.mode == udp {
		m.field = s.l4.at + packet.UDPChecksumOffset
		m.l4 = s.l4.sum + 2*length
	} else {
		m.field = s.l4.at + packet.TCPChecksumOffset
		m.l4 = s.l4.sum + length + uint32(be.Uint16(m.header[s.l4.at+12:]))
	}
}

// level prepares the IP header of a stack; end is the offset of the payload
// that is cut.
func (s *Splitter) level(st *packet.Stack, end int, fixed bool) level {
	l := level{at: st.Network, v6: st.Version == 6, base: end - st.Network}
	if l.v6 {
		l.base -= packet.IPv6Len
		if s.cut != 0 {
			l.base -= jumboLen
		}
		return l
	}
	h := packet.IPv4(s.pkt[st.Network:])
	l.id = h.ID()
	if !fixed {
		l.step = 1
	}
	h = h[:h.HeaderLen()]
	l.sum = uint32(checksum.Sum(h).Sub16(be.Uint16(h[2:])).Sub16(l.id).Sub16(h.Checksum()).Fold())
	return l
}

func (s *Splitter) transport(st *packet.Stack) {
	h := s.pkt[st.Transport:st.Payload]
	t := &s.l4
	t.at, t.len = st.Transport, len(h)
	if s.cut != 0 {
		t.at -= jumboLen
	}
	at := packet.TCPChecksumOffset
	if s.mode == udp {
		at = packet.UDPChecksumOffset
	}
	field := be.Uint16(h[at:])
	pseudo := packet.Pseudo(s.pkt[st.Network:], st.Proto, 0)
	if s.gso.Flags&vnet.NeedsCsum != 0 {
		// The field holds the pseudo-header's sum, with the length of the whole.
		pseudo = checksum.Partial(field).Sub(checksum.Partial(len(s.pkt) - st.Transport))
	}
	sum := pseudo + checksum.Sum(h).Sub16(field)
	if s.mode == udp {
		sum = sum.Sub16(be.Uint16(h[4:]))
	} else {
		t.seq, t.word = be.Uint32(h[4:]), be.Uint16(h[12:])
		sum = sum.Sub16(be.Uint16(h[4:])).Sub16(be.Uint16(h[6:])).Sub16(t.word)
	}
	t.pseudo, t.sum = uint32(pseudo.Fold()), uint32(sum.Fold())
}

// tunnel prepares the header between the outer and the inner stack. Its
// checksum covers the segment; but whatever the payload is, a transport
// segment with a valid checksum sums to the complement of its pseudo-header,
// so the headers are enough.
func (s *Splitter) tunnel(l *packet.Layout) Error {
	t := &s.tun
	t.at = l.Transport
	end := l.Inner.Transport
	if l.Inner.Version == 4 {
		end = l.Inner.Network
	}
	sum := checksum.Sum(s.pkt[l.Transport:end])
	switch l.Proto {
	case packet.ProtoUDP:
		t.base = s.hdrLen - l.Transport
		h := packet.UDP(s.pkt[l.Transport:])
		if s.wantsOuterChecksum(h) {
			t.field = l.Transport + packet.UDPChecksumOffset
			sum = sum.Sub16(h.Checksum()).Sub16(be.Uint16(h[4:])) + packet.Pseudo(s.pkt[l.Network:], packet.ProtoUDP, 0)
		}
	case packet.ProtoGRE:
		h := packet.GREHeader(s.pkt[l.Transport:])
		if h.HasSequence() {
			return ErrTunnel
		}
		if h.HasChecksum() {
			t.field = l.Transport + 4
			sum = sum.Sub16(h.Checksum())
		}
	}
	if l.Inner.Version == 6 {
		sum = sum.Sub16(be.Uint16(s.pkt[l.Inner.Network+4:]))
	}
	t.sum = uint32(sum.Fold())
	return 0
}

// wantsOuterChecksum reports whether the segments' outer UDP headers get a
// checksum: as the virtio header says if it knows of the tunnel, else if the
// super-packet's has one.
func (s *Splitter) wantsOuterChecksum(h packet.UDP) bool {
	if s.gso.GSOType.UDPTunnel() {
		return s.gso.Flags&vnet.UDPTunnelCsum != 0
	}
	return h.Checksum() != 0
}

// findJumbo notes a hop-by-hop header with nothing but a jumbo payload option:
// segments are not jumbograms, and Linux removes it.
func (s *Splitter) findJumbo(st *packet.Stack) {
	at := st.Network + packet.IPv6Len
	if st.Version != 6 || s.pkt[st.Network+6] != packet.ProtoHopByHop || at+jumboLen > st.Transport {
		return
	}
	// Next header, length 0, option 0xc2 of 4 bytes, and those.
	if h := s.pkt[at:]; h[1] == 0 && h[2] == 0xc2 && h[3] == 4 {
		s.cut = at
		s.outLen -= jumboLen
	}
}

// chunk makes the frames as large as a device with GSO_PARTIAL takes them: the
// most segments that fit into 65534 bytes. What is not a multiple of the
// segment size is left for a last frame of its own.
func (s *Splitter) chunk() {
	payload := len(s.pkt) - s.hdrLen
	per := min(payload, 65534) / s.size
	if per < 2 {
		return
	}
	segs := payload / s.size
	s.per, s.multiple = per, s.hdrLen+segs*s.size
	s.count = (segs + per - 1) / per
	if s.multiple < len(s.pkt) {
		s.count++
	}
}
