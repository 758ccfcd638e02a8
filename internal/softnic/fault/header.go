package fault

import (
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/packet"
)

// cwrAll repeats CWR, which is to be said once (RFC 3168 section 6.1.2).
var cwrAll = softnic.Fault{
	Name:  "cwr-all",
	About: "CWR is on all segments of a super-packet, not on the first only",
	Source: "oasis-tcs/virtio-spec#232; MicrosoftDocs/windows-driver-docs#1800: " +
		"nobody says what a card does with CWR",
	Hooks: edit(func(f *softnic.Frame) {
		if h := f.TCP(); cut(f) && h != nil && f.Header.GSOType.ECN() {
			setFlags(h, h.Flags()|packet.CWR)
		}
	}),
}

// pshLost forgets the request to hand data up at once.
var pshLost = softnic.Fault{
	Name:   "psh-lost",
	About:  "PSH of a super-packet is on none of its segments",
	Source: "net/ipv4/inet_lro.c, Linux 4.6, which drops the PSH of all packets but the first",
	Hooks: edit(func(f *softnic.Frame) {
		if h := f.TCP(); cut(f) && h != nil && h.Flags()&packet.PSH != 0 {
			setFlags(h, h.Flags()&^packet.PSH)
		}
	}),
}

// ipID gives all segments the ID of the first.
var ipID = softnic.Fault{
	Name:   "ip-id",
	About:  "all segments of a super-packet have one IPv4 ID",
	Source: "vyos/vyos-documentation#1740: IDs after GRO and GSO, tx-tcp-mangleid-segmentation",
	Hooks: edit(func(f *softnic.Frame) {
		l := f.Layout()
		for _, s := range [...]*packet.Stack{&l.Stack, &l.Inner} {
			if s.Version == 4 && s.Payload > 0 {
				h := packet.IPv4(f.Data[s.Network:])
				setID(h, h.ID()-uint16(f.Index))
			}
		}
	}),
}

// VLANFirst inserts the tag where it was asked for, in the first descriptor,
// and forgets it for what the segmentation makes of the rest.
var VLANFirst = softnic.Fault{
	Name:   "vlan-first",
	About:  "only the first segment of a super-packet has the VLAN tag",
	Source: "[PATCH net-next v3] net: stmmac: Enable TSO on VLANs, 2024-06-14",
	Hooks: edit(func(f *softnic.Frame) {
		if cut(f) && !f.First() && f.Tagged() && len(f.Data) >= packet.EthernetLen+packet.VLANLen {
			untag(f)
		}
	}),
}

// untag takes the outermost tag out of a frame.
func untag(f *softnic.Frame) {
	const at = packet.EthernetLen - 2 // of the tag
	f.Data = append(f.Data[:at], f.Data[at+packet.VLANLen:]...)
	if f.Partial() {
		f.Header.CsumStart -= packet.VLANLen
	}
	f.Changed()
}

// trailer leaves bytes behind the packet, as a frame check or the padding of a
// cipher that was not taken off.
var trailer = softnic.Fault{
	Name:   "trailer",
	About:  "segments of a super-packet have four bytes behind the packet",
	Source: "libreswan/libreswan#993 (ESP padding on mlx); raspberrypi/linux 2659, 2723 (padding and hw csum failure)",
	Hooks: edit(func(f *softnic.Frame) {
		if n := len(f.Data); cut(f) && n+4 <= cap(f.Data) {
			f.Data = f.Data[:n+4]
			be.PutUint32(f.Data[n:], 0xa5a5a5a5)
		}
	}),
}
