package model

import (
	"slices"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
)

// mv643xx is the Ethernet MAC of Marvell's ARM chips, with LRO in the driver
// (inet_lro): built, and off until [softnic.SetMerge] turns it on, as Linux
// itself keeps it while it forwards.
//
// From the source: 256 descriptors to send and 128 to receive; the queue stops
// with less than 18 free ones (MAX_SKB_FRAGS+1) and goes on with as many; SG and
// IP_CSUM for the port and for VLANs on it, LRO among what can be turned on;
// rx-usecs 250; LRO of at most 32 packets, of flows without a VLAN tag only.
// That inet_lro gets 8 descriptors is from memory. TSO on the ring came later,
// in Linux 3.16.
//
// Interrupts at 64 frames are not in the source. In 250 µs a gigabit wire brings
// 20 long frames; one without a limit would overflow the ring each time.
//
// The router of the thread hung behind this MAC with tagged frames and without
// TCP: LRO had nothing to merge, and its price was to look.
var mv643xx = softnic.Model{
	Name:         "mv643xx",
	About:        "a router's MAC with LRO in the driver, off until turned on",
	Source:       "drivers/net/ethernet/marvell/mv643xx_eth.c, Linux 3.2",
	Offloads:     softnic.SG | softnic.Checksum,
	VLANOffloads: softnic.SG | softnic.Checksum,
	TX:           softnic.TX{Ring: 256, Stop: 18, PerHeader: 1},
	RX: softnic.RX{
		Ring: 128, Checksum: true,
		Merge: mv643xxLRO, MergeOff: true,
		Moderation: softnic.Moderation{Usecs: 250 * time.Microsecond, Frames: 64},
	},
	Counters: slices.Concat(mv643xxCounters, []softnic.CounterName{
		{Driver: "lro_aggregated", Station: softnic.RXMerged},
		{Driver: "lro_flushed", Station: softnic.RXSuper},
	}),
}

// mv643xxNoLRO is mv643xx in a kernel that was built without LRO: the first of
// the thread's three arms.
var mv643xxNoLRO = softnic.Model{
	Name:         "mv643xx-nolro",
	About:        "mv643xx in a kernel that was built without LRO",
	Source:       mv643xx.Source,
	Offloads:     mv643xx.Offloads,
	VLANOffloads: mv643xx.VLANOffloads,
	TX:           mv643xx.TX,
	RX:           softnic.RX{Ring: 128, Checksum: true, Moderation: mv643xx.RX.Moderation},
	Counters:     mv643xxCounters,
}

func mv643xxLRO(mtu int) gro.Options {
	return gro.Options{
		Policy: gro.LRO, MaxFlows: 8, MaxSegments: 32, NoVLAN: true,
		Limits: gro.Limits{MTU: mtu},
	}
}

// The first six are of the netdevice, the others of the MAC.
var mv643xxCounters = []softnic.CounterName{
	{Driver: "rx_packets", Station: softnic.RXFrames},
	{Driver: "tx_packets", Station: softnic.TXTaken},
	{Driver: "rx_bytes", Station: softnic.RXBytes},
	{Driver: "tx_bytes", Station: softnic.TXBytes},
	{Driver: "rx_errors", Station: softnic.RXFault},
	{Driver: "tx_dropped", Station: softnic.TXNoRoom},
	{Driver: "good_frames_received", Station: softnic.RXFrames, And: []softnic.Station{softnic.RXNoBuffer}},
	{Driver: "good_octets_sent", Station: softnic.WireBytes},
	{Driver: "good_frames_sent", Station: softnic.WireFrames},
	{Driver: "rx_discard", Station: softnic.RXNoBuffer},
}
