package model

import (
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
)

// stmmac is Synopsys's Ethernet MAC as of the thread in which its features were
// handed on to VLAN devices. Its TSO is right, and on a VLAN it is not: the tag
// is asked for in the first descriptor, and only the first segment gets it.
//
// From the source: 512 descriptors each way; 16,383 bytes in one; the queue
// stops at 18 free ones (MAX_SKB_FRAGS+1) and goes on above 128, a quarter of
// the ring; one descriptor for the headers and, for a tag, one context. TSO of
// both IP versions, without ECN. The fault, and segments to look at, are in the
// patch that made it right, by having the kernel put the tag into the packet.
//
// Not known: the interrupt moderation of the thread's card. This one has none.
var stmmac = softnic.Model{
	Name:  "stmmac",
	About: "an embedded MAC whose TSO tags only the first segment on a VLAN",
	Source: "drivers/net/ethernet/stmicro/stmmac, Linux 6.9; " +
		"[PATCH net-next v3] net: stmmac: Enable TSO on VLANs, 2024-06-14",
	Offloads:     softnic.SG | softnic.Checksum | softnic.TSO4 | softnic.TSO6,
	VLANOffloads: softnic.SG | softnic.Checksum | softnic.TSO4 | softnic.TSO6,
	TX:           softnic.TX{Ring: 512, Stop: 19, Wake: 129, PerPacket: 1, PerHeader: 1, PerData: 16<<10 - 1},
	RX:           softnic.RX{Ring: 512, Checksum: true},
	Counters: []softnic.CounterName{
		{Driver: "rx_pkt_n", Station: softnic.RXFrames},
		{Driver: "rx_normal_irq_n", Station: softnic.RXInterrupt},
		{Driver: "napi_poll", Station: softnic.RXPolls},
		{Driver: "tx_tso_frames", Station: softnic.TXSuper},
		{Driver: "mmc_tx_octetcount_gb", Station: softnic.WireBytes},
		{Driver: "mmc_tx_framecount_gb", Station: softnic.WireFrames},
		{Driver: "mmc_rx_octetcount_gb", Station: softnic.RXBytes},
		{Driver: "mmc_rx_fifo_overflow", Station: softnic.RXNoBuffer},
	},
	Hooks: fault.VLANFirst.Hooks,
}
