// Package gro merges the segments of a flow into super-packets: generic
// receive offload, bit for bit as Linux does it, or by the rules of two kinds
// of device.
//
// An [Engine] is a state machine without goroutine, clock or I/O. Packets go in
// with [Engine.Push], held ones come out with [Engine.Flush]; each [Output]
// carries the virtio_net_hdr to write in front of it, how many segments it
// holds, and the [Reason] that ended the merge. After the first packets nothing
// is allocated.
//
//	e, err := gro.New(gro.Options{Start: packet.StartIP, UDP: true})
//	...
//	for _, out := range e.Push(now, batch...) {
//		write(out.Header, out.Data)
//	}
//
// # What merges
//
// TCP over IPv4 and IPv6, and with [Options.UDP] equal-sized UDP datagrams,
// behind any number of VLAN tags and at most one tunnel: VXLAN and Geneve on the
// ports of the options, GRE with or without key and checksum, IPIP, SIT, 4in6,
// 6in6. The rules are those of [Options.Semantics], a kernel version: what may
// differ between two segments changed three times between Linux 6.12 and 7.2.
//
// # What comes out, in which order
//
// Every packet pushed leaves exactly once, alone or inside an aggregate. Packets
// of one flow leave in the order they came with one exception, which is also
// Linux's: a packet that the engine cannot read (a bad checksum, IP options, a
// fragment, an unknown protocol) is passed at once and so overtakes what is
// held. Between flows order is that of completion, not of arrival. With the
// policies [Hardware] and [LRO] a wrong checksum does not overtake either.
//
// # Where Linux is not followed
//
//   - More than [MaxHeader] bytes of headers are not held.
//   - An IPv6 header whose version is not 6 is passed; Linux would compare it as
//     IPv4.
//   - In GRE with key and checksum Linux compares the checksum where it means the
//     key; here the key has to be equal as well.
//   - The virtio_net_hdr of an aggregate in VXLAN or Geneve names the outer
//     transport header; Linux up to 6.18 names the inner one twice.
//   - Fraglist GRO (rx-gro-list), remote checksum offload and PPPoE (7.2) are
//     not there: such packets are merged as UDP, not at all, and not at all.
//   - BIG TCP over IPv6 has no jumbo payload option, as in 7.x.
//
// # Memory
//
// An engine holds at most [Options.MaxFlows] packets or aggregates; a new flow
// completes the oldest one, so a flood of flows costs merges, not memory. There
// is one buffer per held flow, and one more for each output that the caller may
// still be reading.
//
// In copying mode (the default) all that is held is copied, in the same pass
// that sums it, and a buffer that was pushed is free again when the outputs of
// that Push have been used. With [Options.Gather] the payload is not touched:
// an output has its headers in Data and references to the pushed buffers in
// Payload, as writev wants them; those buffers must stay until that output has
// been used. Bytes that were pushed are never written to.
//
// The returned outputs, and what they refer to inside the engine, are valid
// until the next call of a method of the engine.
package gro
