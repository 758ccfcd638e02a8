package packet

// TCP is a view of a TCP header (RFC 9293).
type TCP []byte

// SourcePort returns the source port.
func (h TCP) SourcePort() uint16 { return be.Uint16(h) }

// DestinationPort returns the destination port.
func (h TCP) DestinationPort() uint16 { return be.Uint16(h[2:]) }

// Seq returns the sequence number.
func (h TCP) Seq() uint32 { return be.Uint32(h[4:]) }

// Ack returns the acknowledgment number.
func (h TCP) Ack() uint32 { return be.Uint32(h[8:]) }

// HeaderLen returns the length of the header with its options, in bytes.
func (h TCP) HeaderLen() int { return int(h[12]>>4) * 4 }

// Flags returns the eight flags FIN to CWR. The ninth, AE, is the lowest bit
// of the byte before.
func (h TCP) Flags() uint8 { return h[13] }

// Window returns the window, not scaled.
func (h TCP) Window() uint16 { return be.Uint16(h[14:]) }

// Checksum returns the checksum.
func (h TCP) Checksum() uint16 { return be.Uint16(h[16:]) }

// Urgent returns the urgent pointer.
func (h TCP) Urgent() uint16 { return be.Uint16(h[18:]) }

// Options returns the options, padding included.
func (h TCP) Options() []byte { return h[TCPMinLen:h.HeaderLen()] }

// SetSeq sets the sequence number.
func (h TCP) SetSeq(v uint32) { be.PutUint32(h[4:], v) }

// SetAck sets the acknowledgment number.
func (h TCP) SetAck(v uint32) { be.PutUint32(h[8:], v) }

// SetFlags sets the eight flags FIN to CWR.
func (h TCP) SetFlags(v uint8) { h[13] = v }

// SetWindow sets the window.
func (h TCP) SetWindow(v uint16) { be.PutUint16(h[14:], v) }

// SetChecksum sets the checksum.
func (h TCP) SetChecksum(v uint16) { be.PutUint16(h[16:], v) }

// UDP is a view of a UDP header (RFC 768).
type UDP []byte

// SourcePort returns the source port.
func (h UDP) SourcePort() uint16 { return be.Uint16(h) }

// DestinationPort returns the destination port.
func (h UDP) DestinationPort() uint16 { return be.Uint16(h[2:]) }

// Length returns the length of header and payload.
func (h UDP) Length() int { return int(be.Uint16(h[4:])) }

// Checksum returns the checksum; 0 says that there is none.
func (h UDP) Checksum() uint16 { return be.Uint16(h[6:]) }

// SetLength sets the length of header and payload. It must be at most 65535.
func (h UDP) SetLength(n int) { be.PutUint16(h[4:], uint16(n)) }

// SetChecksum sets the checksum.
func (h UDP) SetChecksum(v uint16) { be.PutUint16(h[6:], v) }

// VXLANHeader is a view of a VXLAN header (RFC 7348 section 5).
type VXLANHeader []byte

// Flags returns the first byte.
func (h VXLANHeader) Flags() uint8 { return h[0] }

// HasVNI reports whether the I flag is set, as in each valid header.
func (h VXLANHeader) HasVNI() bool { return h[0]&8 != 0 }

// VNI returns the network identifier, 24 bits.
func (h VXLANHeader) VNI() uint32 { return be.Uint32(h[4:]) >> 8 }

// GeneveHeader is a view of a Geneve header (RFC 8926 section 3.4).
type GeneveHeader []byte

// Version returns the version; only 0 is defined.
func (h GeneveHeader) Version() uint8 { return h[0] >> 6 }

// HeaderLen returns the length of the header with its options, in bytes.
func (h GeneveHeader) HeaderLen() int { return GeneveMinLen + int(h[0]&0x3f)*4 }

// OAM reports whether the packet is for the tunnel's control.
func (h GeneveHeader) OAM() bool { return h[1]&0x80 != 0 }

// Protocol returns the EtherType of what follows.
func (h GeneveHeader) Protocol() uint16 { return be.Uint16(h[2:]) }

// VNI returns the network identifier, 24 bits.
func (h GeneveHeader) VNI() uint32 { return be.Uint32(h[4:]) >> 8 }

// GREHeader is a view of a GRE header (RFC 2784, RFC 2890).
type GREHeader []byte

// Version returns the version; 0 is GRE, 1 is PPTP.
func (h GREHeader) Version() uint8 { return h[1] & 7 }

// HasChecksum reports whether a checksum follows the fixed part.
func (h GREHeader) HasChecksum() bool { return h[0]&0x80 != 0 }

// HasRouting reports whether the routing of RFC 1701 is present.
func (h GREHeader) HasRouting() bool { return h[0]&0x40 != 0 }

// HasKey reports whether a key follows.
func (h GREHeader) HasKey() bool { return h[0]&0x20 != 0 }

// HasSequence reports whether a sequence number follows.
func (h GREHeader) HasSequence() bool { return h[0]&0x10 != 0 }

// HeaderLen returns the length of the header with the fields that its flags
// announce, in bytes.
func (h GREHeader) HeaderLen() int {
	return GREMinLen + 4*int(h[0]>>7|h[0]>>6&1) + 4*int(h[0]>>5&1) + 4*int(h[0]>>4&1)
}

// Protocol returns the EtherType of what follows.
func (h GREHeader) Protocol() uint16 { return be.Uint16(h[2:]) }

// Checksum returns the checksum over the GRE header and what follows. Only if
// HasChecksum.
func (h GREHeader) Checksum() uint16 { return be.Uint16(h[4:]) }

// SetChecksum sets the checksum. Only if HasChecksum.
func (h GREHeader) SetChecksum(v uint16) { be.PutUint16(h[4:], v) }

// Key returns the key. Only if HasKey.
func (h GREHeader) Key() uint32 {
	if h.HasChecksum() || h.HasRouting() {
		return be.Uint32(h[8:])
	}
	return be.Uint32(h[4:])
}
