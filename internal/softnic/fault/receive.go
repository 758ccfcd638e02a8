package fault

import (
	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
)

// badCsumGood tells the host that a checksum is right which the card has found
// wrong. With rx-checksum off the card says nothing, and the host notices.
var badCsumGood = softnic.Fault{
	Name:  "bad-csum-good",
	About: "received packets with a bad checksum are marked as good",
	Source: "veth until Linux 3.14 (CHECKSUM_NONE became CHECKSUM_UNNECESSARY): V. Pandurangan, 2016; " +
		"show it with corruption on the wire",
	Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Receive: func(f *softnic.Frame) softnic.Action {
			if f.Checked && (f.TCP() != nil || f.UDP() != nil) {
				f.Valid = true
			}
			return softnic.Pass
		}}
	},
}

// lroForward aggregates as classic LRO does, which does not say how to cut
// again: longer than the MTU, and with DF, the packet ends at the next router,
// here the host itself.
var lroForward = softnic.Fault{
	Name:  "lro-forward",
	About: "aggregates are handed up without their segment size, so that they cannot be forwarded",
	Source: "moby/moby#32023, hazelcast#13310 (ixgbe: LRO is \"incompatible with routing\"); " +
		"Aquantia/AQtion-esxi#14; floodlight/ivs#321",
	Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Merge: func(o gro.Options) gro.Options {
			o.Policy = gro.LRO
			o.MaxSize = min(o.MaxSize, gro.DefaultMaxSize) // no BIG TCP
			return o
		}}
	},
}

// mergeFixed never lets go of aggregation: the request succeeds and nothing
// changes.
var mergeFixed = softnic.Fault{
	Name:  "merge-fixed",
	About: "aggregation of received frames can be turned on, and not off",
	Source: "frank-w/BPI-Router-Linux#195 (mtk_eth_soc turns LRO on again); cloud-hypervisor#2528; " +
		"luigirizzo/netmap#610 (virtio in a guest)",
	Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Setting: func(s softnic.Setting, present, wanted int) int {
			if s == softnic.SetMerge {
				return max(present, wanted)
			}
			return wanted
		}}
	},
}
