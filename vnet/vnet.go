package vnet

import "encoding/binary"

// Flags are the bits of the first byte.
type Flags uint8

// The flags.
const (
	NeedsCsum     Flags = 1 // complete the checksum at CsumStart+CsumOffset
	DataValid     Flags = 2 // the checksum has been verified
	RSCInfo       Flags = 4 // CsumStart and CsumOffset count coalesced segments instead
	UDPTunnelCsum Flags = 8 // the outer UDP header of the tunnel wants a checksum
)

// A GSOType is the second byte: one base type and, possibly, bits beside it.
type GSOType uint8

// The base types and the bits.
const (
	GSONone       GSOType = 0
	GSOTCPv4      GSOType = 1
	GSOUDP        GSOType = 3 // legacy UFO: the datagram is cut into IP fragments
	GSOTCPv6      GSOType = 4
	GSOUDPL4      GSOType = 5    // USO: the payload is cut into datagrams
	GSOUDPTunnel4 GSOType = 0x20 // bit: inside a UDP tunnel over IPv4
	GSOUDPTunnel6 GSOType = 0x40 // bit: inside a UDP tunnel over IPv6
	GSOECN        GSOType = 0x80 // bit: TCP with CWR set

	tunnelBits = GSOUDPTunnel4 | GSOUDPTunnel6
)

var baseNames = [...]string{GSONone: "none", GSOTCPv4: "tcp4", GSOUDP: "ufo", GSOTCPv6: "tcp6", GSOUDPL4: "udp"}

// Base returns the type without the bits beside it.
func (t GSOType) Base() GSOType { return t &^ (tunnelBits | GSOECN) }

// ECN reports whether the ECN bit is set.
func (t GSOType) ECN() bool { return t&GSOECN != 0 }

// UDPTunnel reports whether one of the tunnel bits is set.
func (t GSOType) UDPTunnel() bool { return t&tunnelBits != 0 }

// Valid reports whether the type is one that Linux accepts: a known base, at
// most one tunnel bit and only with TCP or UDP L4, the ECN bit only with TCP.
func (t GSOType) Valid() bool {
	switch base := t.Base(); {
	case base == GSONone || base == GSOUDP:
		return t == base
	case base == GSOTCPv4 || base == GSOTCPv6 || base == GSOUDPL4 && !t.ECN():
		return t&tunnelBits != tunnelBits
	}
	return false
}

// String returns the type as words, such as "tcp4+ecn".
func (t GSOType) String() string {
	s := "unknown"
	if b := int(t.Base()); b < len(baseNames) && baseNames[b] != "" {
		s = baseNames[b]
	}
	if t&GSOUDPTunnel4 != 0 {
		s += "+tunnel4"
	}
	if t&GSOUDPTunnel6 != 0 {
		s += "+tunnel6"
	}
	if t.ECN() {
		s += "+ecn"
	}
	return s
}

// Header is virtio_net_hdr in its longest form. Offsets count from the first
// byte of the frame behind it. Fields that a format lacks are not written, and
// zero when read.
type Header struct {
	Flags      Flags
	GSOType    GSOType
	HdrLen     uint16 // length of all headers; a hint
	GSOSize    uint16 // payload bytes per segment
	CsumStart  uint16 // where the checksum begins: the transport header, the inner one in a tunnel
	CsumOffset uint16 // of the checksum field, from CsumStart

	NumBuffers uint16 // from 12 bytes on

	HashValue  uint32 // from 20 bytes on
	HashReport uint16
	Reserved   uint16

	OuterTransport uint16 // 24 bytes: offset of the tunnel's UDP header
	InnerNetwork   uint16 // offset of the inner IP header
}

// A Format is a size and a byte order.
type Format struct {
	// Size is 10, 12, 20 or 24.
	Size int
	// BigEndian says that 16 and 32-bit fields are big-endian.
	BigEndian bool
}

// The formats in use. Legacy has the byte order of this machine, the others
// that of virtio 1.0.
var (
	Legacy = Native(10)
	V1     = Format{Size: 12}
	Hash   = Format{Size: 20}
	Tunnel = Format{Size: 24}
)

// Native returns the format of the given size in the byte order of this
// machine: what a TUN or TAP uses for any size until TUNSETVNETLE or
// TUNSETVNETBE.
func Native(size int) Format {
	return Format{Size: size, BigEndian: binary.NativeEndian.Uint16([]byte{0, 1}) == 1}
}

// A FormatError says why a header could not be encoded or decoded.
type FormatError uint8

// The reasons.
const (
	// ErrSize: the format's size is none of 10, 12, 20 and 24.
	ErrSize FormatError = iota + 1
	// ErrShort: the slice is shorter than the header.
	ErrShort
)

// Error returns the reason in words.
func (e FormatError) Error() string {
	switch e {
	case ErrSize:
		return "vnet: header size is none of 10, 12, 20, 24"
	case ErrShort:
		return "vnet: shorter than the header"
	}
	return "vnet: unknown error"
}

func (f Format) check(b []byte) error {
	switch f.Size {
	case 10, 12, 20, 24:
	default:
		return ErrSize
	}
	if len(b) < f.Size {
		return ErrShort
	}
	return nil
}

// Put writes the header to the first f.Size bytes of b.
func (f Format) Put(b []byte, h Header) error {
	if err := f.check(b); err != nil {
		return err
	}
	b[0], b[1] = byte(h.Flags), byte(h.GSOType)
	f.put16(b[2:], h.HdrLen)
	f.put16(b[4:], h.GSOSize)
	f.put16(b[6:], h.CsumStart)
	f.put16(b[8:], h.CsumOffset)
	if f.Size >= 12 {
		f.put16(b[10:], h.NumBuffers)
	}
	if f.Size >= 20 {
		f.put32(b[12:], h.HashValue)
		f.put16(b[16:], h.HashReport)
		f.put16(b[18:], h.Reserved)
	}
	if f.Size >= 24 {
		f.put16(b[20:], h.OuterTransport)
		f.put16(b[22:], h.InnerNetwork)
	}
	return nil
}

// Get reads the header from the first f.Size bytes of b. The frame is
// b[f.Size:].
func (f Format) Get(b []byte) (h Header, err error) {
	if err := f.check(b); err != nil {
		return h, err
	}
	h.Flags, h.GSOType = Flags(b[0]), GSOType(b[1])
	h.HdrLen = f.get16(b[2:])
	h.GSOSize = f.get16(b[4:])
	h.CsumStart = f.get16(b[6:])
	h.CsumOffset = f.get16(b[8:])
	if f.Size >= 12 {
		h.NumBuffers = f.get16(b[10:])
	}
	if f.Size >= 20 {
		h.HashValue = f.get32(b[12:])
		h.HashReport = f.get16(b[16:])
		h.Reserved = f.get16(b[18:])
	}
	if f.Size >= 24 {
		h.OuterTransport = f.get16(b[20:])
		h.InnerNetwork = f.get16(b[22:])
	}
	return h, nil
}

func (f Format) put16(b []byte, v uint16) {
	if f.BigEndian {
		binary.BigEndian.PutUint16(b, v)
	} else {
		binary.LittleEndian.PutUint16(b, v)
	}
}

func (f Format) put32(b []byte, v uint32) {
	if f.BigEndian {
		binary.BigEndian.PutUint32(b, v)
	} else {
		binary.LittleEndian.PutUint32(b, v)
	}
}

func (f Format) get16(b []byte) uint16 {
	if f.BigEndian {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (f Format) get32(b []byte) uint32 {
	if f.BigEndian {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}
