package packet

import "encoding/binary"

// A Parser says how frames are to be read. The zero value reads Ethernet
// frames, with the tunnels on their registered ports.
type Parser struct {
	// Start is the first header.
	Start Start
	// VXLANPort is the UDP destination port of VXLAN; 0 means 4789. Older
	// Linux and flannel use 8472.
	VXLANPort uint16
	// GenevePort is the UDP destination port of Geneve; 0 means 6081.
	GenevePort uint16
}

// Parse returns the layout of a frame. See [Parser.Parse].
func Parse(frame []byte, start Start) (l Layout, err error) {
	err = Parser{Start: start}.Parse(&l, frame)
	return l, err
}

// Parse sets l to the layout of the frame. It does not allocate and keeps no
// reference.
//
// An error is a [ParseError]; then l holds what was found before the fault: the
// fields of the faulty header and of all behind it are zero. A frame that is
// not IP, or whose transport protocol is not known, is no error. A UDP datagram
// on a tunnel's port that does not begin with a valid tunnel header is taken
// for plain UDP.
func (p Parser) Parse(l *Layout, frame []byte) error {
	*l = Layout{}
	var e ParseError
	if p.Start == StartIP {
		e = parseIP(&l.Stack, frame, 0)
	} else {
		e = parseEthernet(&l.Stack, frame, 0)
	}
	if e != 0 {
		return e
	}
	if l.Transport == 0 || l.Fragment || l.Proto == ProtoTCP {
		return nil
	}
	if e = p.parseTunnel(l, frame); e != 0 {
		return e
	}
	return nil
}

func parseEthernet(s *Stack, b []byte, off int) ParseError {
	if len(b)-off < EthernetLen {
		return ErrTruncated
	}
	s.Link = off
	et := binary.BigEndian.Uint16(b[off+12:])
	off += EthernetLen
	for et == EtherTypeVLAN || et == EtherTypeQinQ {
		if len(b)-off < VLANLen {
			return ErrTruncated
		}
		et = binary.BigEndian.Uint16(b[off+2:])
		off += VLANLen
		s.Tags++
		if s.Tags == 255 {
			break // more tags than anything carries; the rest is opaque
		}
	}
	s.EtherType, s.Network = et, off
	switch et {
	case EtherTypeIPv4:
		return parseIPv4(s, b, off)
	case EtherTypeIPv6:
		return parseIPv6(s, b, off)
	}
	return 0
}

func parseIP(s *Stack, b []byte, off int) ParseError {
	if len(b) <= off {
		return ErrTruncated
	}
	s.Link, s.Network = off, off
	switch b[off] >> 4 {
	case 4:
		s.EtherType = EtherTypeIPv4
		return parseIPv4(s, b, off)
	case 6:
		s.EtherType = EtherTypeIPv6
		return parseIPv6(s, b, off)
	}
	return ErrVersion
}

func parseIPv4(s *Stack, b []byte, off int) ParseError {
	if len(b)-off < IPv4MinLen {
		return ErrTruncated
	}
	h := b[off : off+IPv4MinLen]
	if h[0]>>4 != 4 {
		return ErrVersion
	}
	hl := int(h[0]&15) * 4
	if hl < IPv4MinLen {
		return ErrHeaderLength
	}
	if len(b)-off < hl {
		return ErrTruncated
	}
	s.Version = 4
	s.Length = int(binary.BigEndian.Uint16(h[2:]))
	s.Proto = h[9]
	frag := binary.BigEndian.Uint16(h[6:])
	s.Fragment = frag&0x3fff != 0
	if frag&0x1fff != 0 {
		return 0
	}
	return parseTransport(s, b, off+hl)
}

func parseIPv6(s *Stack, b []byte, off int) ParseError {
	if len(b)-off < IPv6Len {
		return ErrTruncated
	}
	h := b[off : off+IPv6Len]
	if h[0]>>4 != 6 {
		return ErrVersion
	}
	s.Version = 6
	s.Length = IPv6Len + int(binary.BigEndian.Uint16(h[4:]))
	s.Proto = h[6]
	if s.Proto == ProtoTCP || s.Proto == ProtoUDP {
		return parseTransport(s, b, off+IPv6Len)
	}
	return parseExtensions(s, b, off+IPv6Len)
}

// parseExtensions walks the extension headers of RFC 8200 section 4 that have
// a known length; any other protocol ends the walk.
func parseExtensions(s *Stack, b []byte, off int) ParseError {
	for {
		n := 8
		switch s.Proto {
		case ProtoHopByHop, ProtoRouting, ProtoDestOpts:
			if len(b)-off < n {
				return ErrTruncated
			}
			n += int(b[off+1]) * 8
		case ProtoFragment:
			if len(b)-off < n {
				return ErrTruncated
			}
			s.Fragment = true
			if binary.BigEndian.Uint16(b[off+2:])&0xfff8 != 0 {
				s.Proto = b[off]
				return 0
			}
		default:
			return parseTransport(s, b, off)
		}
		if len(b)-off < n {
			return ErrTruncated
		}
		s.Proto = b[off]
		off += n
	}
}

func parseTransport(s *Stack, b []byte, off int) ParseError {
	n := 0
	switch s.Proto {
	case ProtoTCP:
		if len(b)-off < TCPMinLen {
			return ErrTruncated
		}
		n = int(b[off+12]>>4) * 4
		if n < TCPMinLen {
			return ErrHeaderLength
		}
	case ProtoUDP:
		n = UDPLen
	case ProtoGRE:
		if len(b)-off < GREMinLen {
			return ErrTruncated
		}
		n = GREMinLen
		if h := GREHeader(b[off:]); h.Version() == 0 && !h.HasRouting() {
			n = h.HeaderLen()
		}
	}
	if len(b)-off < n {
		return ErrTruncated
	}
	s.Transport, s.Payload = off, off+n
	return 0
}

func (p Parser) parseTunnel(l *Layout, b []byte) ParseError {
	off := l.Payload
	switch l.Proto {
	case ProtoUDP:
		return p.parseUDPTunnel(l, b)
	case ProtoGRE:
		h := GREHeader(b[l.Transport:])
		if h.Version() != 0 || h.HasRouting() {
			return 0
		}
		return l.enter(b, GRE, l.Transport, off, h.Protocol())
	case ProtoIPv4:
		return l.enter(b, IPInIP, off, off, EtherTypeIPv4)
	case ProtoIPv6:
		return l.enter(b, IPInIP, off, off, EtherTypeIPv6)
	}
	return 0
}

func (p Parser) parseUDPTunnel(l *Layout, b []byte) ParseError {
	vxlan, geneve := p.VXLANPort, p.GenevePort
	if vxlan == 0 {
		vxlan = PortVXLAN
	}
	if geneve == 0 {
		geneve = PortGeneve
	}
	off := l.Payload
	port := binary.BigEndian.Uint16(b[l.Transport+2:])
	if port != vxlan && port != geneve || len(b)-off < VXLANLen {
		return 0
	}
	if port == vxlan {
		if !VXLANHeader(b[off:]).HasVNI() {
			return 0
		}
		return l.enter(b, VXLAN, off, off+VXLANLen, EtherTypeTEB)
	}
	h := GeneveHeader(b[off:])
	if h.Version() != 0 || len(b)-off < h.HeaderLen() {
		return 0
	}
	return l.enter(b, Geneve, off, off+h.HeaderLen(), h.Protocol())
}

// enter parses the inner stack of a tunnel whose header is at off, if what the
// tunnel carries is understood.
func (l *Layout) enter(b []byte, t Tunnel, at, off int, proto uint16) ParseError {
	switch proto {
	case EtherTypeTEB:
		l.Tunnel, l.TunnelAt = t, at
		return parseEthernet(&l.Inner, b, off)
	case EtherTypeIPv4:
		l.Tunnel, l.TunnelAt = t, at
		l.Inner.Link, l.Inner.Network, l.Inner.EtherType = off, off, proto
		return parseIPv4(&l.Inner, b, off)
	case EtherTypeIPv6:
		l.Tunnel, l.TunnelAt = t, at
		l.Inner.Link, l.Inner.Network, l.Inner.EtherType = off, off, proto
		return parseIPv6(&l.Inner, b, off)
	}
	return 0
}
