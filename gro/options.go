package gro

import (
	"fmt"
	"time"

	"github.com/offlab/offlab/packet"
)

// A Policy is a set of rules for merging.
type Policy uint8

// The policies.
const (
	// Linux merges as the software GRO of Linux does, with the rules of
	// [Options.Semantics].
	Linux Policy = iota
	// LRO merges as net/ipv4/inet_lro.c did until Linux removed it: IPv4 TCP,
	// the 4-tuple and the sequence number decide, and the header is that of
	// the last segment. What it merged cannot be segmented back and must not
	// be forwarded.
	LRO
	// Hardware merges as a NIC with NETIF_F_GRO_HW does: the rules of Linux
	// within the bounds of [Options.Limits].
	Hardware
)

// String returns the name in lower case.
func (p Policy) String() string {
	switch p {
	case Linux:
		return "linux"
	case LRO:
		return "lro"
	case Hardware:
		return "hardware"
	}
	return "unknown"
}

// Semantics names a kernel version whose rules differ from the others'.
type Semantics uint8

// The variants. Each was compared with the kernels named; the value stands for
// the releases up to the next one.
const (
	// Linux618 lets the IPv4 ID be constant also without DF, and tracks the IDs
	// of both headers of a tunnel. A segment with CWR never merges.
	Linux618 Semantics = iota
	// Linux612 wants DF for a constant ID and ignores the outer ID under DF. A
	// segment with CWR never merges, but others may follow one.
	Linux612
	// Linux616 has the IDs of Linux612 and the CWR of Linux618. It stands for
	// 6.16 and 6.17.
	Linux616
	// Linux72 has the IDs of Linux618; CWR only has to be equal (AccECN).
	Linux72
)

// String returns the version.
func (s Semantics) String() string {
	switch s {
	case Linux618:
		return "6.18"
	case Linux612:
		return "6.12"
	case Linux616:
		return "6.16"
	case Linux72:
		return "7.2"
	}
	return "unknown"
}

// The default limits.
const (
	// DefaultMaxFlows is that of Linux, 8 lists of 8 packets.
	DefaultMaxFlows = 64
	// DefaultMaxSize is Linux's gro_max_size.
	DefaultMaxSize = 65536
	// MaxMaxSize is Linux's GRO_MAX_SIZE, with BIG TCP.
	MaxMaxSize = 8 * 65535
	// MaxHeader is the longest run of headers, in bytes, that is held. Linux
	// has no such bound; a packet with more is passed alone.
	MaxHeader = 512
	// MaxUDPSegments is Linux's UDP_GRO_CNT_MAX.
	MaxUDPSegments = 64
)

// Options configure an engine. The zero value is a copying engine with the
// rules of Linux 6.18 for Ethernet frames, TCP only.
type Options struct {
	// Policy is the set of rules.
	Policy Policy
	// Semantics is the kernel version of the policies Linux and Hardware.
	Semantics Semantics
	// Start is the first header of what is pushed: [packet.StartEthernet] as on
	// a TAP or NIC, [packet.StartIP] as on a TUN.
	Start packet.Start

	// Gather leaves payload where it is: outputs refer to the pushed buffers.
	Gather bool
	// TrustChecksums takes the transport checksum of every packet as verified,
	// one per packet (CHECKSUM_UNNECESSARY). A single packet says so with
	// [vnet.DataValid] in its header.
	TrustChecksums bool
	// UDP merges UDP datagrams, as Linux does with rx-udp-gro-forwarding.
	// Otherwise UDP is passed.
	UDP bool
	// NoVLAN passes tagged frames, as a kernel without 802.1Q support.
	NoVLAN bool
	// VXLANPort and GenevePort are the UDP ports of local tunnels; 0 is none.
	// Inside a tunnel the inner flow is merged. A port that is none is plain
	// UDP.
	VXLANPort, GenevePort uint16

	// TunnelChecksum merges VXLAN and Geneve only with an outer UDP checksum, as
	// Linux did before 5.12 and the stable releases of March 2021 (89e5c58fc1e2).
	TunnelChecksum bool

	// MaxFlows bounds what is held, over all buckets; 0 means DefaultMaxFlows.
	MaxFlows int
	// Buckets divides MaxFlows into that many lists, chosen by [Packet.Hash];
	// 0 means 1. It must be a power of two and divide MaxFlows. Linux has 8; a
	// device that gives no hash uses the first alone, which is 1 bucket and
	// MaxFlows 8.
	Buckets int
	// MaxSize is the size, in bytes from the IP header on, that an aggregate
	// stays below; 0 means DefaultMaxSize. More than that is BIG TCP: TCP
	// without a tunnel, and IP lengths of 0 above 65535.
	MaxSize int
	// MaxSegments bounds the segments of an aggregate; 0 is no bound for TCP.
	// UDP has at most MaxUDPSegments.
	MaxSegments int
	// Hold is how long a packet may be held: Push and Flush complete what is
	// older. With 0 Flush completes everything and Push nothing.
	Hold time.Duration
	// Limits are the device's, for the policies Hardware and LRO.
	Limits Limits
	// Seed enters the hash of the flow table. Where a peer may choose
	// addresses and ports to collide, set it to a random number.
	Seed uint64
}

// Limits are what a device can do. The zero value has no bounds beyond those of
// the options.
type Limits struct {
	// MinSize is the least size of an IP packet, in bytes, that starts or
	// continues an aggregation.
	MinSize int
	// OnlyTimestamps refuses packets whose TCP options are anything else than
	// two NOPs and a timestamp.
	OnlyTimestamps bool
	// NoExtensions refuses IPv6 extension headers.
	NoExtensions bool
	// NoTunnels refuses packets in tunnels.
	NoTunnels bool
	// MTU is that of the device, for LRO: an aggregate ends when another packet
	// of this size might exceed 65535 bytes. 0 means 1500.
	MTU int
}

// BNX2X returns the options of the firmware aggregation (TPA) of bnx2x: 64
// aggregations of at most 8 pages, TCP without other
// options than timestamps, nothing behind extension headers or in tunnels.
// Source: drivers/net/ethernet/broadcom/bnx2x, Linux 6.12.
func BNX2X() Options {
	return Options{
		Policy: Hardware, MaxFlows: 64, MaxSize: 8*4096 + 1,
		Limits: Limits{OnlyTimestamps: true, NoExtensions: true, NoTunnels: true},
	}
}

// QEDE returns the options of the firmware aggregation of qede for an MTU in
// bytes: 64 aggregations up to 65535 bytes, of packets of at least half the
// MTU. Source: drivers/net/ethernet/qlogic/qede, Linux 6.12.
func QEDE(mtu int) Options {
	return Options{
		Policy: Hardware, MaxFlows: 64, MaxSize: 65536,
		Limits: Limits{MinSize: mtu / 2, NoTunnels: true},
	}
}

// BNXT returns the options of the hardware aggregation of bnxt for an MSS in
// bytes: packets of at least 512 bytes, and a count of segments that is a power
// of two, the first not counted, of what fits in 16 pages. Source:
// drivers/net/ethernet/broadcom/bnxt, Linux 6.12.
func BNXT(mss int) Options {
	segs := 1
	for mss > 0 && segs*2*mss <= 16*4096 {
		segs *= 2
	}
	return Options{
		Policy: Hardware, MaxFlows: 64, MaxSegments: segs + 1,
		Limits: Limits{MinSize: 512},
	}
}

// An OptionError names an option whose value is not possible.
type OptionError struct {
	Option string // the field of Options
	Value  int
	Want   string // what is possible
}

// Error returns the complaint in words.
func (e *OptionError) Error() string {
	return fmt.Sprintf("gro: %s is %d, want %s", e.Option, e.Value, e.Want)
}

// normalize fills in the defaults and checks the ranges.
func (o *Options) normalize() error {
	if o.MaxFlows == 0 {
		o.MaxFlows = DefaultMaxFlows
	}
	if o.Buckets == 0 {
		o.Buckets = 1
	}
	if o.MaxSize == 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.Limits.MTU == 0 {
		o.Limits.MTU = 1500
	}
	for _, c := range []struct {
		name     string
		v        int
		lo, hi   int
		wantText string
	}{
		{"Policy", int(o.Policy), 0, int(Hardware), "Linux, LRO or Hardware"},
		{"Semantics", int(o.Semantics), 0, int(Linux72), "one of the versions"},
		{"Start", int(o.Start), 0, int(packet.StartIP), "StartEthernet or StartIP"},
		{"MaxFlows", o.MaxFlows, 1, 1 << 18, "1 to 262144"},
		{"Buckets", o.Buckets, 1, 1 << 12, "1 to 4096"},
		{"MaxSize", o.MaxSize, 128, MaxMaxSize, "128 to 524280"},
		{"MaxSegments", o.MaxSegments, 0, 1 << 20, "0 to 1048576"},
		{"Limits.MTU", o.Limits.MTU, 68, 65535, "68 to 65535"},
		{"Limits.MinSize", o.Limits.MinSize, 0, 65535, "0 to 65535"},
	} {
		if c.v < c.lo || c.v > c.hi {
			return &OptionError{c.name, c.v, c.wantText}
		}
	}
	switch {
	case o.Buckets&(o.Buckets-1) != 0:
		return &OptionError{"Buckets", o.Buckets, "a power of two"}
	case o.MaxFlows%o.Buckets != 0:
		return &OptionError{"MaxFlows", o.MaxFlows, "a multiple of Buckets"}
	case o.Hold < 0:
		return &OptionError{"Hold", int(o.Hold), "0 or more"}
	case o.Policy == LRO && o.MaxSize > DefaultMaxSize:
		return &OptionError{"MaxSize", o.MaxSize, "65536 or less with LRO"}
	}
	return nil
}
