// Package gso cuts a super-packet into segments, byte for byte as Linux does
// in software: TCP over IPv4 and IPv6, UDP (USO), with VLAN tags, IP options
// and extension headers, inside VXLAN, Geneve, GRE, IPIP, SIT, 4in6 and 6in6.
//
// A super-packet is a frame with headers of one segment and the payload of
// many, as a TUN or TAP with TUN_F_TSO4 and the like hands it out. What is to
// be done is in its virtio_net_hdr ([vnet.Header]), and in [Options] what that
// header cannot say.
//
//   - [Split] writes finished frames to the caller's buffers: the payload is
//     copied and summed in one pass.
//   - [Scatter] writes only headers, and refers to the payload where it is: for
//     a descriptor ring or writev, with the checksum finished or left to the
//     device.
//   - [Splitter] gives out the frames one at a time, in any order: to resume
//     after [ErrRoom], or where buffers come one by one.
//
// # What the segments are
//
// Segment i has bytes i·size to (i+1)·size of the payload, the last what is
// left. Headers are copied, options, tags and tunnel header included; then:
//
//   - lengths and all checksums are set; a UDP checksum of 0 is written as
//     0xffff;
//   - the TCP sequence number grows by i·size; FIN and PSH stay on the last
//     segment; CWR stays on the first, or on all with [Options.AccECN];
//   - the IPv4 ID grows by i, or stays with [Options.FixedID];
//   - a hop-by-hop header with only a jumbo payload option is left out (BIG
//     TCP).
//
// Legacy UFO (vnet.GSOUDP) makes IP fragments of one datagram instead.
//
// A packet that has no more payload than one segment is one frame, with its
// checksum completed and nothing else changed, as in Linux; it is not dropped.
//
// # What is trusted
//
// As in Linux the lengths and the IPv4 checksum of the super-packet are not
// looked at, nor is vnet.Header.HdrLen; everything behind the headers is
// payload, padding included, unless [Options.TrimPadding] says otherwise. The
// transport checksum field does matter with [vnet.NeedsCsum]: see
// [Splitter.Reset]. Whatever cannot be cut is an [Error], never a panic, and no
// frame is written.
//
// # Where Linux is not followed
//
// Linux 6.18 mixes up the two fixed-ID flags of a tunnel (an inner-only fixed
// ID counts up, an outer-only one fixes the inner), and after GRO gives the
// last segment in GRE with checksum the checksum of another. Here each flag
// acts on its own header and each checksum is right.
//
// Linux drops a super-packet whose payload is no more than one segment, but is
// more with its TCP options; and if one in a UDP tunnel needs no cutting, it
// leaves the outer checksum unfinished. Here such a packet is one good frame.
//
// Segments of less than 8 bytes of TCP payload are made as asked, as Linux 6.18
// does; 6.12 and 7.2 make them 8 bytes long.
//
// # Memory
//
// Nothing is allocated, and the super-packet is never written to. Output
// buffers must not overlap it or each other.
package gso
