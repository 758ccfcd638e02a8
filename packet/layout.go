package packet

// A Start says with which header a frame begins.
type Start uint8

// The first header of a frame.
const (
	StartEthernet Start = iota // as on a TAP, a packet socket or a wire
	StartIP                    // as on a TUN: IPv4 or IPv6 by the first four bits
)

// A Tunnel is the kind of encapsulation between an outer and an inner stack.
type Tunnel uint8

// The tunnels that Parse looks into.
const (
	NoTunnel Tunnel = iota
	VXLAN           // UDP, RFC 7348
	Geneve          // UDP, RFC 8926
	GRE             // IP protocol 47, RFC 2784 and RFC 2890
	IPInIP          // IP protocol 4 or 41 over either version: IPIP, SIT, 4in6, 6in6
)

// String returns the name in lower case.
func (t Tunnel) String() string {
	switch t {
	case NoTunnel:
		return "none"
	case VXLAN:
		return "vxlan"
	case Geneve:
		return "geneve"
	case GRE:
		return "gre"
	case IPInIP:
		return "ipip"
	}
	return "unknown"
}

// A Stack is one run of link, network and transport headers. All offsets count
// from the first byte of the frame.
type Stack struct {
	// Link is the offset of the Ethernet header. It equals Network where there
	// is none.
	Link int
	// Network is the offset of the IP header, or of what follows the Ethernet
	// header if that is not IP (then Version is 0).
	Network int
	// Transport is the offset of the transport header, whatever its protocol.
	// It is 0 if there is none to see: not IP, or a fragment that is not the
	// first.
	Transport int
	// Payload is the offset of what follows a TCP, UDP or GRE header; for
	// another protocol it equals Transport.
	Payload int
	// Length is the length of the IP packet that its own header claims, its
	// header included: the total length of IPv4, 40 more than the payload
	// length of IPv6. A BIG TCP packet claims 0 or 40.
	Length int
	// EtherType is that of the last tag, in host order; with [StartIP] the one
	// of the IP version.
	EtherType uint16
	// Version is 4, 6, or 0 if the frame is not IP.
	Version uint8
	// Proto is the transport protocol, behind the IPv6 extension headers that
	// Parse knows.
	Proto uint8
	// Tags counts the VLAN tags.
	Tags uint8
	// Fragment says that the packet is part of a fragmented one, the first part
	// included.
	Fragment bool
}

// A Layout says where the headers of a frame are. The embedded Stack is the
// outer, or only, one.
type Layout struct {
	Stack
	// Inner is the stack behind the tunnel header. It is zero without one.
	Inner Stack
	// TunnelAt is the offset of the VXLAN, Geneve or GRE header; for IPInIP it
	// equals Inner.Network.
	TunnelAt int
	// Tunnel is the kind of tunnel, or NoTunnel.
	Tunnel Tunnel
}

// Innermost returns the stack that carries the user's data: Inner behind a
// tunnel, the only one otherwise.
func (l *Layout) Innermost() *Stack {
	if l.Tunnel != NoTunnel {
		return &l.Inner
	}
	return &l.Stack
}

// A ParseError says why a frame could not be parsed to its end.
type ParseError uint8

// The reasons.
const (
	// ErrTruncated: the frame ends inside a header.
	ErrTruncated ParseError = iota + 1
	// ErrVersion: the version of an IP header is neither 4 nor 6, or not that
	// of the EtherType or protocol number before it.
	ErrVersion
	// ErrHeaderLength: a header claims to be shorter than its fixed part.
	ErrHeaderLength
)

// Error returns the reason in words.
func (e ParseError) Error() string {
	switch e {
	case ErrTruncated:
		return "packet: frame ends inside a header"
	case ErrVersion:
		return "packet: wrong IP version"
	case ErrHeaderLength:
		return "packet: header length below its minimum"
	}
	return "packet: unknown error"
}
