// Package vnet encodes and decodes virtio_net_hdr, the header that Linux puts
// in front of each frame on a TUN or TAP with IFF_VNET_HDR, on a packet socket
// with PACKET_VNET_HDR and on a virtio-net queue. It says what is left to do
// for the frame: cut it into segments of GSOSize bytes of payload, complete
// the checksum at CsumStart+CsumOffset.
//
// # Sizes
//
// The header grew (include/uapi/linux/virtio_net.h):
//
//	10 bytes  the legacy header; TUN, TAP and packet sockets until told otherwise
//	12 bytes  with NumBuffers: virtio 1.0
//	20 bytes  with the hash of the packet
//	24 bytes  with the offsets of a UDP tunnel (VXLAN, Geneve): Linux 6.17 and later
//
// TUNSETVNETHDRSZ chooses on a TUN or TAP.
//
// # Byte order
//
// A virtio 1.0 queue is little-endian. A packet socket, and a TUN or TAP with a
// header of any size, use the order of the machine, until TUNSETVNETLE or
// TUNSETVNETBE fix it. A [Format] holds size and order; encoding and decoding
// use the same one, always.
//
// # What to distrust
//
// HdrLen is a hint. Linux ignores it on input, and on output writes the length
// of its first buffer, not that of the headers. Lengths and offsets come from
// whoever wrote the frame; this package does not compare them with one, package
// gso does.
package vnet
