package packet

import (
	"encoding/binary"

	"github.com/offlab/offlab/packet/checksum"
)

// Lengths of headers in bytes, without options.
const (
	EthernetLen  = 14
	VLANLen      = 4
	IPv4MinLen   = 20
	IPv6Len      = 40
	TCPMinLen    = 20
	UDPLen       = 8
	VXLANLen     = 8
	GeneveMinLen = 8
	GREMinLen    = 4
)

// EtherTypes, in host order.
const (
	EtherTypeIPv4 = 0x0800
	EtherTypeARP  = 0x0806
	EtherTypeTEB  = 0x6558 // transparent Ethernet bridging: a frame inside Geneve or GRE
	EtherTypeVLAN = 0x8100 // 802.1Q
	EtherTypeIPv6 = 0x86dd
	EtherTypeQinQ = 0x88a8 // 802.1ad
)

// Protocol numbers of IPv4, and next headers of IPv6.
const (
	ProtoHopByHop = 0
	ProtoICMP     = 1
	ProtoIPv4     = 4
	ProtoTCP      = 6
	ProtoUDP      = 17
	ProtoIPv6     = 41
	ProtoRouting  = 43
	ProtoFragment = 44
	ProtoGRE      = 47
	ProtoICMPv6   = 58
	ProtoNone     = 59
	ProtoDestOpts = 60
)

// UDP destination ports of tunnels, by IANA.
const (
	PortVXLAN  = 4789
	PortGeneve = 6081
)

// Offsets of the checksum field in a transport header, as virtio_net_hdr names
// them.
const (
	TCPChecksumOffset = 16
	UDPChecksumOffset = 6
)

// Flags of a TCP header, its byte 13.
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Flags of an IPv4 header, in the word at offset 6.
const (
	IPv4Reserved = 0x8000
	IPv4DF       = 0x4000
	IPv4MF       = 0x2000
)

var be = binary.BigEndian

// Ethernet is a view of an Ethernet header.
type Ethernet []byte

// Destination returns the destination address.
func (h Ethernet) Destination() [6]byte { return [6]byte(h[0:6]) }

// Source returns the source address.
func (h Ethernet) Source() [6]byte { return [6]byte(h[6:12]) }

// EtherType returns the type, that of the first tag if there is one.
func (h Ethernet) EtherType() uint16 { return be.Uint16(h[12:]) }

// VLAN is a view of a tag: the tag control information and the EtherType of
// what follows, as they lie behind an EtherType of 802.1Q or 802.1ad.
type VLAN []byte

// TCI returns priority, drop eligibility and identifier.
func (h VLAN) TCI() uint16 { return be.Uint16(h) }

// ID returns the VLAN identifier.
func (h VLAN) ID() uint16 { return be.Uint16(h) & 0xfff }

// EtherType returns the type of what follows.
func (h VLAN) EtherType() uint16 { return be.Uint16(h[2:]) }

// IPv4 is a view of an IPv4 header (RFC 791).
type IPv4 []byte

// HeaderLen returns the length of the header with its options, in bytes.
func (h IPv4) HeaderLen() int { return int(h[0]&15) * 4 }

// TOS returns the type of service, ECN bits included.
func (h IPv4) TOS() uint8 { return h[1] }

// TotalLen returns the length of the packet, header included.
func (h IPv4) TotalLen() int { return int(be.Uint16(h[2:])) }

// ID returns the identification.
func (h IPv4) ID() uint16 { return be.Uint16(h[4:]) }

// FragmentField returns flags and fragment offset.
func (h IPv4) FragmentField() uint16 { return be.Uint16(h[6:]) }

// DF reports whether the packet must not be fragmented.
func (h IPv4) DF() bool { return h[6]&0x40 != 0 }

// TTL returns the time to live.
func (h IPv4) TTL() uint8 { return h[8] }

// Proto returns the protocol.
func (h IPv4) Proto() uint8 { return h[9] }

// Checksum returns the header checksum.
func (h IPv4) Checksum() uint16 { return be.Uint16(h[10:]) }

// Source returns the source address.
func (h IPv4) Source() [4]byte { return [4]byte(h[12:16]) }

// Destination returns the destination address.
func (h IPv4) Destination() [4]byte { return [4]byte(h[16:20]) }

// Options returns the options, padding included.
func (h IPv4) Options() []byte { return h[IPv4MinLen:h.HeaderLen()] }

// SetTotalLen sets the length of the packet. It must be at most 65535.
func (h IPv4) SetTotalLen(n int) { be.PutUint16(h[2:], uint16(n)) }

// SetID sets the identification.
func (h IPv4) SetID(id uint16) { be.PutUint16(h[4:], id) }

// SetChecksum sets the header checksum.
func (h IPv4) SetChecksum(c uint16) { be.PutUint16(h[10:], c) }

// ComputeChecksum returns what the checksum field has to be.
func (h IPv4) ComputeChecksum() uint16 {
	return checksum.Sum(h[:h.HeaderLen()]).Sub16(h.Checksum()).Checksum()
}

// ChecksumValid reports whether the header checksum is right.
func (h IPv4) ChecksumValid() bool { return checksum.Sum(h[:h.HeaderLen()]).Fold() == 0xffff }

// Pseudo returns the sum of the pseudo-header of a transport segment of
// length bytes.
func (h IPv4) Pseudo(proto uint8, length int) checksum.Partial {
	return checksum.PseudoIPv4([4]byte(h[12:16]), [4]byte(h[16:20]), proto, length)
}

// IPv6 is a view of an IPv6 header (RFC 8200).
type IPv6 []byte

// TrafficClass returns the traffic class, ECN bits included.
func (h IPv6) TrafficClass() uint8 { return h[0]<<4 | h[1]>>4 }

// FlowLabel returns the flow label.
func (h IPv6) FlowLabel() uint32 { return be.Uint32(h) & 0xfffff }

// PayloadLen returns the length of what follows the header.
func (h IPv6) PayloadLen() int { return int(be.Uint16(h[4:])) }

// NextHeader returns the type of the first header behind this one.
func (h IPv6) NextHeader() uint8 { return h[6] }

// HopLimit returns the hop limit.
func (h IPv6) HopLimit() uint8 { return h[7] }

// Source returns the source address.
func (h IPv6) Source() [16]byte { return [16]byte(h[8:24]) }

// Destination returns the destination address.
func (h IPv6) Destination() [16]byte { return [16]byte(h[24:40]) }

// SetPayloadLen sets the length of what follows the header. It must be at most
// 65535.
func (h IPv6) SetPayloadLen(n int) { be.PutUint16(h[4:], uint16(n)) }

// Pseudo returns the sum of the pseudo-header of a transport segment of
// length bytes.
func (h IPv6) Pseudo(proto uint8, length int) checksum.Partial {
	return checksum.PseudoIPv6((*[16]byte)(h[8:24]), (*[16]byte)(h[24:40]), proto, length)
}

// Pseudo returns the sum of the pseudo-header of a transport segment of length
// bytes, for an IP header of either version.
func Pseudo(ip []byte, proto uint8, length int) checksum.Partial {
	if ip[0]>>4 == 4 {
		return IPv4(ip).Pseudo(proto, length)
	}
	return IPv6(ip).Pseudo(proto, length)
}
