package gso_test

import (
	"fmt"
	"io"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// readPackets reads once from a TUN that was opened with IFF_VNET_HDR and
// TUN_F_CSUM|TUN_F_TSO4|TUN_F_TSO6|TUN_F_USO4|TUN_F_USO6, and returns the
// packets in bufs.
func readPackets(tun io.Reader, in []byte, bufs [][]byte, sizes []int) (int, error) {
	n, err := tun.Read(in)
	if err != nil {
		return 0, err
	}
	hdr, err := vnet.Legacy.Get(in[:n])
	if err != nil {
		return 0, err
	}
	return gso.Split(bufs, sizes, in[vnet.Legacy.Size:n], hdr, gso.Options{Start: packet.StartIP})
}

func ExampleSplit() {
	bufs, sizes := make([][]byte, 64), make([]int, 64)
	for i := range bufs {
		bufs[i] = make([]byte, 1500)
	}
	n, err := readPackets(tunWithOneSuperPacket(), make([]byte, 1<<16), bufs, sizes)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, b := range bufs[:n] {
		l, err := packet.Parse(b[:sizes[i]], packet.StartIP)
		if err != nil {
			fmt.Println(err)
			return
		}
		tcp := packet.TCP(b[l.Transport:])
		fmt.Printf("%d bytes, seq %d, push %v\n", sizes[i], tcp.Seq(), tcp.Flags()&packet.PSH != 0)
	}
	// Output:
	// 1488 bytes, seq 1000, push false
	// 1488 bytes, seq 2448, push false
	// 644 bytes, seq 3896, push true
}

// ExampleScatter prepares what a descriptor ring or writev takes: the payload
// stays where it is, and the device completes the checksum.
func ExampleScatter() {
	super := pkttest.Build(pkttest.Eth{}, pkttest.IP6{}, pkttest.TCP{Partial: true}, make(pkttest.Payload, 3000))
	hdr := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv6, GSOSize: 1440, CsumStart: 54, CsumOffset: 16}
	segs, scratch := make([]gso.Segment, 64), make([]byte, 64*128)
	n, err := gso.Scatter(segs, scratch, super, hdr, gso.Options{Checksum: gso.Pseudo})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range segs[:n] {
		fmt.Printf("%d + %d bytes, checksum from %d at %d\n", len(s.Header), len(s.Payload), s.CsumStart, s.CsumStart+s.CsumOffset)
	}
	// Output:
	// 74 + 1440 bytes, checksum from 54 at 70
	// 74 + 1440 bytes, checksum from 54 at 70
	// 74 + 120 bytes, checksum from 54 at 70
}

type oneRead []byte

func (r oneRead) Read(b []byte) (int, error) { return copy(b, r), nil }

func tunWithOneSuperPacket() io.Reader {
	pkt := pkttest.Build(pkttest.IP4{}, pkttest.TCP{Seq: 1000, Flags: packet.ACK | packet.PSH, Partial: true}, make(pkttest.Payload, 3500))
	b := make([]byte, vnet.Legacy.Size+len(pkt))
	h := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv4, GSOSize: 1448, CsumStart: 20, CsumOffset: 16}
	if err := vnet.Legacy.Put(b, h); err != nil {
		panic(err)
	}
	copy(b[vnet.Legacy.Size:], pkt)
	return oneRead(b)
}
