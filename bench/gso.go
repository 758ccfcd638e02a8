package main

import (
	"encoding/binary"

	"github.com/tailscale/wireguard-go/tun"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

const (
	segments = 45
	mss      = 1448
)

func gsoRows() []row {
	bufs, sizes := make([][]byte, segments), make([]int, segments)
	for i := range bufs {
		bufs[i] = make([]byte, 2048)
	}
	tcp := superTCP(nil)
	udp := superUDP()
	vxlan := superTCP(outerVXLAN())
	h := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv4, HdrLen: 52, GSOSize: mss, CsumStart: 20, CsumOffset: 16}
	hu := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOUDPL4, HdrLen: 28, GSOSize: 1472, CsumStart: 20, CsumOffset: 6}
	hv := h
	hv.GSOType |= vnet.GSOUDPTunnel4
	hv.OuterTransport, hv.InnerNetwork = 20, 50
	hv.CsumStart += 50
	hvc := hv
	hvc.Flags |= vnet.UDPTunnelCsum
	opt := gso.Options{Start: packet.StartIP}
	partial := gso.Options{Start: packet.StartIP, Checksum: gso.Pseudo}
	split := func(pkt []byte, h vnet.Header, want int) func() {
		return func() {
			if n, err := gso.Split(bufs, sizes, pkt, h, opt); n != want || err != nil {
				panic(err)
			}
		}
	}
	// tailscale's GSOSplit leaves its mark in the input's headers, so each side
	// has a packet of its own.
	tailscale := func(pkt []byte, o tun.GSOOptions) func() {
		in, hdr := append([]byte{}, pkt...), append([]byte{}, pkt[:60]...)
		return func() {
			copy(in, hdr)
			if _, err := tun.GSOSplit(in, o, bufs, sizes, 0); err != nil {
				panic(err)
			}
		}
	}
	segs, scratch := make([]gso.Segment, segments), make([]byte, segments*128)
	scatter := func(o gso.Options) func() {
		return func() {
			if n, err := gso.Scatter(segs, scratch, tcp, h, o); n != segments || err != nil {
				panic(err)
			}
		}
	}
	plain := split(tcp, h, segments)
	return []row{
		{
			work: "TCPv4 64 KB to 45 × 1448, copy + checksum", units: segments, unit: "ns/segment", target: "≤ 0.60 × tailscale", ours: plain,
			anchor: "tailscale", theirs: tailscale(tcp, tun.GSOOptions{GSOType: tun.GSOTCPv4, HdrLen: 52, CsumStart: 20, CsumOffset: 16, GSOSize: mss, NeedsCsum: true}),
		},
		{
			work: "UDPv4 44 × 1472, copy + checksum", units: 44, unit: "ns/segment", ours: split(udp, hu, 44),
			anchor: "tailscale", theirs: tailscale(udp, tun.GSOOptions{GSOType: tun.GSOUDPL4, HdrLen: 28, CsumStart: 20, CsumOffset: 6, GSOSize: 1472, NeedsCsum: true}),
		},
		{
			work: "TCPv4 45 × 1448, copy, checksum left to the NIC", units: segments, unit: "ns/segment",
			ours: func() {
				if n, err := gso.Split(bufs, sizes, tcp, h, partial); n != segments || err != nil {
					panic(err)
				}
			},
		},
		{work: "TCPv4 45 × 1448, copy alone", units: segments, unit: "ns/segment", ours: func() {
			for i := range bufs {
				copy(bufs[i][52:], tcp[52+i*mss:52+(i+1)*mss])
			}
		}},
		{work: "TCPv4 45 × 1448, scatter, checksum left to the NIC", units: segments, unit: "ns/segment", target: "≤ 20 ns", ours: scatter(partial)},
		{work: "TCPv4 45 × 1448, scatter, checksum", units: segments, unit: "ns/segment", ours: scatter(opt)},
		{work: "VXLAN TCPv4 45 × 1448, copy + checksum", units: segments, unit: "ns/segment", target: "≤ 1.40 × plain", ours: split(vxlan, hv, segments), anchor: "the plain split", theirs: plain},
		{work: "VXLAN with outer checksum, same", units: segments, unit: "ns/segment", target: "≤ 1.40 × plain", ours: split(vxlan, hvc, segments), anchor: "the plain split", theirs: plain},
	}
}

// ip4 returns an IPv4 header for n bytes.
func ip4(proto byte, n int) []byte {
	b := []byte{0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
	binary.BigEndian.PutUint16(b[2:], uint16(20+n))
	packet.IPv4(b).SetChecksum(packet.IPv4(b).ComputeChecksum())
	return b
}

// superTCP returns a super-packet with timestamps, behind the headers outer.
func superTCP(outer []byte) []byte {
	n := 32 + segments*mss
	b := append(append([]byte{}, outer...), ip4(packet.ProtoTCP, n)...)
	at := len(b)
	b = append(b, make([]byte, n)...)
	t := b[at:]
	copy(t, []byte{3, 232, 1, 187, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x18, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2})
	fill(t[32:])
	packet.TCP(t).SetChecksum(checksum.PseudoIPv4([4]byte{192, 0, 2, 1}, [4]byte{192, 0, 2, 2}, 6, n).Fold())
	return b
}

func superUDP() []byte {
	n := 8 + 44*1472
	b := append(ip4(packet.ProtoUDP, n), make([]byte, n)...)
	t := b[20:]
	copy(t, []byte{3, 232, 1, 187})
	packet.UDP(t).SetLength(n)
	fill(t[8:])
	packet.UDP(t).SetChecksum(checksum.PseudoIPv4([4]byte{192, 0, 2, 1}, [4]byte{192, 0, 2, 2}, 17, n).Fold())
	return b
}

func outerVXLAN() []byte {
	b := append(ip4(packet.ProtoUDP, 30+20+32+segments*mss), 0xd9, 3, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 42, 0)
	return append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0)
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(i*31 + i>>8)
	}
}
