package fault

import (
	"encoding/binary"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
)

var be = binary.BigEndian

// segment returns hooks with one behind segmentation.
func segment(h func(*softnic.Frame) softnic.Action) softnic.Hooks { return softnic.Hooks{Segment: h} }

// edit returns a function that makes hooks which change frames behind
// segmentation, keep no state and end none.
func edit(change func(*softnic.Frame)) func(softnic.Env) softnic.Hooks {
	return func(softnic.Env) softnic.Hooks {
		return segment(func(f *softnic.Frame) softnic.Action {
			change(f)
			return softnic.Pass
		})
	}
}

// before returns a function that makes hooks which end packets before
// segmentation, and keep no state.
func before(ends func(*softnic.Frame) bool) func(softnic.Env) softnic.Hooks {
	return func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Super: func(f *softnic.Frame) softnic.Action {
			if ends(f) {
				return softnic.Drop
			}
			return softnic.Pass
		}}
	}
}

// cut reports whether the frame is one of several of a super-packet.
func cut(f *softnic.Frame) bool { return f.Count > 1 }

// super reports whether the host wants the packet cut.
func super(f *softnic.Frame) bool { return f.Header.GSOType.Base() != 0 }

// ordered returns the checksum field that the host has asked the card to
// complete, or nil.
func ordered(f *softnic.Frame) []byte {
	if !f.Partial() {
		return nil
	}
	at := int(f.Header.CsumStart) + int(f.Header.CsumOffset)
	if at < packet.EthernetLen || at+2 > len(f.Data) {
		return nil
	}
	return f.Data[at : at+2]
}

// spoil makes a checksum wrong: what it covers counts as more than it is, by
// more. That is noticed for any value but 0 and 0xffff.
func spoil(field []byte, more uint16) {
	be.PutUint16(field, nonzero(checksum.Update(be.Uint16(field), 0, more)))
}

// nonzero writes 0, which says "none" in UDP, as the other zero.
func nonzero(v uint16) uint16 {
	if v == 0 {
		return 0xffff
	}
	return v
}

// pseudo returns the checksum field of the innermost transport header, if the
// card was to complete it, and what the host has left in it: the sum of the
// pseudo-header.
func pseudo(f *softnic.Frame) (field []byte, sum uint16) {
	field = ordered(f)
	s := f.Layout().Innermost()
	end := s.Network + s.Length
	if field == nil || s.Transport == 0 || int(f.Header.CsumStart) != s.Transport || end > len(f.Data) {
		return nil, 0
	}
	return field, packet.Pseudo(f.Data[s.Network:], s.Proto, end-s.Transport).Fold()
}

// unfinish leaves that checksum as the host handed it down.
func unfinish(f *softnic.Frame) {
	if field, sum := pseudo(f); field != nil {
		be.PutUint16(field, nonzero(sum))
	}
}

// setFlags changes the flags of a TCP header, and its checksum by as much.
func setFlags(h packet.TCP, flags uint8) {
	old := be.Uint16(h[12:])
	h.SetFlags(flags)
	h.SetChecksum(checksum.Update(h.Checksum(), old, be.Uint16(h[12:])))
}

// setID changes the ID of an IPv4 header, and its checksum by as much.
func setID(h packet.IPv4, id uint16) {
	old := h.ID()
	h.SetID(id)
	h.SetChecksum(checksum.Update(h.Checksum(), old, id))
}
