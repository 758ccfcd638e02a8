package gso

import (
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

// A Segment is a frame in two parts, for a descriptor ring or writev.
type Segment struct {
	// Header is in the caller's scratch: all headers of the frame.
	Header []byte
	// Payload refers to the super-packet.
	Payload []byte
	// CsumStart and CsumOffset say which checksum the device has to complete,
	// as in virtio_net_hdr. Both are 0 if it is complete.
	CsumStart, CsumOffset int
	// GSOSize is the payload per segment that a device still has to cut the
	// frame into, with Options.Partial; 0 if it is one segment.
	GSOSize int
	// Segments is the number of segments in the frame, 1 without
	// Options.Partial.
	Segments int
}

// Frame writes frame i to dst and returns its length. It copies and sums the
// payload in one pass. If dst is too short it writes nothing and returns
// ErrRoom. dst must not overlap the super-packet. It panics if i is not below
// Len.
func (s *Splitter) Frame(dst []byte, i int) (int, error) {
	if uint(i) >= uint(s.count) {
		panic("gso: frame index out of range")
	}
	if s.mode != tcp && s.mode != udp {
		return s.otherFrame(dst, i)
	}
	from, to := s.span(i)
	hl := s.HeaderLen()
	n := to - from
	if len(dst) < hl+n {
		return 0, ErrRoom
	}
	s.copyHeader(dst)
	var pay checksum.Partial
	if s.opt.Checksum == Full {
		pay = checksum.CopySum(dst[hl:hl+n], s.pkt[from:to])
	} else {
		copy(dst[hl:hl+n], s.pkt[from:to])
	}
	s.edit(dst[:hl], i, n, pay)
	return hl + n, nil
}

// Segment writes the headers of frame i to scratch and sets g to it. The
// payload is not copied; with [Pseudo] it is not even read. If scratch is
// shorter than HeaderLen it returns ErrRoom and leaves g alone. It panics if i
// is not below Len.
func (s *Splitter) Segment(g *Segment, scratch []byte, i int) error {
	if uint(i) >= uint(s.count) {
		panic("gso: segment index out of range")
	}
	hl := s.HeaderLen()
	if len(scratch) < hl {
		return ErrRoom
	}
	if s.mode != tcp && s.mode != udp {
		return s.otherSegment(g, scratch, i)
	}
	from, to := s.span(i)
	s.copyHeader(scratch)
	g.Header, g.Payload = scratch[:hl:hl], s.pkt[from:to:to]
	var pay checksum.Partial
	if s.opt.Checksum == Full {
		g.CsumStart, g.CsumOffset = 0, 0
		pay = checksum.Sum(g.Payload)
	} else {
		g.CsumStart, g.CsumOffset = s.l4.at, packet.TCPChecksumOffset
		if s.mode == udp {
			g.CsumOffset = packet.UDPChecksumOffset
		}
	}
	g.GSOSize, g.Segments = 0, 1
	if to-from > s.size {
		g.GSOSize, g.Segments = s.size, (to-from)/s.size
	}
	s.edit(g.Header, i, to-from, pay)
	return nil
}

func (s *Splitter) copyHeader(dst []byte) {
	if s.cut == 0 {
		copy(dst, s.pkt[:s.hdrLen])
		return
	}
	copy(dst, s.pkt[:s.cut])
	copy(dst[s.cut:], s.pkt[s.cut+jumboLen:s.hdrLen])
	dst[s.cut-packet.IPv6Len+6] = s.pkt[s.cut] // next header
}

// edit turns the headers of the super-packet into those of frame i, which has
// n bytes of payload that sum to pay.
func (s *Splitter) edit(b []byte, i, n int, pay checksum.Partial) {
	off := i * s.size
	seg := i
	if s.per != 0 {
		seg *= s.per
		off *= s.per
		if s.hdrLen+off > s.multiple {
			off = s.multiple - s.hdrLen
			seg = off / s.size
		}
		n = min(n, s.size)
	}
	s.ip.set(b, seg, n)
	length := s.l4.len + n
	h := b[s.l4.at:]
	if s.mode == tcp {
		s.editTCP(packet.TCP(h), i, off, checksum.Partial(length)+pay)
	} else {
		h[4], h[5] = byte(length>>8), byte(length)
		c := s.l4.pseudo + checksum.Partial(length)
		if s.opt.Checksum == Full {
			packet.UDP(h).SetChecksum((s.l4.sum + 2*checksum.Partial(length) + pay).UDP())
		} else {
			packet.UDP(h).SetChecksum(c.Fold())
		}
	}
	if s.tun.at != 0 {
		s.editOuter(b, seg, n)
	}
}

func (s *Splitter) editTCP(h packet.TCP, i, off int, sum checksum.Partial) {
	_ = h[19]
	seq, word := s.l4.seq+uint32(off), s.l4.word
	if i != s.count-1 {
		word &^= packet.FIN | packet.PSH
	}
	if i != 0 && !s.opt.AccECN {
		word &^= packet.CWR
	}
	h.SetSeq(seq)
	h[13] = byte(word)
	if s.opt.Checksum == Full {
		h.SetChecksum((s.l4.sum + sum).Add32(seq).Add16(word).Checksum())
	} else {
		h.SetChecksum((s.l4.pseudo + sum).Fold())
	}
}

// editOuter sets the lengths and checksums of the tunnel.
func (s *Splitter) editOuter(b []byte, seg, n int) {
	s.outer.set(b, seg, n)
	t := &s.tun
	sum := t.sum
	if t.base != 0 {
		length := t.base + n
		packet.UDP(b[t.at:]).SetLength(length)
		sum += 2 * checksum.Partial(length) // in the header and in the pseudo-header
		if t.field == 0 {
			b[t.at+6], b[t.at+7] = 0, 0
		}
	}
	if t.field == 0 {
		return
	}
	if s.ip.v6 {
		sum += checksum.Partial(s.ip.base + n)
	}
	sum = sum.Sub(s.l4.pseudo + checksum.Partial(s.l4.len+n))
	if t.base != 0 {
		be.PutUint16(b[t.field:], sum.UDP())
	} else {
		be.PutUint16(b[t.field:], sum.Checksum())
	}
}

// set writes length, ID and checksum of segment seg with n bytes of payload.
func (l *level) set(b []byte, seg, n int) {
	h := b[l.at:]
	length := l.base + n
	if l.v6 {
		packet.IPv6(h).SetPayloadLen(length)
		return
	}
	_ = h[19]
	id := l.id + l.step*uint16(seg)
	packet.IPv4(h).SetTotalLen(length)
	packet.IPv4(h).SetID(id)
	packet.IPv4(h).SetChecksum((l.sum + checksum.Partial(length)).Add16(id).Checksum())
}

// otherFrame writes the frame of a packet that is not cut into segments.
func (s *Splitter) otherFrame(dst []byte, i int) (int, error) {
	if len(dst) < s.Size(i) {
		return 0, ErrRoom
	}
	if s.mode == fragments {
		return s.writeFragment(dst, i), nil
	}
	if s.mode == complete {
		at := int(s.gso.CsumStart)
		copy(dst, s.pkt[:at])
		c := checksum.CopySum(dst[at:], s.pkt[at:])
		// As skb_checksum_help in Linux, 0 is written as 0xffff whatever the
		// protocol.
		be.PutUint16(dst[at+int(s.gso.CsumOffset):], c.UDP())
		return len(s.pkt), nil
	}
	return copy(dst, s.pkt), nil
}

func (s *Splitter) otherSegment(g *Segment, scratch []byte, i int) error {
	*g = Segment{Segments: 1}
	if s.mode == fragments {
		return s.fragmentSegment(g, scratch, i)
	}
	at, field := int(s.gso.CsumStart), int(s.gso.CsumOffset)
	if s.mode == complete {
		copy(scratch, s.pkt[:s.hdrLen])
		be.PutUint16(scratch[at+field:], checksum.Sum(s.pkt[at:]).UDP())
		g.Header, g.Payload = scratch[:s.hdrLen:s.hdrLen], s.pkt[s.hdrLen:]
		return nil
	}
	g.Payload = s.pkt
	if s.gso.Flags&vnet.NeedsCsum != 0 {
		g.CsumStart, g.CsumOffset = at, field
	}
	return nil
}
