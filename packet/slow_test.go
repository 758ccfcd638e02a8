package packet_test

import "github.com/offlab/offlab/packet"

// slow is a second parser: it takes one byte at a time through a checked
// accessor and is written from the RFCs, field by field.
type slow struct {
	b   []byte
	bad packet.ParseError
}

func (p *slow) u8(i int) int {
	if i >= len(p.b) {
		if p.bad == 0 {
			p.bad = packet.ErrTruncated
		}
		return 0
	}
	return int(p.b[i])
}

func (p *slow) u16(i int) int { return p.u8(i)<<8 | p.u8(i+1) }

// have fails unless n bytes are left from offset i on.
func (p *slow) have(i, n int) bool {
	if i+n > len(p.b) && p.bad == 0 {
		p.bad = packet.ErrTruncated
	}
	return p.bad == 0
}

func (p *slow) fail(e packet.ParseError) { p.bad = e }

func slowParse(b []byte, start packet.Start) (packet.Layout, packet.ParseError) {
	p := &slow{b: b}
	var l packet.Layout
	if start == packet.StartEthernet {
		p.ethernet(&l.Stack, 0)
	} else if p.have(0, 1) {
		switch p.u8(0) / 16 {
		case 4:
			l.EtherType = 0x0800
			p.ip(&l.Stack, 0)
		case 6:
			l.EtherType = 0x86dd
			p.ip(&l.Stack, 0)
		default:
			p.fail(packet.ErrVersion)
		}
	}
	if p.bad == 0 && l.Transport > 0 && !l.Fragment {
		p.tunnel(&l)
	}
	return l, p.bad
}

func (p *slow) ethernet(s *packet.Stack, at int) {
	if !p.have(at, 14) {
		return
	}
	s.Link = at
	typ := at + 12
	for s.Tags < 255 && (p.u16(typ) == 0x8100 || p.u16(typ) == 0x88a8) {
		if !p.have(typ+2, 4) {
			return
		}
		s.Tags++
		typ += 4
	}
	s.EtherType, s.Network = uint16(p.u16(typ)), typ+2
	if s.EtherType == 0x0800 || s.EtherType == 0x86dd {
		p.ip(s, typ+2)
	}
}

func (p *slow) ip(s *packet.Stack, at int) {
	if s.EtherType == 0x0800 {
		if !p.have(at, 20) {
			return
		}
		if p.u8(at)/16 != 4 {
			p.fail(packet.ErrVersion)
			return
		}
		words := p.u8(at) % 16
		if words < 5 {
			p.fail(packet.ErrHeaderLength)
			return
		}
		if !p.have(at, words*4) {
			return
		}
		s.Version, s.Length, s.Proto = 4, p.u16(at+2), uint8(p.u8(at+9))
		more, offset := p.u16(at+6)&0x2000 != 0, p.u16(at+6)%0x2000
		s.Fragment = more || offset > 0
		if offset == 0 {
			p.transport(s, at+words*4)
		}
		return
	}
	if !p.have(at, 40) {
		return
	}
	if p.u8(at)/16 != 6 {
		p.fail(packet.ErrVersion)
		return
	}
	s.Version, s.Length, s.Proto = 6, 40+p.u16(at+4), uint8(p.u8(at+6))
	at += 40
	for {
		size := 8
		switch s.Proto {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			if !p.have(at, 8) {
				return
			}
			size = 8 * (1 + p.u8(at+1))
		case 44:
			if !p.have(at, 8) {
				return
			}
			s.Fragment = true
			if p.u16(at+2)/8 > 0 {
				s.Proto = uint8(p.u8(at))
				return
			}
		default:
			p.transport(s, at)
			return
		}
		if !p.have(at, size) {
			return
		}
		s.Proto = uint8(p.u8(at))
		at += size
	}
}

func (p *slow) transport(s *packet.Stack, at int) {
	size := 0
	switch s.Proto {
	case 6:
		if !p.have(at, 20) {
			return
		}
		size = p.u8(at+12) / 16 * 4
		if size < 20 {
			p.fail(packet.ErrHeaderLength)
			return
		}
	case 17:
		size = 8
	case 47:
		if !p.have(at, 4) {
			return
		}
		size = 4
		if f := p.u16(at); f%8 == 0 && f&0x4000 == 0 {
			for _, bit := range []int{0x8000, 0x2000, 0x1000} { // checksum, key, sequence
				if f&bit != 0 {
					size += 4
				}
			}
		}
	}
	if p.have(at, size) {
		s.Transport, s.Payload = at, at+size
	}
}

func (p *slow) tunnel(l *packet.Layout) {
	kind, next, typ := packet.NoTunnel, 0, 0
	at := l.Payload
	switch {
	case l.Proto == 4 || l.Proto == 41:
		kind, next, typ = packet.IPInIP, at, map[uint8]int{4: 0x0800, 41: 0x86dd}[l.Proto]
	case l.Proto == 47 && p.u16(l.Transport)%8 == 0 && p.u16(l.Transport)&0x4000 == 0:
		kind, next, typ = packet.GRE, at, p.u16(l.Transport+2)
		at = l.Transport
	case l.Proto == 17 && len(p.b)-at >= 8 && p.u16(l.Transport+2) == 4789 && p.u8(at)&8 != 0:
		kind, next, typ = packet.VXLAN, at+8, 0x6558
	case l.Proto == 17 && len(p.b)-at >= 8 && p.u16(l.Transport+2) == 6081 && p.u8(at)/64 == 0:
		if next = at + 8 + p.u8(at)%64*4; next <= len(p.b) {
			kind, typ = packet.Geneve, p.u16(at+2)
		}
	}
	if kind == packet.NoTunnel || typ != 0x6558 && typ != 0x0800 && typ != 0x86dd {
		return
	}
	l.Tunnel, l.TunnelAt = kind, at
	if typ == 0x6558 {
		p.ethernet(&l.Inner, next)
		return
	}
	l.Inner.Link, l.Inner.Network, l.Inner.EtherType = next, next, uint16(typ)
	p.ip(&l.Inner, next)
}
