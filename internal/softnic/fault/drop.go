package fault

import (
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/packet"
)

// partialDrop cannot complete checksums and does not say so.
var partialDrop = softnic.Fault{
	Name:  "partial-drop",
	About: "packets whose checksum is left to the card are dropped",
	Source: "luigirizzo/netmap 175, 361, 393 (\"drop mbuf that needs checksum offload\"); " +
		"weaveworks/weave#1255; virtio-win#1487",
	Hooks: before((*softnic.Frame).Partial),
}

// tunnel6Drop cannot parse UDP tunnels over IPv6.
var tunnel6Drop = softnic.Fault{
	Name:   "tunnel6-drop",
	About:  "packets in a UDP tunnel over IPv6 are dropped when the inner checksum is left to the card",
	Source: "openvswitch/ovs-issues#260: Geneve over IPv6 on e1000e and X710",
	Hooks: before(func(f *softnic.Frame) bool {
		t := f.Tunnel()
		return f.Partial() && (t == packet.VXLAN || t == packet.Geneve) && f.Layout().Version == 6
	}),
}

// ringStuck never gives back a descriptor after so many super-packets: the
// status says "not done", the ring fills, the queue stops. Nobody resets it, as
// the watchdog of a driver would after seconds.
var ringStuck = softnic.Fault{
	Name:  "ring-stuck",
	About: "after 256 super-packets on a queue no descriptor comes back: the ring fills and stops",
	Source: "e1000e on I217 to I219, \"Detected Hardware Unit Hang\" (Proxmox forums and blogs); " +
		"open-power/op-build#3274 (XL710); stmmac: CVE-2024-53058, 66600fac7a98",
	Hooks: func(softnic.Env) softnic.Hooks {
		left := 256
		return softnic.Hooks{Super: func(f *softnic.Frame) softnic.Action {
			if left == 0 {
				return softnic.Stick
			}
			if super(f) {
				left--
			}
			return softnic.Pass
		}}
	},
}

// retransmitDrop loses what is sent again, if it is longer than one packet: the
// hole that SACK shows is never filled by it. The limit of the source's card was
// 9,000 bytes; repeats are seldom that long.
var retransmitDrop = softnic.Fault{
	Name:   "retransmit-drop",
	About:  "super-packets with data that was sent before are dropped",
	Source: "raspberrypi/linux 2449, 2583, 3395: lan78xx, a hole of 17,520 bytes never filled",
	Hooks: func(softnic.Env) softnic.Hooks {
		seen := new(ends)
		return softnic.Hooks{Super: func(f *softnic.Frame) softnic.Action {
			h := f.TCP()
			if h == nil {
				return softnic.Pass
			}
			payload := len(f.Data) - f.Layout().Innermost().Payload
			again := seen.add(flowOf(f), h.Seq(), payload)
			if again && super(f) && payload > int(f.Header.GSOSize) {
				return softnic.Drop
			}
			return softnic.Pass
		}}
	},
}

// ends remembers how far each of the latest flows has sent.
type ends [256]struct {
	flow uint64
	seq  uint32
}

// add records bytes of a flow, and reports whether some were sent before.
func (e *ends) add(flow uint64, seq uint32, n int) (again bool) {
	end := seq + uint32(n)
	p := &e[flow%uint64(len(e))]
	if p.flow != flow {
		p.flow, p.seq = flow, end
		return false
	}
	again = int32(seq-p.seq) < 0
	if int32(end-p.seq) > 0 {
		p.seq = end
	}
	return again
}

// flowOf returns a hash of addresses and ports (FNV-1a), never 0.
func flowOf(f *softnic.Frame) uint64 {
	s := f.Layout().Innermost()
	from, to := s.Network+8, s.Network+40 // addresses of IPv6
	if s.Version == 4 {
		from, to = s.Network+12, s.Network+20
	}
	h := uint64(14695981039346656037)
	for _, b := range [...][]byte{f.Data[from:to], f.Data[s.Transport : s.Transport+4]} {
		for _, c := range b {
			h = (h ^ uint64(c)) * 1099511628211
		}
	}
	return h | 1
}
