package fault

import (
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/packet"
)

// csumPartial sends what the host left for the card to complete.
var csumPartial = softnic.Fault{
	Name:  "csum-partial",
	About: "a checksum left to the card is sent as the host left it: the sum of the pseudo-header",
	Source: "FreeBSD 165059, 197344, 154428; opnsense/core 735, 544, 8007; xcp-ng/xcp#89: " +
		"pf and Xen forward a partial checksum as a final one",
	Hooks: edit(unfinish),
}

// csumPort completes checksums inside tunnels, but not on VXLAN's port.
var csumPort = softnic.Fault{
	Name:   "csum-port",
	About:  "checksums inside VXLAN stay incomplete on port 4789, and are right on any other",
	Source: "projectcalico/calico#9433: vmxnet3 on ESXi, whose hypervisor knows certain UDP ports only",
	Hooks: edit(func(f *softnic.Frame) {
		if f.Tunnel() == packet.VXLAN {
			unfinish(f)
		}
	}),
}

// csumSecond completes every other checksum wrongly.
var csumSecond = softnic.Fault{
	Name:   "csum-second",
	About:  "every second checksum that the card completes is wrong",
	Source: "zephyrproject-rtos/zephyr#116972: ESP32 with dwmac",
	Hooks: func(softnic.Env) softnic.Hooks {
		odd := false
		return segment(func(f *softnic.Frame) softnic.Action {
			if field := ordered(f); field != nil {
				if odd {
					spoil(field, 1)
				}
				odd = !odd
			}
			return softnic.Pass
		})
	},
}

// csumShort sums the padding of a short frame as well: the thread's captures
// are 6 too low, each time.
var csumShort = softnic.Fault{
	Name:   "csum-short",
	About:  "the card counts the padding of packets below 60 bytes into their checksum",
	Source: "raspberrypi/linux#3523: bcmgenet, 0x1758 for 0x175e and the like, 42-byte frames only",
	Hooks: edit(func(f *softnic.Frame) {
		s := &f.Layout().Stack
		if s.Version == 0 || s.Network+s.Length >= minFrame {
			return
		}
		if field := ordered(f); field != nil {
			spoil(field, 6)
		}
	}),
}

// minFrame is the length up to which frames are padded, without FCS.
const minFrame = 60

// csumVLAN takes what the host left in the field for payload, where it should
// have begun with 0, and only behind a tag.
var csumVLAN = softnic.Fault{
	Name:  "csum-vlan",
	About: "on tagged frames the card adds what was in the checksum field to the sum",
	Source: "zephyrproject-rtos/zephyr#78724: i.MX RT, the field must be zero on VLANs; " +
		"home-assistant/operating-system#5019: r8169, transmit checksums fail on VLANs only",
	Hooks: edit(func(f *softnic.Frame) {
		if field, sum := pseudo(f); field != nil && f.Tagged() {
			spoil(field, sum)
		}
	}),
}

// outerCsum gets the outer checksum of a tunnel wrong where it also has to
// complete the inner one.
var outerCsum = softnic.Fault{
	Name:  "outer-csum",
	About: "the outer UDP checksum of a tunnel is wrong when the inner one was left to the card",
	Source: "flannel-io/flannel 1279, 1282, 1929, 2152; projectcalico/calico#3145; kubeovn/kube-ovn#3045; " +
		"openvswitch/ovs-issues#321 (X710 offers it and cannot)",
	Hooks: edit(func(f *softnic.Frame) {
		l := f.Layout()
		if l.Tunnel != packet.VXLAN && l.Tunnel != packet.Geneve {
			return
		}
		h := packet.UDP(f.Data[l.Transport:])
		if f.Partial() && int(f.Header.CsumStart) == l.Inner.Transport && h.Checksum() != 0 {
			spoil(h[packet.UDPChecksumOffset:packet.UDPChecksumOffset+2], 1)
		}
	}),
}
