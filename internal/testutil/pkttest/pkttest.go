// Package pkttest builds frames for tests, with lengths and checksums filled
// in, by code that shares nothing with the libraries under test.
//
// [Build] takes the layers from the outside in:
//
//	pkttest.Build(pkttest.Eth{}, pkttest.IP4{DF: true}, pkttest.TCP{Seq: 1}, pkttest.Payload("x"))
package pkttest

import (
	"encoding/binary"
	"slices"
)

var be = binary.BigEndian

// A Layer is one header, or the payload.
type Layer interface {
	wrap(s *state)
}

// state is the frame under construction, from the inside out.
type state struct {
	b     []byte
	ether uint16 // EtherType of b
	proto uint8  // IP protocol of b
	l4    int    // offset in b of a transport header that lacks its checksum, or -1
	l4p   uint8
	part  bool // leave the pseudo-header's sum as the checksum
}

// Build returns the frame.
func Build(layers ...Layer) []byte {
	s := &state{l4: -1}
	for _, l := range slices.Backward(layers) {
		l.wrap(s)
	}
	return s.b
}

func (s *state) push(h []byte) {
	s.b = append(h, s.b...)
	if s.l4 >= 0 {
		s.l4 += len(h)
	}
}

// Sum is the slow loop of RFC 1071 over b, added to s.
func Sum(b []byte, s uint32) uint16 {
	s = s>>16 + s&0xffff
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
		s = s&0xffff + s>>16
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	s = s&0xffff + s>>16
	return uint16(s&0xffff + s>>16)
}

// Pseudo returns the folded sum of the pseudo-header for a transport segment
// of n bytes behind the IP header ip.
func Pseudo(ip []byte, proto uint8, n int) uint16 {
	s := uint32(n>>16) + uint32(n&0xffff) + uint32(proto)
	if ip[0]>>4 == 4 {
		return Sum(ip[12:20], s)
	}
	return Sum(ip[8:40], s)
}

// checksum fills in the checksum of the transport header that waits for one,
// with the addresses of the IP header ip.
func (s *state) checksum(ip []byte) {
	if s.l4 < 0 {
		return
	}
	t := s.b[s.l4:]
	at := 16
	if s.l4p == 17 {
		at = 6
	}
	p := Pseudo(ip, s.l4p, len(t))
	t[at], t[at+1] = 0, 0
	if s.part {
		be.PutUint16(t[at:], p)
	} else {
		c := ^Sum(t, uint32(p))
		if c == 0 && s.l4p == 17 {
			c = 0xffff
		}
		be.PutUint16(t[at:], c)
	}
	s.l4 = -1
}

// Payload is what the headers carry.
type Payload []byte

func (p Payload) wrap(s *state) { s.b = append([]byte{}, p...) }

// Eth is an Ethernet header. Last makes the addresses differ.
type Eth struct{ Last byte }

func (l Eth) wrap(s *state) {
	s.push([]byte{2, 0, 0, 0, 0, l.Last, 2, 0, 0, 0, 1, l.Last, byte(s.ether >> 8), byte(s.ether)})
	s.ether = 0x6558
}

// Tag is a VLAN tag. A zero Type is 802.1Q.
type Tag struct{ Type, TCI uint16 }

func (l Tag) wrap(s *state) {
	s.push([]byte{byte(l.TCI >> 8), byte(l.TCI), byte(s.ether >> 8), byte(s.ether)})
	s.ether = l.Type
	if l.Type == 0 {
		s.ether = 0x8100
	}
}

// IP4 is an IPv4 header. Zero addresses become 192.0.2.1 and 192.0.2.2, a zero
// TTL 64.
type IP4 struct {
	TOS      byte
	ID       uint16
	DF, MF   bool
	Reserved bool
	Offset   uint16 // fragment offset in units of eight bytes
	TTL      byte
	Proto    uint8 // 0: that of the next layer
	Src, Dst [4]byte
	Options  []byte
}

func (l IP4) wrap(s *state) {
	h := make([]byte, 20+len(l.Options))
	h[0], h[1] = 0x40|byte(len(h)/4), l.TOS
	be.PutUint16(h[2:], uint16(len(h)+len(s.b)))
	be.PutUint16(h[4:], l.ID)
	f := l.Offset
	for i, on := range []bool{l.MF, l.DF, l.Reserved} {
		if on {
			f |= 0x2000 << i
		}
	}
	be.PutUint16(h[6:], f)
	h[8], h[9] = l.TTL, l.Proto
	if l.TTL == 0 {
		h[8] = 64
	}
	if l.Proto == 0 {
		h[9] = s.proto
	}
	if l.Src == [4]byte{} {
		l.Src, l.Dst = [4]byte{192, 0, 2, 1}, [4]byte{192, 0, 2, 2}
	}
	copy(h[12:], l.Src[:])
	copy(h[16:], l.Dst[:])
	copy(h[20:], l.Options)
	be.PutUint16(h[10:], ^Sum(h, 0))
	s.checksum(h)
	s.push(h)
	s.ether, s.proto = 0x0800, 4
}

// IP6 is an IPv6 header. Zero addresses become 2001:db8::1 and ::2, a zero hop
// limit 64.
type IP6 struct {
	Class    byte
	Flow     uint32
	Hops     byte
	Src, Dst [16]byte
}

func (l IP6) wrap(s *state) {
	h := make([]byte, 40)
	be.PutUint32(h, 6<<28|uint32(l.Class)<<20|l.Flow)
	be.PutUint16(h[4:], uint16(len(s.b)))
	h[6], h[7] = s.proto, l.Hops
	if l.Hops == 0 {
		h[7] = 64
	}
	if l.Src == [16]byte{} {
		l.Src = [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}
		l.Dst = [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 2}
	}
	copy(h[8:], l.Src[:])
	copy(h[24:], l.Dst[:])
	s.checksum(h)
	s.push(h)
	s.ether, s.proto = 0x86dd, 41
}

// Ext is an IPv6 extension header of 8·(1+Words) bytes, filled with one PadN
// option. A zero Proto is 60, destination options; 44 is a fragment header and
// takes Fragment.
type Ext struct {
	Proto    uint8
	Words    int
	Fragment uint16
}

func (l Ext) wrap(s *state) {
	h := make([]byte, 8*(1+l.Words))
	h[0] = s.proto
	if l.Proto == 44 {
		be.PutUint16(h[2:], l.Fragment)
	} else {
		h[1], h[2], h[3] = byte(l.Words), 1, byte(len(h)-4)
	}
	s.push(h)
	s.proto = l.Proto
	if l.Proto == 0 {
		s.proto = 60
	}
}

// TCP is a TCP header. Zero ports become 1000 and 443; zero flags ACK.
// Partial leaves the sum of the pseudo-header in the checksum field, as a
// sender does that wants the device to complete it.
type TCP struct {
	Src, Dst    uint16
	Seq, Ack    uint32
	Reserved    byte // the four bits behind the data offset
	Flags       byte
	Window, Urg uint16
	Options     []byte
	Partial     bool
}

func (l TCP) wrap(s *state) {
	h := make([]byte, 20+len(l.Options))
	if l.Src == 0 {
		l.Src, l.Dst = 1000, 443
	}
	if l.Flags == 0 {
		l.Flags = 0x10
	}
	be.PutUint16(h, l.Src)
	be.PutUint16(h[2:], l.Dst)
	be.PutUint32(h[4:], l.Seq)
	be.PutUint32(h[8:], l.Ack)
	h[12], h[13] = byte(len(h)/4)<<4|l.Reserved&15, l.Flags
	be.PutUint16(h[14:], l.Window)
	be.PutUint16(h[18:], l.Urg)
	copy(h[20:], l.Options)
	s.push(h)
	s.l4, s.l4p, s.proto, s.part = 0, 6, 6, l.Partial
}

// UDP is a UDP header. Zero ports become 1000 and 443. NoChecksum leaves the
// field 0; Partial is as for TCP.
type UDP struct {
	Src, Dst            uint16
	NoChecksum, Partial bool
}

func (l UDP) wrap(s *state) {
	h := make([]byte, 8)
	if l.Src == 0 {
		l.Src = 1000
	}
	if l.Dst == 0 {
		l.Dst = 443
	}
	be.PutUint16(h, l.Src)
	be.PutUint16(h[2:], l.Dst)
	be.PutUint16(h[4:], uint16(8+len(s.b)))
	s.push(h)
	s.proto = 17
	if !l.NoChecksum {
		s.l4, s.l4p, s.part = 0, 17, l.Partial
	}
}

// VXLAN is a VXLAN header with its UDP header, port 4789.
type VXLAN struct {
	VNI      uint32
	Checksum bool
	Partial  bool
}

func (l VXLAN) wrap(s *state) {
	h := make([]byte, 8)
	h[0] = 8
	be.PutUint32(h[4:], l.VNI<<8)
	s.push(h)
	UDP{Src: 55555, Dst: 4789, NoChecksum: !l.Checksum, Partial: l.Partial}.wrap(s)
}

// Geneve is a Geneve header with its UDP header, port 6081.
type Geneve struct {
	VNI      uint32
	Options  []byte
	Checksum bool
	Partial  bool
}

func (l Geneve) wrap(s *state) {
	h := make([]byte, 8+len(l.Options))
	h[0] = byte(len(l.Options) / 4)
	be.PutUint16(h[2:], s.ether)
	be.PutUint32(h[4:], l.VNI<<8)
	copy(h[8:], l.Options)
	s.push(h)
	UDP{Src: 55555, Dst: 6081, NoChecksum: !l.Checksum, Partial: l.Partial}.wrap(s)
}

// GRE is a GRE header. Key, if HasKey, and Seq, if HasSeq, are part of it.
// With Partial the checksum stays 0.
type GRE struct {
	Checksum, HasKey, HasSeq, Partial bool
	Key, Seq                          uint32
}

func (l GRE) wrap(s *state) {
	h := make([]byte, 4, 16)
	be.PutUint16(h[2:], s.ether)
	if l.Checksum {
		h[0] |= 0x80
		h = append(h, 0, 0, 0, 0)
	}
	if l.HasKey {
		h[0] |= 0x20
		h = be.AppendUint32(h, l.Key)
	}
	if l.HasSeq {
		h[0] |= 0x10
		h = be.AppendUint32(h, l.Seq)
	}
	s.push(h)
	if l.Checksum && !l.Partial {
		be.PutUint16(s.b[4:], ^Sum(s.b, 0))
	}
	s.proto, s.l4 = 47, -1
}
