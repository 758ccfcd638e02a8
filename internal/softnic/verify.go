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

// siblings is what was found of one frame of a super-packet. It holds for the
// others as well: they have the same headers but for lengths, numbers and the
// checksums that the card has made of them, all by one sum of the
// pseudo-header, which is either right or wrong.
type siblings struct {
	origin    uint64
	what      finding
	mergeable bool
}

// inspect returns what the card finds of a frame: its checksums, and whether
// an aggregate of such frames could be described to the host.
func (l *lane) inspect(f *Frame) (what finding, mergeable bool) {
	s := &l.rx.sibling
	if f.origin != 0 && f.origin == s.origin {
		return s.what, s.mergeable
	}
	what = unknown
	if l.rx.checksum {
		what = found(f)
	}
	mergeable = l.mergeable(f)
	if f.origin != 0 {
		*s = siblings{f.origin, what, mergeable}
	}
	return what, mergeable
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
