package gro_test

import (
	"fmt"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/vnet"
)

func newEngine(tb testing.TB, opt gro.Options) *gro.Engine {
	tb.Helper()
	e, err := gro.New(opt)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// A result is an output in one piece, without what a packet socket does not
// show of it.
type result struct {
	Data     []byte
	Header   vnet.Header
	Segments int
	Reason   gro.Reason
}

// keep copies outputs, which are valid only until the next call.
func keep(all []result, outs []gro.Output) []result {
	for i := range outs {
		o := &outs[i]
		r := result{append([]byte{}, o.Data...), o.Header, o.Segments, o.Reason}
		for _, p := range o.Payload {
			r.Data = append(r.Data, p...)
		}
		r.Header.HdrLen, r.Header.OuterTransport, r.Header.InnerNetwork = 0, 0, 0
		r.Header.GSOType &^= vnet.GSOUDPTunnel4 | vnet.GSOUDPTunnel6
		r.Header.Flags &^= vnet.UDPTunnelCsum
		all = append(all, r)
	}
	return all
}

// runBurst pushes the frames one a call and flushes.
func runBurst(e *gro.Engine, frames [][]byte) (all []result) {
	for _, f := range frames {
		all = keep(all, e.Push(0, gro.Packet{Data: f}))
	}
	return keep(all, e.Flush(0))
}

// pushAll pushes the packets in one call and flushes.
func pushAll(e *gro.Engine, pkts []gro.Packet) []result {
	all := keep(nil, e.Push(0, pkts...))
	return keep(all, e.Flush(0))
}

// diffResults returns the first difference, of all but the reasons.
func diffResults(got, want []result) string {
	for i := 0; i < len(got) && i < len(want); i++ {
		g, w := got[i], want[i]
		if string(g.Data) != string(w.Data) || g.Header != w.Header || g.Segments != w.Segments {
			return fmt.Sprintf("output %d of %d: %s; header %+v, want %+v; segments %d, want %d; reason %v; got %x want %x", i, len(want),
				diffBytes(g.Data, w.Data), g.Header, w.Header, g.Segments, w.Segments, g.Reason, head(g.Data), head(w.Data))
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d outputs, want %d", len(got), len(want))
	}
	return ""
}

func head(b []byte) []byte { return b[:min(len(b), 140)] }

func diffBytes(a, b []byte) string {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return fmt.Sprintf("lengths %d and %d, first difference at %d: %02x and %02x", len(a), len(b), i, a[i], b[i])
		}
	}
	return fmt.Sprintf("lengths %d and %d", len(a), len(b))
}

// segments returns n IPv4 packets of a TCP stream.
func segments(n, size int) (pkts [][]byte) {
	for i := range n {
		pkts = append(pkts, pkttest.Build(pkttest.IP4{DF: true, ID: uint16(i)}, pkttest.TCP{Seq: uint32(i * size)}, pkttest.Payload(make([]byte, size))))
	}
	return pkts
}

// datagrams6 returns n UDP datagrams over IPv6.
func datagrams6(n, size int) (pkts [][]byte) {
	for range n {
		pkts = append(pkts, pkttest.Build(pkttest.IP6{}, pkttest.UDP{}, pkttest.Payload(make([]byte, size))))
	}
	return pkts
}
