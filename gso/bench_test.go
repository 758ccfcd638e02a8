package gso_test

import (
	"testing"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
)

// bulk returns 45 segments of 1448 bytes with timestamps.
func bulk(tunnel packet.Tunnel, csum bool) *super {
	p := tcp4(45*1448, 1448)
	p.tcp = pkttest.TCP{Seq: 1, Flags: 0x18, Options: []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}}
	p.tunnel, p.csum = tunnel, csum
	return p
}

func BenchmarkSplit(b *testing.B) {
	for _, bb := range []struct {
		name string
		p    *super
	}{
		{"tunnel=none", bulk(packet.NoTunnel, false)},
		{"tunnel=vxlan/csum=no", bulk(packet.VXLAN, false)},
		{"tunnel=vxlan/csum=yes", bulk(packet.VXLAN, true)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			pkt, h, o := bb.p.packet()
			bufs, sizes := buffers(45, 2048)
			b.SetBytes(int64(len(bb.p.payload)))
			for b.Loop() {
				if _, err := gso.Split(bufs, sizes, pkt, h, o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/45, "ns/seg")
		})
	}
}

func BenchmarkScatter(b *testing.B) {
	for _, bb := range []struct {
		name string
		c    gso.Checksum
	}{{"checksum=pseudo", gso.Pseudo}, {"checksum=full", gso.Full}} {
		b.Run(bb.name, func(b *testing.B) {
			p := bulk(packet.NoTunnel, false)
			pkt, h, o := p.packet()
			o.Checksum = bb.c
			segs, scratch := make([]gso.Segment, 45), make([]byte, 8192)
			b.SetBytes(int64(len(p.payload)))
			for b.Loop() {
				if _, err := gso.Scatter(segs, scratch, pkt, h, o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/45, "ns/seg")
		})
	}
}
