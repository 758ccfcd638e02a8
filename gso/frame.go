package gso

import (
	"encoding/binary"

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
	// Most frames: full, in the middle, with their checksum.
	if end := s.outLen + s.size; uint(i-1) < uint(s.mid.count) && len(dst) >= end && s.opt.Checksum == Full {
		from := s.hdrLen + i*s.size
		pay := checksum.CopySum(dst[s.outLen:end], s.pkt[from:from+s.size])
		s.header(dst[:end], i, s.size, uint32(pay))
		return end, nil
	}
	if s.mode != tcp && s.mode != udp {
		return s.otherFrame(dst, i)
	}
	from, to := s.span(i)
	hl := s.outLen
	end := hl + to - from
	if len(dst) < end {
		return 0, ErrRoom
	}
	var pay uint32
	if s.opt.Checksum == Full {
		pay = uint32(checksum.CopySum(dst[hl:end], s.pkt[from:to]))
	} else {
		copy(dst[hl:end], s.pkt[from:to])
	}
	s.header(dst[:end], i, to-from, pay)
	return end, nil
}

// Segment writes the headers of frame i to scratch and sets g to it. The
// payload is not copied; with [Pseudo] it is not even read. If scratch is
// shorter than HeaderLen it returns ErrRoom and leaves g alone. It panics if i
// is not below Len.
func (s *Splitter) Segment(g *Segment, scratch []byte, i int) error {
	if s.mode != tcp && s.mode != udp {
		return s.otherSegment(g, scratch, i)
	}
	from, to := s.span(i)
	hl := s.outLen
	if len(scratch) < hl {
		return ErrRoom
	}
	g.Header, g.Payload = scratch[:hl:hl], s.pkt[from:to:to]
	g.CsumStart, g.CsumOffset = s.csumStart, s.csumOffset
	g.GSOSize, g.Segments = 0, 1
	if to-from > s.size {
		g.GSOSize, g.Segments = s.size, (to-from)/s.size
	}
	var pay uint32
	if s.opt.Checksum == Full {
		pay = uint32(checksum.Sum(s.pkt[from:to]))
	}
	s.header(scratch, i, to-from, pay)
	return nil
}

// header writes the headers of frame i, with n bytes of payload that sum to
// pay, to the start of b. It may use what lies behind them only to check a
// length once.
func (s *Splitter) header(b []byte, i, n int, pay uint32) {
	m := &s.mid
	if uint(i-1) >= uint(m.count) || len(b) < len(m.header) {
		s.firstOrLast(b[:s.outLen], i, n, pay)
		return
	}
	h := (*[128]byte)(b)
	// Overlapping moves of words cost less than a call of memmove.
	hl := s.outLen
	if hl < 32 {
		move16((*[16]byte)(h[0:]), (*[16]byte)(m.header[0:]))
		move16((*[16]byte)(h[hl-16:]), (*[16]byte)(m.header[hl-16:]))
	} else {
		move32((*[32]byte)(h[0:]), (*[32]byte)(m.header[0:]))
		if hl > 64 {
			move32((*[32]byte)(h[32:]), (*[32]byte)(m.header[32:]))
		}
		if hl > 96 {
			move32((*[32]byte)(h[64:]), (*[32]byte)(m.header[64:]))
		}
		move32((*[32]byte)(h[hl-32:]), (*[32]byte)(m.header[hl-32:]))
	}
	if !s.ip.v6 {
		id := s.ip.id + s.ip.step*uint16(i)
		put16(h, s.ip.at+4, id)
		put16(h, s.ip.at+10, ^fold(m.ip+uint32(id)))
	}
	if s.tun.at != 0 && !s.outer.v6 {
		id := s.outer.id + s.outer.step*uint16(i)
		put16(h, s.outer.at+4, id)
		put16(h, s.outer.at+10, ^fold(m.outer+uint32(id)))
	}
	sum := m.l4 + pay
	if s.mode == tcp {
		seq := s.l4.seq + uint32(i*s.size)
		put16(h, s.l4.at+4, uint16(seq>>16))
		put16(h, s.l4.at+6, uint16(seq))
		sum += seq>>16 + seq&0xffff
	}
	if s.opt.Checksum != Full {
		return
	}
	c := ^fold(sum)
	if c == 0 && s.mode == udp {
		c = 0xffff // 0 means that there is none
	}
	put16(h, m.field, c)
}

// firstOrLast writes the headers of a frame that is no middle one.
func (s *Splitter) firstOrLast(b []byte, i, n int, pay uint32) {
	s.copyHeader(b)
	s.edit(b, i, n, pay)
}

func move16(dst, src *[16]byte) {
	a, b := binary.LittleEndian.Uint64(src[0:]), binary.LittleEndian.Uint64(src[8:])
	binary.LittleEndian.PutUint64(dst[0:], a)
	binary.LittleEndian.PutUint64(dst[8:], b)
}

func move32(dst, src *[32]byte) {
	a, b := binary.LittleEndian.Uint64(src[0:]), binary.LittleEndian.Uint64(src[8:])
	c, d := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
	binary.LittleEndian.PutUint64(dst[0:], a)
	binary.LittleEndian.PutUint64(dst[8:], b)
	binary.LittleEndian.PutUint64(dst[16:], c)
	binary.LittleEndian.PutUint64(dst[24:], d)
}

// put16 writes a field. All fields lie at even offsets, below 127: the mask
// says so to the compiler.
func put16(h *[128]byte, at int, v uint16) {
	at &= 126
	h[at], h[at+1] = byte(v>>8), byte(v)
}

// copyHeader writes the headers of the super-packet to dst.
func (s *Splitter) copyHeader(dst []byte) {
	h := s.pkt[:s.hdrLen]
	if s.cut == 0 {
		copy(dst, h)
		return
	}
	copy(dst, h[:s.cut])
	copy(dst[s.cut:], h[s.cut+jumboLen:])
	dst[s.cut-packet.IPv6Len+6] = h[s.cut] // next header
}

// edit turns the headers of the super-packet into those of frame i, which has
// n bytes of payload that sum to pay.
func (s *Splitter) edit(b []byte, i, n int, pay uint32) {
	seg, off := i, i*s.size
	if s.per != 0 {
		seg, off = i*s.per, min(off*s.per, s.multiple-s.hdrLen)
		if n > s.size {
			n = s.size // the headers describe one segment
		} else {
			seg = off / s.size
		}
	}
	if s.ip.v6 {
		be.PutUint16(b[s.ip.at+4:], uint16(s.ip.base+n))
	} else {
		s.ip.set4(b, seg, n)
	}
	length := uint32(s.l4.len + n)
	c := fold(s.l4.pseudo + length)
	if s.mode == udp {
		if s.opt.Checksum == Full {
			c = udpField(s.l4.sum + 2*length + pay)
		}
		h := (*[packet.UDPLen]byte)(b[s.l4.at:])
		be.PutUint16(h[4:], uint16(length))
		be.PutUint16(h[6:], c)
	} else {
		seq, word := s.l4.seq+uint32(off), uint32(s.l4.word)
		if i != s.count-1 {
			word &^= packet.FIN | packet.PSH
		}
		if i != 0 {
			word &^= s.cwr
		}
		if s.opt.Checksum == Full {
			c = ^fold(s.l4.sum + length + pay + seq>>16 + seq&0xffff + word)
		}
		h := (*[packet.TCPMinLen]byte)(b[s.l4.at:])
		be.PutUint32(h[4:], seq)
		h[13] = byte(word)
		be.PutUint16(h[16:], c)
	}
	if s.tun.at != 0 {
		s.setOuter(b, seg, n)
	}
}

// set4 writes length, ID and checksum of segment seg with n bytes of payload.
func (l *level) set4(b []byte, seg, n int) {
	h := (*[packet.IPv4MinLen]byte)(b[l.at:])
	length, id := uint32(l.base+n), l.id+l.step*uint16(seg)
	be.PutUint16(h[2:], uint16(length))
	be.PutUint16(h[4:], id)
	be.PutUint16(h[10:], ^fold(l.sum+length+uint32(id)))
}

// udpField returns the checksum field for a sum: 0 means none, and is written
// as 0xffff.
func udpField(sum uint32) uint16 {
	if c := ^fold(sum); c != 0 {
		return c
	}
	return 0xffff
}

// setOuter sets the lengths and checksums of the tunnel. Whatever the payload
// is, the inner transport segment sums to the complement of its pseudo-header
// once its checksum is finished.
func (s *Splitter) setOuter(b []byte, seg, n int) {
	if s.outer.v6 {
		be.PutUint16(b[s.outer.at+4:], uint16(s.outer.base+n))
	} else {
		s.outer.set4(b, seg, n)
	}
	t := &s.tun
	sum := t.sum + uint32(^fold(s.l4.pseudo+uint32(s.l4.len+n)))
	if s.ip.v6 {
		sum += uint32(s.ip.base + n)
	}
	if t.base == 0 {
		if t.field != 0 {
			be.PutUint16(b[t.field:], ^fold(sum))
		}
		return
	}
	h := (*[packet.UDPLen]byte)(b[t.at:])
	length := uint32(t.base + n)
	be.PutUint16(h[4:], uint16(length))
	c := uint16(0)
	if t.field != 0 {
		c = udpField(sum + 2*length) // in the header and in the pseudo-header
	}
	be.PutUint16(h[6:], c)
}

// otherFrame writes the frame of a packet that is not cut into segments.
func (s *Splitter) otherFrame(dst []byte, i int) (int, error) {
	if uint(i) >= uint(s.count) {
		panic("gso: frame index out of range")
	}
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
	if uint(i) >= uint(s.count) {
		panic("gso: frame index out of range")
	}
	if len(scratch) < s.outLen {
		return ErrRoom
	}
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
