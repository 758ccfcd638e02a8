package gso

import (
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

// resetFragments prepares legacy UFO: a UDP datagram over IPv4 becomes IP
// fragments of s.size bytes, with the same ID and one UDP checksum. Linux
// accepts it from a virtio header although no device offers it any more.
func (s *Splitter) resetFragments(st *packet.Stack) Error {
	if st.Version != 4 {
		return ErrProtocol
	}
	s.hdrLen, s.outLen = st.Transport, st.Transport
	datagram := len(s.pkt) - s.hdrLen
	if datagram <= s.size {
		return s.single()
	}
	if s.size%8 != 0 {
		return ErrSize // a fragment offset counts units of eight bytes
	}
	if datagram > 65535-packet.IPv4MinLen {
		return ErrTooLong
	}
	s.mode = fragments
	s.count = (datagram + s.size - 1) / s.size
	s.ip = s.level(st, st.Transport, true)
	s.ip.sum += uint32(^be.Uint16(s.pkt[st.Network+6:]))
	h := s.pkt[st.Transport:]
	field := packet.UDP(h).Checksum()
	s.l4.at = st.Transport
	pseudo := packet.Pseudo(s.pkt[st.Network:], packet.ProtoUDP, datagram)
	if s.gso.Flags&vnet.NeedsCsum != 0 {
		pseudo = checksum.Partial(field)
	}
	s.l4.sum = uint32((pseudo + checksum.Sum(h).Sub16(field)).UDP())
	return 0
}

// fragment returns the part of pkt behind the IP header that frame i holds.
func (s *Splitter) fragment(i int) (from, to int) {
	from = s.hdrLen + i*s.size
	return from, min(from+s.size, len(s.pkt))
}

// writeFragment writes frame i to dst.
func (s *Splitter) writeFragment(dst []byte, i int) int {
	from, to := s.fragment(i)
	copy(dst, s.pkt[:s.hdrLen])
	copy(dst[s.hdrLen:], s.pkt[from:to])
	s.editFragment(dst, i, to-from)
	if i == 0 {
		packet.UDP(dst[s.l4.at:]).SetChecksum(uint16(s.l4.sum))
	}
	return s.hdrLen + to - from
}

// editFragment sets length, offset and checksum of the IP header.
func (s *Splitter) editFragment(b []byte, i, n int) {
	h := packet.IPv4(b[s.ip.at:])
	field := uint16(i * s.size / 8) // DF and what the super-packet had are gone
	if i != s.count-1 {
		field |= packet.IPv4MF
	}
	be.PutUint16(h[6:], field)
	sum := s.ip.sum + uint32(s.ip.base+n) + uint32(s.ip.id) + uint32(field)
	h.SetTotalLen(s.ip.base + n)
	h.SetChecksum(^fold(sum))
}

// fragmentSegment is writeFragment with the payload as a reference. The first
// fragment's UDP header is part of its Header.
func (s *Splitter) fragmentSegment(g *Segment, scratch []byte, i int) error {
	from, to := s.fragment(i)
	hl := s.hdrLen
	if i == 0 {
		hl += packet.UDPLen
	}
	if len(scratch) < hl {
		return ErrRoom
	}
	copy(scratch, s.pkt[:hl])
	s.editFragment(scratch, i, to-from)
	if i == 0 {
		packet.UDP(scratch[s.l4.at:]).SetChecksum(uint16(s.l4.sum))
		from += packet.UDPLen
	}
	g.Header, g.Payload = scratch[:hl:hl], s.pkt[from:to:to]
	return nil
}
