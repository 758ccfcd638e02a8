package model

import (
	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/packet"
)

// generic is the healthy card that has everything: no real one, but what
// usual cards of 10 Gbit/s and more agree on.
var generic = softnic.Model{
	Name:         "generic",
	About:        "a healthy card with every offload and hardware GRO",
	Source:       "what mlx5, ice and bnxt of Linux 6.18 have in common",
	Offloads:     softnic.AllOffloads,
	VLANOffloads: softnic.AllOffloads,
	TX:           softnic.TX{Ring: 1024, PerPacket: 1},
	RX: softnic.RX{
		Ring: 1024, Checksum: true,
		Merge: hardwareGRO,
	},
	Counters: []softnic.CounterName{
		{Driver: "rx_packets", Station: softnic.RXFrames},
		{Driver: "rx_bytes", Station: softnic.RXBytes},
		{Driver: "rx_dropped", Station: softnic.RXNoBuffer},
		{Driver: "rx_csum_good", Station: softnic.RXGood},
		{Driver: "rx_csum_errors", Station: softnic.RXBad},
		{Driver: "rx_gro_hw_packets", Station: softnic.RXSuper},
		{Driver: "rx_gro_hw_wire_packets", Station: softnic.RXMerged},
		{Driver: "rx_interrupts", Station: softnic.RXInterrupt},
		{Driver: "tx_packets", Station: softnic.WireFrames},
		{Driver: "tx_bytes", Station: softnic.WireBytes},
		{Driver: "tx_tso_packets", Station: softnic.TXSuper},
		{Driver: "tx_queue_stopped", Station: softnic.TXStops},
		{Driver: "tx_queue_wake", Station: softnic.TXWakes},
		{Driver: "tx_dropped", Station: softnic.TXNoRoom},
	},
}

// hardwareGRO is that of a card without limits of its own: the rules are those
// of the kernel.
func hardwareGRO(int) gro.Options {
	return gro.Options{Policy: gro.Linux, MaxFlows: 64, VXLANPort: packet.PortVXLAN, GenevePort: packet.PortGeneve}
}
