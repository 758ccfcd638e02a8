package fault

import (
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/vnet"
)

// mssBits keeps the low bits of the segment size.
//
// The cards of the source have 11 or 12; with 10 it shows at an MTU of 1500:
// 1448 becomes 424. Where the bits are all zero the card cannot cut at all, and
// the packet is dropped as one that makes no sense.
var mssBits = softnic.Fault{
	Name:   "mss-bits",
	About:  "the segment size has 10 bits: a larger one loses the others",
	Source: "8139cp: 8b7a7048220f, MSSMask; a gso_size above it was cut off",
	Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Super: func(f *softnic.Frame) softnic.Action {
			if super(f) {
				f.Header.GSOSize &= 1<<10 - 1
			}
			return softnic.Pass
		}}
	},
}

// mssMin cannot cut into small segments. What the cards of the source do is not
// said there; that they drop the packet is assumed.
var mssMin = softnic.Fault{
	Name:   "mss-min",
	About:  "super-packets of segments below 64 bytes are dropped",
	Source: "i40e_features_check, ice_features_check: no gso_size below 64",
	Hooks:  before(func(f *softnic.Frame) bool { return super(f) && f.Header.GSOSize < 64 }),
}

// tsoClaimed offers segmentation and does not do it. The frame leaves uncut;
// nothing on a wire lets it pass.
var tsoClaimed = softnic.Fault{
	Name:  "tso-claimed",
	About: "TSO is offered and can be turned on, but super-packets leave uncut, and are lost on the wire",
	Source: "openvswitch/ovs-issues#321 (E810, X710 and 82599 offer what they cannot); " +
		"TritonDataCenter/smartos-live#814, virtio-win#1131 (a receiver without TSO gets uncut frames)",
	Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{
			Offer: func(o softnic.Offloads) softnic.Offloads {
				return o | softnic.SG | softnic.Checksum | softnic.TSO
			},
			Super: func(f *softnic.Frame) softnic.Action {
				if super(f) {
					f.Header.GSOType = vnet.GSONone // the size stays, and marks the frame
				}
				return softnic.Pass
			},
			Wire: func(f *softnic.Frame) softnic.Action {
				if f.Header.GSOType == vnet.GSONone && f.Header.GSOSize > 0 {
					return softnic.Drop
				}
				return softnic.Pass
			},
		}
	},
}
