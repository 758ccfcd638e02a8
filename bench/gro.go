package main

import (
	"encoding/binary"
	"unsafe"

	_ "github.com/offlab/anchors/tailscale202603/tun" // see copyGRO
	"github.com/tailscale/wireguard-go/tun"           // see gatherGRO, too

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
)

// Both anchors are github.com/tailscale/wireguard-go. Until the spring of 2026
// its GRO copied payload behind the first packet, as this engine's copying mode;
// now it gathers, as the other mode. The go.mod has the earlier one under a name
// of its own. Neither is exported.
//
//go:linkname copyGRO github.com/offlab/anchors/tailscale202603/tun.handleGRO
func copyGRO(bufs [][]byte, offset int, tcp, udp unsafe.Pointer, off int, toWrite *[]int) error

//go:linkname copyTCPTable github.com/offlab/anchors/tailscale202603/tun.newTCPGROTable
func copyTCPTable() unsafe.Pointer

//go:linkname copyUDPTable github.com/offlab/anchors/tailscale202603/tun.newUDPGROTable
func copyUDPTable() unsafe.Pointer

//go:linkname copyReset github.com/offlab/anchors/tailscale202603/tun.(*tcpGROTable).reset
func copyReset(t unsafe.Pointer)

//go:linkname copyResetUDP github.com/offlab/anchors/tailscale202603/tun.(*udpGROTable).reset
func copyResetUDP(t unsafe.Pointer)

//go:linkname gatherGRO github.com/tailscale/wireguard-go/tun.handleGRO
func gatherGRO(bufs [][]byte, offset int, tcp, udp unsafe.Pointer, off int, wi unsafe.Pointer) error

//go:linkname gatherTCPTable github.com/tailscale/wireguard-go/tun.newTCPGROTable
func gatherTCPTable() unsafe.Pointer

//go:linkname gatherUDPTable github.com/tailscale/wireguard-go/tun.newUDPGROTable
func gatherUDPTable() unsafe.Pointer

//go:linkname gatherReset github.com/tailscale/wireguard-go/tun.(*tcpGROTable).reset
func gatherReset(t unsafe.Pointer)

//go:linkname gatherResetWrite github.com/tailscale/wireguard-go/tun.(*groToWrite).reset
func gatherResetWrite(w unsafe.Pointer)

// toWrite is tun.groToWrite.
type toWrite struct {
	_ [][][]byte
	_ int
}

//go:linkname newToWrite github.com/tailscale/wireguard-go/tun.newGROToWrite
func newToWrite() toWrite

const (
	headroom = 10 // of the anchors, for virtio_net_hdr
	hdrLen   = 52
)

// train returns the IP packets of flows flows, per of each, in turns, in a block
// of memory with 2 KB for each packet, as in a receive ring.
func train(flows, per int) [][]byte {
	mem := make([]byte, flows*per*2048)
	var pkts [][]byte
	for i := range per {
		for f := range flows {
			b := mem[:hdrLen+mss]
			mem = mem[2048:]
			segment(b, f, i)
			pkts = append(pkts, b)
		}
	}
	return pkts
}

func segment(b []byte, flow, i int) {
	be := binary.BigEndian
	copy(b, []byte{0x45, 0})
	be.PutUint16(b[2:], uint16(len(b)))
	be.PutUint16(b[4:], uint16(i))
	b[6], b[8], b[9] = 0x40, 64, packet.ProtoTCP
	copy(b[12:], []byte{10, 0, byte(flow >> 8), byte(flow), 10, 1, 0, 2})
	packet.IPv4(b).SetChecksum(packet.IPv4(b).ComputeChecksum())
	t := packet.TCP(b[20:])
	be.PutUint16(t, uint16(1000+flow))
	be.PutUint16(t[2:], 443)
	t.SetSeq(uint32(i * mss))
	t[12], t[13] = 8<<4, packet.ACK
	copy(t[20:], []byte{1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8})
	for j := hdrLen; j < len(b); j++ {
		b[j] = byte(i*31 + j)
	}
	t.SetChecksum((checksum.Sum(t) + packet.IPv4(b).Pseudo(packet.ProtoTCP, len(t))).Checksum())
}

// merge returns a call that pushes all packets, poll at a time, and flushes
// after each poll.
func merge(pkts [][]byte, poll, want int, o gro.Options) func() {
	o.Start = packet.StartIP
	e, err := gro.New(o)
	if err != nil {
		panic(err)
	}
	in := make([]gro.Packet, len(pkts))
	for i, p := range pkts {
		in[i].Data = p
	}
	return func() {
		n := 0
		for at := 0; at < len(in); at += poll {
			n += len(e.Push(0, in[at:min(at+poll, len(in))]...)) + len(e.Flush(0))
		}
		if n != want {
			panic(n)
		}
	}
}

// ring merges packets that arrive in 128 receive buffers, over and over, as they
// do from a NIC or a socket: only the headers differ, and writing them is part of
// the time. Each poll is 128 packets; flush says whether it ends with a Flush.
func ring(pkts [][]byte, want int, flush bool, o gro.Options) func() {
	o.Start = packet.StartIP
	e, err := gro.New(o)
	if err != nil {
		panic(err)
	}
	in := make([]gro.Packet, 128)
	for i, b := range train(1, len(in)) {
		copy(b[hdrLen:], pkts[0][hdrLen:])
		in[i].Data = b
	}
	heads := make([][hdrLen]byte, len(pkts))
	for i, p := range pkts {
		copy(p[hdrLen:], pkts[0][hdrLen:])
		t := packet.TCP(p[20:])
		t.SetChecksum(0)
		t.SetChecksum((checksum.Sum(t) + packet.IPv4(p).Pseudo(packet.ProtoTCP, len(t))).Checksum())
		copy(heads[i][:], p)
	}
	return func() {
		n := 0
		for at := 0; at < len(heads); at += len(in) {
			for i := range in {
				copy(in[i].Data, heads[at+i][:])
			}
			n += len(e.Push(0, in...))
			if flush {
				n += len(e.Flush(0))
			}
		}
		if n += len(e.Flush(0)); n != want {
			panic(n)
		}
	}
}

// copyAnchor merges copies of the packets as tailscale did until 2026-03. It
// writes to the first packet of each flow, which has the room for the others.
func copyAnchor(pkts [][]byte, flows int) func() {
	room := 2*headroom + 80 + len(pkts[0])*len(pkts)/flows // it wants the headroom twice
	bufs := make([][]byte, len(pkts))
	heads := make([][72]byte, flows)
	for i, p := range pkts {
		size := headroom + len(p)
		if i < flows {
			size = room
			copy(heads[i][:], p)
		}
		bufs[i] = make([]byte, headroom+len(p), size)
		copy(bufs[i][headroom:], p)
	}
	tcp, udp := copyTCPTable(), copyUDPTable()
	out := make([]int, 0, len(pkts))
	return func() {
		out = out[:0]
		for i := range heads {
			bufs[i] = bufs[i][:headroom+len(pkts[i])]
			copy(bufs[i][headroom:], heads[i][:])
		}
		if err := copyGRO(bufs, headroom, tcp, udp, 0, &out); err != nil || len(out) != flows {
			panic(len(out))
		}
		copyReset(tcp)
		copyResetUDP(udp)
	}
}

// gatherAnchor merges as tailscale does now, by references.
func gatherAnchor(pkts [][]byte, flows int) func() {
	bufs := make([][]byte, len(pkts))
	heads := make([][hdrLen]byte, flows)
	for i, p := range pkts {
		bufs[i] = make([]byte, headroom+len(p))
		copy(bufs[i][headroom:], p)
		if i < flows {
			copy(heads[i][:], p)
		}
	}
	tcp, udp := gatherTCPTable(), gatherUDPTable()
	wi := newToWrite()
	return func() {
		for i := range heads {
			copy(bufs[i][headroom:], heads[i][:])
		}
		gatherResetWrite(unsafe.Pointer(&wi))
		if err := gatherGRO(bufs, headroom, tcp, udp, 0, unsafe.Pointer(&wi)); err != nil {
			panic(err)
		}
		gatherReset(tcp)
	}
}

// traffic reads and writes what a copying engine must, and does nothing else: the
// floor of the machine. (The anchors have room for 128 flows.)
func traffic(pkts [][]byte, flows int) func() {
	stride := 65536 + 1024 + 64
	mem := make([]byte, stride*flows)
	for i := range mem {
		mem[i] = 1
	}
	return func() {
		for i, p := range pkts {
			at := i%flows*stride + i/flows*mss
			sink += uint64(checksum.CopySum(mem[at:], p))
		}
	}
}

// trainV6 is train for TCP over IPv6: 72 bytes of headers.
func trainV6(per int) [][]byte {
	var pkts [][]byte
	for i := range per {
		b := make([]byte, 72+mss)
		copy(b, []byte{0x60, 0, 0, 0, 0, 0, packet.ProtoTCP, 64})
		packet.IPv6(b).SetPayloadLen(len(b) - 40)
		b[8], b[23], b[24], b[39] = 0xfd, 1, 0xfd, 2
		v4 := make([]byte, hdrLen+mss)
		segment(v4, 0, i)
		copy(b[40:], v4[20:])
		t := packet.TCP(b[40:])
		t.SetChecksum(0)
		t.SetChecksum((checksum.Sum(t) + packet.IPv6(b).Pseudo(packet.ProtoTCP, len(t))).Checksum())
		pkts = append(pkts, b)
	}
	return pkts
}

// trainUDP is n datagrams of 1472 bytes over IPv4.
func trainUDP(n int) [][]byte {
	var pkts [][]byte
	for i := range n {
		b := make([]byte, 28+1472)
		segment(b, 0, i)
		b[9] = packet.ProtoUDP
		packet.IPv4(b).SetChecksum(0)
		packet.IPv4(b).SetChecksum(packet.IPv4(b).ComputeChecksum())
		u := packet.UDP(b[20:])
		u.SetLength(len(u))
		u.SetChecksum(0)
		u.SetChecksum((checksum.Sum(u) + packet.IPv4(b).Pseudo(packet.ProtoUDP, len(u))).UDP())
		pkts = append(pkts, b)
	}
	return pkts
}

// trainVXLAN wraps the packets in VXLAN over IPv4, with an outer checksum or
// without.
func trainVXLAN(inner [][]byte, sum bool) [][]byte {
	var pkts [][]byte
	for i, p := range inner {
		b := make([]byte, 50+len(p))
		segment(b, 9, i)
		copy(b[50:], p)
		b[9] = packet.ProtoUDP
		packet.IPv4(b).SetTotalLen(len(b))
		packet.IPv4(b).SetChecksum(0)
		packet.IPv4(b).SetChecksum(packet.IPv4(b).ComputeChecksum())
		binary.BigEndian.PutUint16(b[22:], packet.PortVXLAN)
		u := packet.UDP(b[20:])
		u.SetLength(len(u))
		copy(b[28:], []byte{8, 0, 0, 0, 0, 0, 7, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0})
		u.SetChecksum(0)
		if sum {
			u.SetChecksum((checksum.Sum(u) + packet.IPv4(b).Pseudo(packet.ProtoUDP, len(u))).UDP())
		}
		pkts = append(pkts, b)
	}
	return pkts
}

// ringTraffic is traffic from 128 buffers, to places that lie as close together
// as two segments of a flow can.
func ringTraffic(pkts [][]byte) func() {
	const stride = 3264
	mem := make([]byte, stride*len(pkts)/2)
	for i := range mem {
		mem[i] = 1
	}
	return func() {
		for i := range pkts {
			at := i%(len(pkts)/2)*stride + i/(len(pkts)/2)*mss
			sink += uint64(checksum.CopySum(mem[at:], pkts[i%128]))
		}
	}
}

func groRows() []row {
	one, many, most := train(1, segments), train(64, 2), train(4096, 2)
	// The same flows, but each poll has both packets of 64 of them.
	var polls [][]byte
	for at := 0; at < 4096; at += 64 {
		polls = append(append(polls, most[at:at+64]...), most[4096+at:4096+at+64]...)
	}
	limit := gro.Options{MaxFlows: 4096}
	gather, good := gro.Options{Gather: true}, gro.Options{Gather: true, TrustChecksums: true}
	gatherLimit := gro.Options{MaxFlows: 4096, Gather: true}
	goodLimit := gro.Options{MaxFlows: 4096, Gather: true, TrustChecksums: true}
	const ns = "ns/packet"
	small := merge(many, 128, 64, gro.Options{})
	return []row{
		{
			work: "GRO 45 × 1448, one flow, verify + copy", units: segments, unit: ns, target: "≤ 0.45 × tailscale 2026-03",
			ours: merge(one, 64, 1, gro.Options{}), anchor: "tailscale 2026-03", theirs: copyAnchor(one, 1),
		},
		{
			work: "GRO 45 × 1448, one flow, verify + copy", units: segments, unit: ns,
			ours: merge(one, 64, 1, gro.Options{}), anchor: "gVisor", theirs: gvisorAnchor(one, 1),
		},
		{
			work: "GRO 45 × 1448, one flow, verify, gather", units: segments, unit: ns, target: "≤ 60 ns",
			ours: merge(one, 64, 1, gather), anchor: "tailscale 2026-07", theirs: gatherAnchor(one, 1),
		},
		{
			work: "GRO TCPv6 45 × 1448, one flow, verify + copy", units: segments, unit: ns,
			ours: merge(trainV6(45), 64, 1, gro.Options{}), anchor: "tailscale 2026-03", theirs: copyAnchor(trainV6(45), 1),
		},
		{
			work: "GRO UDPv4 44 × 1472, one flow, verify + copy", units: 44, unit: ns,
			ours: merge(trainUDP(44), 64, 1, gro.Options{UDP: true}), anchor: "tailscale 2026-03", theirs: copyAnchor(trainUDP(44), 1),
		},
		{
			work: "GRO VXLAN TCPv4 43 × 1448, verify + copy", units: 43, unit: ns,
			ours:   merge(trainVXLAN(train(1, 43), false), 64, 1, gro.Options{VXLANPort: packet.PortVXLAN}),
			anchor: "the same without VXLAN", theirs: merge(train(1, 43), 64, 1, gro.Options{}),
		},
		{
			work: "GRO VXLAN with checksum, TCPv4 43 × 1448, verify + copy", units: 43, unit: ns,
			ours:   merge(trainVXLAN(train(1, 43), true), 64, 1, gro.Options{VXLANPort: packet.PortVXLAN}),
			anchor: "the same without VXLAN", theirs: merge(train(1, 43), 64, 1, gro.Options{}),
		},
		{
			// 29 ns is what DPDK took where this checksum took 31.
			work: "GRO 45 × 1448, one flow, known good, gather", units: segments, unit: ns, target: "≤ 29 ns, or 0.94 × that checksum",
			ours: merge(one, 64, 1, good), anchor: "tailscale, checksum of 1448 B", theirs: func() {
				for range segments {
					sink += uint64(tun.Checksum(one[0][hdrLen:], 0))
				}
			},
		},
		{
			work: "GRO 64 flows × 2, verify + copy", units: 128, unit: ns, target: "≤ 0.50 × tailscale 2026-03",
			ours: small, anchor: "tailscale 2026-03", theirs: copyAnchor(many, 64),
		},
		{
			work: "GRO 64 flows × 2, verify + copy", units: 128, unit: ns,
			ours: small, anchor: "gVisor", theirs: gvisorAnchor(many, 64),
		},
		{
			work: "GRO 64 flows × 2, verify, gather", units: 128, unit: ns,
			ours: merge(many, 128, 64, gather), anchor: "tailscale 2026-07", theirs: gatherAnchor(many, 64),
		},
		{work: "GRO 64 flows × 2, known good, gather", units: 128, unit: ns, ours: merge(many, 128, 64, good)},
		{
			work: "GRO 4096 flows × 2, all held, verify + copy", units: 8192, unit: ns,
			ours: merge(most, 8192, 4096, limit), anchor: "the memory traffic alone", theirs: traffic(most, 4096),
		},
		{
			work: "GRO 4096 flows × 2, all held, verify, gather", units: 8192, unit: ns,
			ours: merge(most, 8192, 4096, gatherLimit), anchor: "the memory traffic alone", theirs: func() {
				for _, p := range most {
					sink += uint64(checksum.Sum(p))
				}
			},
		},
		{work: "GRO 4096 flows × 2, all held, known good, gather", units: 8192, unit: ns, ours: merge(most, 8192, 4096, goodLimit)},
		{
			work: "GRO 4096 flows × 2 in 128 buffers, 64 held, verify + copy", units: 8192, unit: ns, target: "≤ 1.50 × 64 flows",
			ours: ring(polls, 4096, true, limit), anchor: "64 flows × 2", theirs: repeat(small, 64),
		},
		{
			work: "GRO 4096 flows × 2 in 128 buffers, all held, verify + copy", units: 8192, unit: ns, target: "≤ 1.50 × 64 flows",
			ours: ring(train(4096, 2), 4096, false, limit), anchor: "64 flows × 2", theirs: repeat(small, 64),
		},
		{
			work: "the same", units: 8192, unit: ns,
			ours: ring(train(4096, 2), 4096, false, limit), anchor: "the memory traffic alone", theirs: ringTraffic(most),
		},
	}
}

func repeat(f func(), n int) func() {
	return func() {
		for range n {
			f()
		}
	}
}
