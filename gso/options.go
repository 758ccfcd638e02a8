package gso

import "github.com/offlab/offlab/packet"

// A Checksum says who completes the checksum of the transport header.
type Checksum uint8

// The two ways.
const (
	// Full: each segment has its final checksum.
	Full Checksum = iota
	// Pseudo: the field holds the folded sum of the pseudo-header, as a device
	// wants it that completes the checksum itself. The outer checksum of a
	// tunnel is final all the same: it follows from the headers alone (local
	// checksum offload), and it is right once the device has done its part.
	Pseudo
)

// Options are what a virtio_net_hdr cannot say. The zero value cuts Ethernet
// frames as Linux does in software.
type Options struct {
	// Start is the first header of the super-packet: Ethernet as on a TAP, or
	// IP as on a TUN.
	Start packet.Start
	// Checksum is Full or Pseudo.
	Checksum Checksum
	// FixedID keeps the IPv4 ID of all segments that of the super-packet; else
	// it counts up (SKB_GSO_TCP_FIXEDID). In a tunnel it is the outer header's.
	FixedID bool
	// FixedInnerID is FixedID for the inner header of a tunnel.
	FixedInnerID bool
	// AccECN leaves CWR on all segments, where it is part of a counter
	// (RFC 9768); else only the first segment has it (RFC 3168 section 6.1.2).
	AccECN bool
	// Partial makes few large frames for a device that replicates headers but
	// cannot edit the outer ones (GSO_PARTIAL): each holds a multiple of the
	// segment size, and headers that describe one segment. What is left over
	// is a frame of its own. It implies Pseudo.
	Partial bool
	// TrimPadding takes bytes behind the length in the IP header for padding
	// and leaves them out. Linux takes them for payload, and so does the zero
	// value.
	TrimPadding bool
	// Headroom is the room that Split leaves free at the start of each buffer,
	// in bytes.
	Headroom int
	// VXLANPort and GenevePort are as in packet.Parser.
	VXLANPort, GenevePort uint16
}

// MaxUDPSegments is the largest number of datagrams in a super-packet that
// Linux accepts (UDP_MAX_SEGMENTS since 6.9; 64 before).
const MaxUDPSegments = 128

// An Error says why a super-packet was not cut.
type Error uint8

// The reasons. Linux answers those marked EINVAL to the writer of the frame,
// and drops the others without a word.
const (
	// ErrType: an unknown or impossible GSO type (EINVAL).
	ErrType Error = iota + 1
	// ErrSize: the segment size is 0 or 65535 (EINVAL).
	ErrSize
	// ErrChecksum: no checksum requested for UDP, or one whose place is not
	// the checksum field of the transport header (EINVAL).
	ErrChecksum
	// ErrSegments: more than MaxUDPSegments datagrams (EINVAL).
	ErrSegments
	// ErrHeader: the headers are cut short or claim impossible lengths.
	ErrHeader
	// ErrProtocol: the packet is not of the protocol that the GSO type names.
	ErrProtocol
	// ErrTunnel: the tunnel's offsets do not fit its headers, or its header
	// has a sequence number, which copies would repeat.
	ErrTunnel
	// ErrTooLong: one segment would be longer than an IP header can say.
	ErrTooLong
	// ErrRoom: not enough buffers, or a buffer too short for its frame. The
	// frames counted are complete.
	ErrRoom
)

var errorTexts = [...]string{
	ErrType:     "gso: unknown GSO type",
	ErrSize:     "gso: impossible segment size",
	ErrChecksum: "gso: checksum request does not fit the transport header",
	ErrSegments: "gso: too many datagrams",
	ErrHeader:   "gso: malformed headers",
	ErrProtocol: "gso: packet is not of the GSO type's protocol",
	ErrTunnel:   "gso: tunnel header cannot be replicated",
	ErrTooLong:  "gso: segment longer than 65535 bytes",
	ErrRoom:     "gso: not enough room for the segments",
}

// Error returns the reason in words.
func (e Error) Error() string {
	if int(e) < len(errorTexts) && errorTexts[e] != "" {
		return errorTexts[e]
	}
	return "gso: unknown error"
}
