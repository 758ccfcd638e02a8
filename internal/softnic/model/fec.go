package model

import (
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/unit"
)

// fec is the Ethernet MAC of NXP's i.MX6: no segmentation in hardware, but in
// the driver, straight to the ring.
//
// From the source: 1,024 descriptors to send and 256 to receive (one page
// each); at most 100 segments in a packet; a descriptor for the headers of each
// segment, whose buffers are allocated once; payloads at multiples of 16 bytes,
// others copied; SG, checksums and TSO of IPv4. The free descriptors are counted
// with one kept free.
//
// The driver copies an unaligned payload as a whole, and so needs 2·100+17
// descriptors at most, where it stops; it goes on with 34 more
// (2·MAX_SKB_FRAGS). This model copies only what is not aligned, as the review
// of the patch asked for, which takes one descriptor more for each segment.
//
// The bus is that of the i.MX6 Dual/Quad, which the patch says to give 400 to
// 700 Mbit/s: its 506 Mbit/s of payload are 530 of frames of 1,514 bytes. On the
// i.MX6SX, which has no such limit, the same patch went from 840 to 942 Mbit/s.
var fec = softnic.Model{
	Name:  "fec",
	About: "an embedded MAC with TSO in the driver, 16-byte alignment and a slow bus",
	Source: "drivers/net/ethernet/freescale/fec_main.c, Linux 6.12; " +
		"figures of the patch in merge fba0e1a3cfcc",
	Offloads:     softnic.SG | softnic.Checksum | softnic.TSO4,
	VLANOffloads: softnic.SG | softnic.Checksum | softnic.TSO4,
	TX: softnic.TX{
		Ring: 1024, Stop: 3*fecMaxSegs + skbFrags, Wake: 3*fecMaxSegs + 3*skbFrags,
		SoftwareTSO: true, PerHeader: 1, Align: 16,
		MaxSegs: fecMaxSegs,
		Bus:     530 * unit.Rate(1e6),
	},
	RX: softnic.RX{Ring: 256, Checksum: true},
	Counters: []softnic.CounterName{
		{Driver: "tx_dropped", Station: softnic.TXNoRoom},
		{Driver: "tx_packets", Station: softnic.WireFrames},
		{Driver: "tx_octets", Station: softnic.WireBytes},
		{Driver: "rx_packets", Station: softnic.RXFrames},
		{Driver: "rx_octets", Station: softnic.RXBytes},
		{Driver: "IEEE_rx_drop", Station: softnic.RXNoBuffer},
	},
}

const fecMaxSegs = 100 // FEC_MAX_TSO_SEGS
