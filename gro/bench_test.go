package gro_test

import (
	"fmt"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/pkttest"
)

// train returns the packets of flows flows, per segments each, in turns.
func train(flows, per, mss int, layers func(flow, i int) []pkttest.Layer) (pkts []gro.Packet, bytes int64) {
	payload := make(pkttest.Payload, mss)
	for i := range payload {
		payload[i] = byte(i * 31)
	}
	// One block of memory, as a ring of receive buffers is.
	mem := make([]byte, 0, flows*per*2048)
	for i := range per {
		for f := range flows {
			b := pkttest.Build(append(layers(f, i), payload)...)
			n := len(mem)
			mem = append(mem, b...)
			pkts = append(pkts, gro.Packet{Data: mem[n:len(mem):len(mem)]})
			mem = mem[:n+(len(b)+63)&^63]
			bytes += int64(mss)
		}
	}
	return pkts, bytes
}

func tcp4(f, i int) []pkttest.Layer {
	return []pkttest.Layer{
		pkttest.Eth{},
		pkttest.IP4{DF: true, ID: uint16(i), Src: [4]byte{10, 0, byte(f >> 8), byte(f)}, Dst: [4]byte{10, 1, 0, 1}},
		pkttest.TCP{Seq: uint32(i * 1448), Ack: 1, Window: 500, Options: timestamp(1, 0)},
	}
}

// BenchmarkGRO is the time per packet: Push of all packets in one call, then
// Flush.
func BenchmarkGRO(b *testing.B) {
	for _, c := range []struct{ flows, per int }{{1, 45}, {8, 16}, {64, 2}, {128, 1}, {4096, 2}} {
		pkts, bytes := train(c.flows, c.per, 1448, tcp4)
		for _, m := range []struct {
			name string
			opt  gro.Options
		}{
			{"copy-verify", gro.Options{}},
			{"gather-verify", gro.Options{Gather: true}},
			{"gather-good", gro.Options{Gather: true, TrustChecksums: true}},
		} {
			m.opt.MaxFlows = max(64, c.flows)
			b.Run(fmt.Sprintf("flows=%d/per=%d/mode=%s", c.flows, c.per, m.name), func(b *testing.B) {
				e := newEngine(b, m.opt)
				out := 0
				b.SetBytes(bytes)
				for b.Loop() {
					out = len(e.Push(0, pkts...)) + len(e.Flush(0))
				}
				if want := c.flows; out != want {
					b.Fatalf("%d outputs, want %d", out, want)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pkts)), "ns/pkt")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
