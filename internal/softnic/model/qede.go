package model

import (
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/packet"
)

// qede is a 25 to 100 Gbit/s card whose firmware aggregates what can be cut
// again, inside tunnels as well.
//
// From the source: 8,191 descriptors to send and 1,023 to receive; at most 64
// aggregations up to 65,535 bytes, of packets of half an MTU and more, of both
// IP versions, with the flags for IPv4 and IPv6 tunnels set
// (tpa_ipv4_tunn_en_flg, qed_l2.c), all headers the same (gro_consistent); the
// queue stops with less than 18 free descriptors (MAX_SKB_FRAGS+1) and goes on
// with as many.
//
// A GRE tunnel needs no port; of VXLAN and Geneve the firmware knows one port
// each. An aggregate in GRE reaches the host only where the header in front of
// it can say so, which a virtio header cannot.
//
// All TSO, in UDP tunnels with outer checksums as well, for the port and for
// VLANs on it. From memory: rx-usecs 24.
var qede = softnic.Model{
	Name:         "qede",
	About:        "a fast card with GRO in firmware, through VXLAN, Geneve and GRE",
	Source:       "drivers/net/ethernet/qlogic/{qed/qed_l2.c,qede/*}, Linux 5.10",
	Offloads:     softnic.SG | softnic.Checksum | softnic.TSO | softnic.TunnelTSO | softnic.TunnelCsum,
	VLANOffloads: softnic.SG | softnic.Checksum | softnic.TSO | softnic.TunnelTSO | softnic.TunnelCsum,
	TX:           softnic.TX{Ring: 8192, Stop: 18, PerHeader: 1, PerData: 32 << 10},
	RX: softnic.RX{
		Ring: 1023, Checksum: true,
		Merge:      qedeGRO,
		Moderation: softnic.Moderation{Usecs: 24 * time.Microsecond},
	},
	Counters: []softnic.CounterName{
		{Driver: "rcv_pkts", Station: softnic.RXFrames},
		{Driver: "rx_hw_errors", Station: softnic.RXBad},
		{Driver: "xmit_pkts", Station: softnic.TXTaken},
		{Driver: "stopped_cnt", Station: softnic.TXStops},
		{Driver: "rx_ucast_bytes", Station: softnic.RXBytes},
		{Driver: "tx_ucast_bytes", Station: softnic.WireBytes},
		{Driver: "tx_ucast_pkts", Station: softnic.WireFrames},
		{Driver: "no_buff_discards", Station: softnic.RXNoBuffer},
		{Driver: "tx_err_drop_pkts", Station: softnic.TXFault},
		{Driver: "coalesced_pkts", Station: softnic.RXMerged},
		{Driver: "coalesced_events", Station: softnic.RXSuper},
	},
}

func qedeGRO(mtu int) gro.Options {
	o := gro.QEDE(mtu)
	o.Limits.NoTunnels = false
	o.VXLANPort, o.GenevePort = packet.PortVXLAN, packet.PortGeneve
	return o
}
