package softnic

import (
	"time"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

// A Frame is a packet on its way, and what a hook gets to see. Before
// segmentation it is what the host handed down, afterwards one frame of it.
type Frame struct {
	// Data begins with the Ethernet header; VLAN tags are in it. A hook may
	// write to it, shorten it, and lengthen it within its capacity.
	Data []byte
	// Header is the virtio_net_hdr of the packet that the host handed down.
	// Its offsets hold for the frame as well, as long as no tag is added.
	Header vnet.Header
	// Index is the place of the frame in its super-packet of Count frames; a
	// packet that was not cut is 0 of 1.
	Index, Count int
	// Number counts the frames of this queue and direction, from 0. It is that
	// of the packet before segmentation.
	Number uint64
	// Checked says, at receive, that the card looked at the checksums: it can, and
	// SetChecksum is on. Valid says that it found all right.
	Checked, Valid bool

	layout packet.Layout
	parsed bool
	buf    []byte // all there is; Data lies in it behind the headroom
	class  int    // of the pool that it goes back to
	desc   int    // descriptors to give back when it has left the ring
	origin uint64 // number of the packet it was cut from, if nothing has changed it since; else 0
	at     time.Duration
}

// First reports whether it is the first frame of its super-packet.
func (f *Frame) First() bool { return f.Index == 0 }

// Last reports whether it is the last frame of its super-packet.
func (f *Frame) Last() bool { return f.Index == f.Count-1 }

// Partial reports whether the host left the checksum to the card.
func (f *Frame) Partial() bool { return f.Header.Flags&vnet.NeedsCsum != 0 }

// Layout returns where the headers are. It is computed at the first call;
// [Frame.Changed] makes the next call compute it again. A frame that cannot be
// parsed has the part that could.
func (f *Frame) Layout() *packet.Layout {
	if !f.parsed {
		_ = packet.Parser{}.Parse(&f.layout, f.Data) // what was found is in the layout
		f.parsed = true
	}
	return &f.layout
}

// Changed says that headers were moved, added or removed.
func (f *Frame) Changed() { f.parsed = false }

// Tagged reports whether the frame has a VLAN tag.
func (f *Frame) Tagged() bool {
	if len(f.Data) < packet.EthernetLen {
		return false
	}
	t := packet.Ethernet(f.Data).EtherType()
	return t == packet.EtherTypeVLAN || t == packet.EtherTypeQinQ
}

// Tunnel returns the tunnel that the frame is in.
func (f *Frame) Tunnel() packet.Tunnel { return f.Layout().Tunnel }

// Forwarded reports whether a router has sent the packet on: its TTL or hop
// limit is none that a host starts with (64, 128, 255) but a little less. That
// is a guess, which holds for the hosts of a lab.
func (f *Frame) Forwarded() bool {
	l := f.Layout()
	var ttl uint8
	switch {
	case l.Version == 4 && len(f.Data) >= l.Network+packet.IPv4MinLen:
		ttl = packet.IPv4(f.Data[l.Network:]).TTL()
	case l.Version == 6 && len(f.Data) >= l.Network+packet.IPv6Len:
		ttl = packet.IPv6(f.Data[l.Network:]).HopLimit()
	default:
		return false
	}
	return ttl != 64 && ttl != 128 && ttl != 255 && ttl != 1
}

// TCP returns the innermost TCP header, or nil.
func (f *Frame) TCP() packet.TCP {
	st := f.Layout().Innermost()
	if st.Proto != packet.ProtoTCP || st.Transport == 0 || st.Payload == 0 {
		return nil
	}
	return packet.TCP(f.Data[st.Transport:])
}

// UDP returns the innermost UDP header, or nil.
func (f *Frame) UDP() packet.UDP {
	st := f.Layout().Innermost()
	if st.Proto != packet.ProtoUDP || st.Transport == 0 || st.Payload == 0 {
		return nil
	}
	return packet.UDP(f.Data[st.Transport:])
}

// Finish makes the checksums of a changed frame right again: that of the IPv4
// headers, of the transport header, and of a UDP tunnel if it has one. Lengths
// are left as they are, and so is the checksum of a fragment.
func (f *Frame) Finish() {
	l := f.Layout()
	if l.Tunnel != packet.NoTunnel {
		finishStack(f.Data, &l.Inner)
	}
	finishStack(f.Data, &l.Stack)
}

func finishStack(b []byte, s *packet.Stack) {
	if s.Version == 4 {
		ip := packet.IPv4(b[s.Network:])
		ip.SetChecksum(ip.ComputeChecksum())
	}
	if s.Payload == 0 || s.Transport == 0 || s.Fragment {
		return
	}
	end := min(len(b), max(s.Network+s.Length, s.Payload))
	seg := b[s.Transport:end]
	switch s.Proto {
	case packet.ProtoTCP:
		packet.TCP(seg).SetChecksum(0)
		sum := packet.Pseudo(b[s.Network:], packet.ProtoTCP, len(seg)) + checksum.Sum(seg)
		packet.TCP(seg).SetChecksum(sum.Checksum())
	case packet.ProtoUDP:
		if packet.UDP(seg).Checksum() == 0 {
			return
		}
		packet.UDP(seg).SetChecksum(0)
		sum := packet.Pseudo(b[s.Network:], packet.ProtoUDP, len(seg)) + checksum.Sum(seg)
		packet.UDP(seg).SetChecksum(sum.UDP())
	}
}
