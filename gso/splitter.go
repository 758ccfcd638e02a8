package gso

import (
	"encoding/binary"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

var be = binary.BigEndian

// A mode is what has to be done to each frame.
type mode uint8

const (
	whole    mode = iota // one frame, as it is
	complete             // one frame, its checksum to be completed
	tcp
	udp
	fragments // legacy UFO
)

// A Splitter is one super-packet, ready to be cut: its headers are parsed and
// what they add to the checksums of all segments is summed up. The zero value
// is empty; [Splitter.Reset] fills it.
//
// Frames may be taken in any order, and again. A Splitter keeps a reference to
// the super-packet, which must not change while it is in use, and does not
// write to it.
type Splitter struct {
	pkt      []byte
	hdrLen   int // headers in pkt
	outLen   int // headers of a frame
	cut      int // offset of an IPv6 jumbo header that frames leave out, or 0
	size     int // payload bytes per segment
	count    int // frames
	per      int // segments per frame, or 0 for one
	multiple int // with per: offset in pkt behind the last full segment
	mode     mode
	cwr      uint32 // the flag that only the first frame has, or none
	opt      Options
	gso      vnet.Header

	csumStart, csumOffset int // what a device has to complete, or 0

	ip    level // the IP header right before the transport header
	outer level // that of the tunnel
	l4    transport
	tun   tunnel
	mid   middle
}

// level is an IP header of the frames.
type level struct {
	at   int    // its offset in a frame
	v6   bool   //
	base int    // its length field in a segment without payload
	sum  uint32 // IPv4: all but length, ID and checksum
	id   uint16
	step uint16 // what the ID grows by: 0 or 1
}

// transport is the transport header of the frames.
type transport struct {
	at     int
	len    int
	seq    uint32
	word   uint16 // TCP: data offset, reserved bits, flags
	pseudo uint32 // pseudo-header without the length
	sum    uint32 // pseudo, and the header without length, seq, word and checksum
}

// middle is what all frames between the first and the last share: finished
// headers, but for the IDs, the sequence number and the checksums over them.
type middle struct {
	count  int    // of such frames, from frame 1 on; 0 if headers is too small
	ip     uint32 // checksum of the IPv4 header without the ID
	outer  uint32 // the same of the outer one
	l4     uint32 // transport checksum without sequence number and payload
	field  int    // offset of the transport checksum
	header [128]byte
}

// tunnel is what lies between the outer and the inner IP header.
type tunnel struct {
	at    int // offset of the UDP or GRE header
	base  int // UDP: its length field in a segment without payload
	field int // offset of the checksum field, or 0 if it stays as it is
	// sum is what the checksum covers and no segment changes, the outer
	// pseudo-header without its length included. The inner IPv4 header adds
	// nothing, since a header with a valid checksum sums to zero.
	sum uint32
}

// fold brings a sum of a few 16-bit values to 16 bits. The sums of a Splitter
// are folded once, in Reset, so that those of each frame stay small and this
// is all that is left to do.
func fold(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return uint16(s + s>>16)
}

// Reset prepares the super-packet pkt, described by h. With an error the
// Splitter is empty.
//
// Linux's rules decide what is accepted: the lengths and the IPv4 checksum in
// the headers of pkt need not be right, and h.HdrLen is not looked at. With
// [vnet.NeedsCsum] the checksum field must hold the sum of the pseudo-header
// for the whole of pkt: the segments' checksums are derived from it.
// Otherwise they are computed from the addresses.
func (s *Splitter) Reset(pkt []byte, h vnet.Header, o Options) error {
	*s = Splitter{pkt: pkt, gso: h, opt: o}
	if e := s.reset(); e != 0 {
		*s = Splitter{}
		return e
	}
	return nil
}

func (s *Splitter) reset() Error {
	h := &s.gso
	if !h.GSOType.Valid() {
		return ErrType
	}
	if s.opt.Partial {
		s.opt.Checksum = Pseudo
	}
	if h.GSOType == vnet.GSONone {
		return s.single()
	}
	s.size = int(h.GSOSize)
	if s.size == 0 || s.size == 65535 {
		return ErrSize
	}
	var l packet.Layout
	st, e := s.locate(&l)
	if e != 0 {
		return e
	}
	if s.opt.TrimPadding && l.Length > 0 && l.Network+l.Length >= st.Payload && l.Network+l.Length < len(s.pkt) {
		s.pkt = s.pkt[:l.Network+l.Length]
	}
	if h.GSOType.Base() == vnet.GSOUDP {
		if l.Tunnel != packet.NoTunnel {
			return ErrType
		}
		return s.resetFragments(st)
	}
	s.hdrLen = st.Payload
	payload := len(s.pkt) - s.hdrLen
	if payload <= s.size && !(h.GSOType.UDPTunnel() && h.Flags&vnet.UDPTunnelCsum != 0) {
		return s.single()
	}
	s.count = max(1, (payload+s.size-1)/s.size)
	s.mode = tcp
	if st.Proto == packet.ProtoUDP {
		s.mode = udp
		if s.count > MaxUDPSegments {
			return ErrSegments
		}
	}
	return s.prepare(&l, st)
}

// single prepares the one frame of a packet that needs no cutting.
func (s *Splitter) single() Error {
	s.mode, s.count, s.hdrLen = whole, 1, len(s.pkt)
	if s.gso.Flags&vnet.NeedsCsum == 0 {
		return 0
	}
	end := int(s.gso.CsumStart) + int(s.gso.CsumOffset) + 2
	if end > len(s.pkt) {
		return ErrChecksum
	}
	if s.opt.Checksum == Full {
		s.mode, s.hdrLen, s.outLen = complete, end, end
	}
	return 0
}

// locate finds the stack whose payload is to be cut, and checks it against the
// virtio header. If it is inner, l.Tunnel is set.
func (s *Splitter) locate(l *packet.Layout) (*packet.Stack, Error) {
	p := packet.Parser{Start: s.opt.Start, VXLANPort: s.opt.VXLANPort, GenevePort: s.opt.GenevePort}
	err := p.Parse(l, s.pkt)
	if s.gso.GSOType.UDPTunnel() {
		if e := s.locateInner(l); e != 0 {
			return nil, e
		}
		err = nil
	}
	st := l.Innermost()
	needs := s.gso.Flags&vnet.NeedsCsum != 0
	if needs && !s.gso.GSOType.UDPTunnel() && l.Tunnel != packet.NoTunnel && int(s.gso.CsumStart) == l.Transport {
		// The datagrams of the outer socket are cut, whatever they carry.
		l.Tunnel, err = packet.NoTunnel, nil
		st = &l.Stack
	}
	if err != nil || st.Transport == 0 {
		return nil, ErrHeader
	}
	return st, s.check(st, needs)
}

// locateInner fills in the inner stack at the offsets of the virtio header.
// The tunnel's own header stays opaque, as it does to Linux.
func (s *Splitter) locateInner(l *packet.Layout) Error {
	h := &s.gso
	at, inner := int(h.OuterTransport), int(h.InnerNetwork)
	wantVersion := uint8(4)
	if h.GSOType&vnet.GSOUDPTunnel6 != 0 {
		wantVersion = 6
	}
	if l.Transport == 0 || l.Proto != packet.ProtoUDP || l.Transport != at || l.Version != wantVersion {
		return ErrTunnel
	}
	if inner < at+packet.UDPLen || inner >= len(s.pkt) || (inner-at)%2 != 0 {
		return ErrTunnel
	}
	var in packet.Layout
	if err := (packet.Parser{Start: packet.StartIP}).Parse(&in, s.pkt[inner:]); err != nil && in.Payload == 0 {
		return ErrHeader
	}
	if in.Transport == 0 {
		return ErrHeader
	}
	l.Inner = in.Stack
	l.Inner.Link, l.Inner.Network = inner, inner
	l.Inner.Transport += inner
	l.Inner.Payload += inner
	if l.Tunnel == packet.NoTunnel {
		l.Tunnel = packet.VXLAN
	}
	l.TunnelAt = at + packet.UDPLen
	return 0
}

// check compares the stack with the GSO type and the checksum request.
func (s *Splitter) check(st *packet.Stack, needs bool) Error {
	proto, version, field := uint8(packet.ProtoTCP), uint8(4), packet.TCPChecksumOffset
	base := s.gso.GSOType.Base()
	if base == vnet.GSOTCPv6 {
		version = 6
	}
	if base == vnet.GSOUDPL4 || base == vnet.GSOUDP {
		proto, version, field = packet.ProtoUDP, st.Version, packet.UDPChecksumOffset
	}
	if base == vnet.GSOUDPL4 && !needs {
		return ErrChecksum
	}
	if needs && int(s.gso.CsumOffset) != field {
		return ErrChecksum
	}
	if st.Proto != proto || st.Version != version {
		return ErrProtocol
	}
	if needs && int(s.gso.CsumStart) != st.Transport {
		return ErrChecksum
	}
	return 0
}

// Len returns the number of frames.
func (s *Splitter) Len() int { return s.count }

// HeaderLen returns the length of the headers of each frame in bytes; for a
// packet that is not cut, of what [Splitter.Segment] copies.
func (s *Splitter) HeaderLen() int { return s.outLen }

// Size returns the length of frame i in bytes.
func (s *Splitter) Size(i int) int {
	if s.mode == whole || s.mode == complete {
		return len(s.pkt)
	}
	if s.mode == fragments {
		from, to := s.fragment(i)
		return s.hdrLen + to - from
	}
	from, to := s.span(i)
	return s.outLen + to - from
}

// span returns the part of pkt that is the payload of frame i.
func (s *Splitter) span(i int) (from, to int) {
	if uint(i) >= uint(s.count) {
		panic("gso: frame index out of range")
	}
	if s.per == 0 {
		from = s.hdrLen + i*s.size
		return from, min(from+s.size, len(s.pkt))
	}
	from = s.hdrLen + i*s.per*s.size
	if from >= s.multiple {
		return s.multiple, len(s.pkt)
	}
	return from, min(from+s.per*s.size, s.multiple)
}
