package softnic

import (
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
)

// A finding is what a card can say about the checksums of a frame.
type finding uint8

const (
	unknown finding = iota // none that it knows
	good
	bad
)

func (f finding) station() Station {
	return [...]Station{unknown: RXUnknown, good: RXGood, bad: RXBad}[f]
}

// found computes the checksums of a frame: that of each IPv4 header, and of TCP
// or UDP, inside and outside of a tunnel.
func found(f *Frame) finding {
	l := f.Layout()
	s := foundStack(f.Data, &l.Stack)
	if s == bad || l.Tunnel == packet.NoTunnel {
		return s
	}
	in := foundStack(f.Data, &l.Inner)
	if in == bad || in == good && l.Tunnel != packet.GRE {
		return in
	}
	return unknown // a checksum of GRE is none that cards know
}

func foundStack(b []byte, s *packet.Stack) finding {
	if s.Version == 0 || s.Version == 4 && len(b) < s.Network+packet.IPv4MinLen {
		return unknown
	}
	if s.Version == 4 && (s.Transport > 0 || s.Fragment) && !packet.IPv4(b[s.Network:]).ChecksumValid() {
		return bad
	}
	end := s.Network + s.Length
	if s.Transport == 0 || s.Payload == 0 || s.Fragment || end > len(b) || end < s.Payload {
		return unknown
	}
	switch s.Proto {
	case packet.ProtoTCP:
	case packet.ProtoUDP:
		if packet.UDP(b[s.Transport:]).Checksum() == 0 {
			return unknown
		}
	default:
		return unknown
	}
	seg := b[s.Transport:end]
	sum := packet.Pseudo(b[s.Network:], s.Proto, len(seg)) + checksum.Sum(seg)
	if sum.Fold() != 0xffff {
		return bad
	}
	return good
}
