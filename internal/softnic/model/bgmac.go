package model

import "github.com/offlab/offlab/internal/softnic"

// bgmac is the Ethernet MAC of Broadcom's router chips: scatter/gather and
// checksums, nothing else. The kernel cuts before the card, and its GRO merges
// behind it.
//
// From the source: 128 descriptors to send and 512 to receive; a length of 13
// bits in a descriptor; the queue stops at 8 free ones, and goes on after any
// packet; NETIF_F_SG, IP_CSUM and IPV6_CSUM for the port and for VLANs on it.
// The driver has no checksum engine behind the two flags: it calls
// skb_checksum_help for each packet. Received frames are CHECKSUM_NONE, which
// is what made GRO dear on it (openwrt#23463). It moderates no interrupts.
//
// Not imitated: the CPU of such a router.
var bgmac = softnic.Model{
	Name:         "bgmac",
	About:        "a router's MAC with scatter/gather and checksums, GRO in software",
	Source:       "drivers/net/ethernet/broadcom/bgmac.{c,h}, Linux 4.12",
	Offloads:     softnic.SG | softnic.Checksum,
	VLANOffloads: softnic.SG | softnic.Checksum,
	TX:           softnic.TX{Ring: 128, Stop: 8, PerHeader: 1, PerData: 0x1fff},
	RX:           softnic.RX{Ring: 512},
	Counters: []softnic.CounterName{
		{Driver: "tx_octets", Station: softnic.WireBytes},
		{Driver: "tx_pkts", Station: softnic.WireFrames},
		{Driver: "rx_octets", Station: softnic.RXBytes},
		{Driver: "rx_pkts", Station: softnic.RXFrames},
		{Driver: "rx_missed", Station: softnic.RXNoBuffer},
	},
}
