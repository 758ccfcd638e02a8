//go:build linux

package gro_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/kernelref"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
)

// withForwarder runs f on a thread that has a TAP with GRO, redirected to
// another TAP.
func withForwarder(t *testing.T, offloads bool, f func(c *kernelref.Coalescer) error) {
	t.Helper()
	need.Root(t)
	need.TUN(t)
	need.NetNS(t)
	for _, tool := range []string{"ip", "ethtool", "tc"} {
		need.Tool(t, tool)
	}
	kernelref.WithThread(t, func() error {
		c, err := kernelref.NewForwarder(offloads)
		if c != nil {
			defer c.Close()
		}
		if err != nil {
			return err
		}
		return f(c)
	})
}

// steady returns n frames of a flow that merge, the last of half the size.
func steady(r *rand.Rand, fl *genFlow, n int) (frames [][]byte) {
	for i := range n {
		k, flags := fl.mss, byte(packet.ACK)
		if i == n-1 {
			k, flags = (fl.mss+1)/2, packet.ACK|packet.PSH
		}
		frames = append(frames, fl.frame(r, k, flags, 0))
		fl.seq += uint32(k)
		if fl.idmode == 0 {
			fl.id++
		}
		if fl.oidmode == 0 {
			fl.oid++
		}
	}
	return frames
}

// TestKernelGROVirtioTunnelHeader compares all 24 bytes of the virtio_net_hdr of
// aggregates in VXLAN.
func TestKernelGROVirtioTunnelHeader(t *testing.T) {
	withForwarder(t, true, func(c *kernelref.Coalescer) error {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		for i := range 200 {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			fl := randomFlow(r, []tunnelKind{plain, vxlan, vxlanCsum})
			fl.udp, fl.ecn, fl.idmode, fl.oidmode, fl.vni = fl.kind == plain && fl.udp, 0, 0, 0, 1
			fl.mss = 100 + r.IntN(1300)
			frames := steady(r, fl, 2+r.IntN(20))
			_, diff := twice(t, c, frames, frameSegments, func(kernel []kernelref.Frame) string { return compareTunnel(t, fl, frames, kernel) })
			if diff != "" {
				return fmt.Errorf("flow %d (kind %d): %s", i, fl.kind, diff)
			}
		}
		return nil
	})
}

// compareTunnel compares the kernel's outputs with the engine's, all fields of
// the header but HdrLen included.
func compareTunnel(t *testing.T, fl *genFlow, frames [][]byte, kernel []kernelref.Frame) string {
	t.Helper()
	e := newEngine(t, kernelOptions(t))
	var pkts []gro.Packet
	for _, f := range frames {
		pkts = append(pkts, gro.Packet{Data: f})
	}
	got := e.Push(0, pkts...)
	if len(got) != 1 || e.Held() != 0 || len(kernel) != 1 {
		return fmt.Sprintf("%d outputs and %d held, the kernel has %d outputs, want 1", len(got), e.Held(), len(kernel))
	}
	g, w := got[0], kernel[0]
	g.Header.HdrLen, w.Header.HdrLen = 0, 0
	if fl.kind != plain { // K5
		if w.Header.OuterTransport != w.Header.CsumStart {
			return fmt.Sprintf("the kernel's outer transport offset is %d, no longer the inner one", w.Header.OuterTransport)
		}
		w.Header.OuterTransport = w.Header.InnerNetwork - packet.EthernetLen - packet.VXLANLen - packet.UDPLen
	}
	if string(g.Data) != string(w.Data) || g.Header != w.Header {
		return fmt.Sprintf("header %+v, want %+v; %s", g.Header, w.Header, diffBytes(g.Data, w.Data))
	}
	return ""
}

// A kernelFault is a case in which frames that the kernel merged and segmented
// again are not those that went in. The right answer is in all of them that
// they are: gso.Split of what this engine merged, with the two fixed-ID facts of
// gro.Output, gives them back.
type kernelFault struct {
	name         string
	kind         tunnelKind
	o6, v6, udp  bool
	fixed, ofix  bool
	kernelIsSane bool // not a fault: the same path comes back right
}

// kernelFaults are the known ones, on 6.18.44, 6.18.12 and 7.2.13 (2026-11):
//
//	K1  software GSO of UDP tunnels and GRE uses the outer header's fixed-ID flag
//	    for the inner header: an ID fixed inside only counts up, one fixed
//	    outside only fixes the inner one.
//	K2  GRO marks GRE with checksum as GRE without: the segments get the first
//	    one's checksum, which is wrong on a short last one.
//	K3  a fixed outer ID around IPv6, and any fixed ID of merged UDP datagrams,
//	    comes back counting up.
//	K5  the virtio_net_hdr of an aggregate in VXLAN gives the inner transport
//	    offset also as the outer one: see TestKernelGROVirtioTunnelHeader.
//	K6  in GRE with key and checksum GRO compares the checksum where it means the
//	    key, so that packets of two tunnels whose checksums agree are one flow to
//	    it: TestTunnelIdentity has them apart.
//	K4  packets that GRO does not read overtake those that it holds. That is the
//	    order of this engine too, see the package comment, and what
//	    TestKernelGROPlain compares.
var kernelFaults = []kernelFault{
	{name: "K1-vxlan-inner-fixed", kind: vxlan, fixed: true},
	{name: "K1-vxlan-outer-fixed", kind: vxlan, ofix: true},
	{name: "K1-gre-inner-fixed", kind: gre, fixed: true},
	{name: "K1-gre-outer-fixed", kind: gre, ofix: true},
	{name: "K2-gre-checksum", kind: greCsum},
	{name: "K3-vxlan-outer-fixed-inner-ipv6", kind: vxlan, v6: true, ofix: true},
	{name: "K3-udp-fixed", kind: plain, udp: true, fixed: true},

	{name: "sane-plain-fixed", kind: plain, fixed: true, kernelIsSane: true},
	{name: "sane-vxlan-both-fixed", kind: vxlan, fixed: true, ofix: true, kernelIsSane: true},
	{name: "sane-vxlan-none-fixed", kind: vxlan, kernelIsSane: true},
	{name: "sane-vxlan-checksum-over-ipv6", kind: vxlanCsum, o6: true, kernelIsSane: true},
	{name: "sane-ipip-inner-fixed", kind: ipip, fixed: true, kernelIsSane: true},
	{name: "sane-ipip-outer-fixed", kind: ipip, ofix: true, kernelIsSane: true},
	{name: "sane-gre-key", kind: greKey, kernelIsSane: true},
	{name: "sane-gre-teb", kind: greTEB, kernelIsSane: true},
	{name: "sane-sit", kind: ipip, v6: true, kernelIsSane: true},
	{name: "sane-6in6", kind: ipip, o6: true, v6: true, kernelIsSane: true},
	{name: "sane-4in6", kind: ipip, o6: true, kernelIsSane: true},
}

// TestKernelGROFaults sends each case through the kernel's GRO and GSO and
// through this module's. A listed fault that the kernel no longer has fails: then
// the list is out of date.
func TestKernelGROFaults(t *testing.T) {
	withForwarder(t, false, func(c *kernelref.Coalescer) error {
		for i, k := range kernelFaults {
			r := rand.New(rand.NewPCG(3, uint64(i)))
			fl := randomFlow(r, []tunnelKind{k.kind})
			fl.kind, fl.o6, fl.v6, fl.udp, fl.ecn, fl.mss, fl.df, fl.odf, fl.vni, fl.ext = k.kind, k.o6, k.v6, k.udp, 0, 1000, true, true, 1, 0
			fl.idmode, fl.oidmode = 0, 0
			if k.fixed {
				fl.idmode = 1
			}
			if k.ofix {
				fl.oidmode = 1
			}
			frames := steady(r, fl, 10)
			kernel, diff := twice(t, c, frames, func(kernelref.Frame) int { return 1 }, func(out []kernelref.Frame) string {
				same := len(out) == len(frames)
				for j := range out {
					same = same && string(out[j].Data) == string(frames[j])
				}
				if same != k.kernelIsSane {
					return fmt.Sprintf("the kernel gives back what went in: %v, want %v", same, k.kernelIsSane)
				}
				return ""
			})
			if diff != "" {
				t.Errorf("%s: %s", k.name, diff)
				continue
			}
			checkRight(t, k, frames)
			if k.kind == greCsum {
				last := kernel[len(kernel)-1].Data
				if l, err := packet.Parse(last, packet.StartEthernet); err != nil || pkttest.Sum(last[l.TunnelAt:], 0) == 0xffff {
					t.Errorf("%s: the last GRE checksum of the kernel is right (%v)", k.name, err)
				}
			}
		}
		return nil
	})
}

// checkRight merges the frames into one and cuts it again.
func checkRight(t *testing.T, k kernelFault, frames [][]byte) {
	t.Helper()
	e := newEngine(t, kernelOptions(t))
	var pkts []gro.Packet
	for _, f := range frames {
		pkts = append(pkts, gro.Packet{Data: f})
	}
	outs := e.Push(0, pkts...)
	if len(outs) != 1 || outs[0].Segments != len(frames) {
		t.Errorf("%s: %d outputs, want one of %d segments", k.name, len(outs), len(frames))
		return
	}
	segs, err := resegment(&outs[0], false)
	if err != nil {
		t.Errorf("%s: %v", k.name, err)
		return
	}
	for i := range segs {
		if string(segs[i]) != string(frames[i]) {
			t.Errorf("%s: segment %d: %s", k.name, i, diffBytes(segs[i], frames[i]))
			return
		}
	}
}
