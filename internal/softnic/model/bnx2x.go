package model

import (
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
)

// bnx2x is a 10 Gbit/s card whose firmware aggregates (TPA), in GRO mode: what
// it hands up can be cut again, and passes through the kernel's GRO.
//
// From the source: 4,078 descriptors each way; at most 64 aggregations; 8 pages
// beside the first packet; in a page as many whole segments as fit, so that an
// MSS of 1,388 makes pages of 2,776 bytes; GRO mode only where 8 pages make no
// more than 17 fragments and one segment fits a page (bnx2x_mtu_allows_gro):
// from an MTU of 1,438 up to 4,096. The queue stops with less than 21 free
// descriptors, those of one packet: 17 fragments, start, parsing and split, and
// one for a page of the ring. All TSO, and in tunnels with the outer checksum
// left to the kernel (GSO_PARTIAL); tunnels do not pass on to VLANs. That no
// flow with other TCP options than a timestamp is aggregated is gro.BNX2X's.
//
// From memory: rx-usecs 24.
var bnx2x = softnic.Model{
	Name:         "bnx2x",
	About:        "a 10 Gbit/s card with aggregation in firmware, in GRO mode",
	Source:       "drivers/net/ethernet/broadcom/bnx2x/{bnx2x.h,bnx2x_cmn.[ch],bnx2x_main.c}, Linux 5.10",
	Offloads:     softnic.SG | softnic.Checksum | softnic.TSO | softnic.TunnelTSO,
	VLANOffloads: softnic.SG | softnic.Checksum | softnic.TSO,
	TX:           softnic.TX{Ring: 4078, Stop: 21, PerPacket: 2, PerHeader: 1, PerData: 32 << 10},
	RX: softnic.RX{
		Ring: 4078, Checksum: true,
		Merge:      bnx2xGRO,
		Moderation: softnic.Moderation{Usecs: 24 * time.Microsecond},
	},
	Counters: bnx2xCounters,
}

// bnx2xLRO is bnx2x in LRO mode (ethtool -K lro on, which turns rx-gro-hw off):
// pages are filled to the brim, IPv4 only, and the header is no longer that of
// any one packet.
//
// The driver does set gso_size in this mode, so that a forwarder can live with
// it; [gro.LRO] does not. Linux turns LRO off on a forwarder.
var bnx2xLRO = softnic.Model{
	Name:         "bnx2x-lro",
	About:        "bnx2x in LRO mode",
	Source:       bnx2x.Source,
	Offloads:     bnx2x.Offloads,
	VLANOffloads: bnx2x.VLANOffloads,
	TX:           bnx2x.TX,
	RX: softnic.RX{
		Ring: bnx2x.RX.Ring, Checksum: true,
		Merge:      bnx2xFull,
		Moderation: bnx2x.RX.Moderation,
	},
	Counters: bnx2xCounters,
}

const (
	bnx2xPage   = 4096
	bnx2xPages  = 8  // of one aggregation: U_ETH_SGL_SIZE
	bnx2xHeader = 72 // ETH_MAX_TPA_HEADER_SIZE: what is not payload in an MTU
	skbFrags    = 17 // MAX_SKB_FRAGS
)

func bnx2xGRO(mtu int) gro.Options {
	o := gro.BNX2X()
	perPage := bnx2xPage / max(1, mtu-bnx2xHeader)
	if mtu > bnx2xPage || bnx2xPages*perPage > skbFrags {
		o.Limits.MinSize = 65535 // none that there is: no aggregation
		return o
	}
	// The first segment lies in the buffer of a packet.
	o.MaxSegments = 1 + bnx2xPages*max(1, perPage)
	return o
}

func bnx2xFull(mtu int) gro.Options {
	o := gro.BNX2X()
	o.Policy = gro.LRO
	o.Limits.MTU = mtu
	return o
}

// With several queues ethtool -S prints each per queue, "[0]: tpa_bytes".
var bnx2xCounters = []softnic.CounterName{
	{Driver: "rx_bytes", Station: softnic.RXBytes},
	{Driver: "rx_ucast_packets", Station: softnic.RXFrames},
	{Driver: "rx_discards", Station: softnic.RXNoBuffer},
	{Driver: "rx_csum_offload_errors", Station: softnic.RXBad},
	{Driver: "tx_exhaustion_events", Station: softnic.TXStops},
	{Driver: "tx_bytes", Station: softnic.WireBytes},
	{Driver: "tx_ucast_packets", Station: softnic.WireFrames},
	{Driver: "tpa_aggregations", Station: softnic.RXSuper},
	{Driver: "tpa_aggregated_frames", Station: softnic.RXMerged},
}
