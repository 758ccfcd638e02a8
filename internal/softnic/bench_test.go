package softnic_test

import (
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/vnet"
)

// BenchmarkCard is what the card itself takes, between hosts that cost nothing.
func BenchmarkCard(b *testing.B) {
	merging := healthy()
	merging.RX.Merge = hardware
	linux := healthy()
	linux.RX.Merge = func(int) gro.Options { return gro.Options{} }
	h, f := super(45*1448, 1448)
	for _, bb := range []struct {
		name  string
		c     softnic.Config
		h     vnet.Header
		frame []byte
		segs  int
	}{
		{"super=through", cfg(merging, softnic.Wire{PassThrough: true}), h, f, 45},
		{"super=cut", cfg(healthy(), softnic.Wire{}), h, f, 45},
		{"super=cut-merged", cfg(merging, softnic.Wire{}), h, f, 45},
		{"super=cut-gro", cfg(linux, softnic.Wire{}), h, f, 45},
		{"frame=1448", cfg(healthy(), softnic.Wire{}), vnet.Header{}, segment(1, numbers(1448)), 1},
		{"frame=ack", cfg(healthy(), softnic.Wire{}), vnet.Header{}, segment(1, nil), 1},
	} {
		b.Run(bb.name, func(b *testing.B) {
			n := newBench(b, bb.c)
			n.q[1].keep = false
			p := make([]byte, n.format.Size+len(bb.frame))
			if err := n.format.Put(p, bb.h); err != nil {
				b.Fatal(err)
			}
			copy(p[n.format.Size:], bb.frame)
			b.SetBytes(int64(len(bb.frame)))
			b.ReportAllocs()
			for b.Loop() {
				n.q[0].down <- p
				if _, err := n.Step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bb.segs), "ns/frame")
		})
	}
}
