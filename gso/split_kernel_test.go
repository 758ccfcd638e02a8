//go:build linux

package gso_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/kernelref"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// exactN is how many super-packets a kernel test compares.
func exactN(t *testing.T, n int) int {
	t.Helper()
	s := os.Getenv("OFFLAB_EXACT_N") //nolint:forbidigo // the size of a test, set by make exact
	if s == "" {
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("OFFLAB_EXACT_N: %v", err)
	}
	return n
}

// seed returns a new seed, or the one of a run to be repeated.
func seed(t *testing.T) uint64 {
	t.Helper()
	v := rand.Uint64()
	if s := os.Getenv("OFFLAB_SEED"); s != "" { //nolint:forbidigo // to repeat a run
		var err error
		if v, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func withKernel(t *testing.T, open func() (*kernelref.Segmenter, error), f func(k *kernelref.Segmenter) error) {
	t.Helper()
	need.Root(t)
	need.TUN(t)
	need.NetNS(t)
	need.Tool(t, "ip")
	need.Tool(t, "tc")
	kernelref.WithThread(t, func() error {
		k, err := open()
		if k != nil {
			defer k.Close()
		}
		if err != nil {
			return err
		}
		return f(k)
	})
}

// compareKernel gives n super-packets to the kernel, to Split, to Scatter and
// to the reference of the other tests.
func compareKernel(t *testing.T, k *kernelref.Segmenter, n int, next func(r *rand.Rand) *super) error {
	t.Helper()
	seed := seed(t)
	var segments, bad int
	for i := range n {
		if i%200 == 199 {
			runtime.GC()
		}
		p := next(rand.New(rand.NewPCG(seed, uint64(i))))
		pkt, h, o := p.packet()
		want, err := k.Segment(pkt, h)
		if err != nil || len(want) == 0 {
			return fmt.Errorf("case %d (seed %d): the kernel refused or dropped it: %w\n%s", i, seed, err, describe(p))
		}
		segments += len(want)
		got, err := split(pkt, h, o)
		d := diff(got, want)
		if d == "" && err == nil {
			got, err = scatter(pkt, h, o)
			d = diff(got, want)
		}
		if d == "" && err == nil {
			d = diff(p.segments(), want)
		}
		if d == "" && err == nil {
			continue
		}
		if bad++; bad < 5 {
			t.Errorf("case %d (seed %d): %v %s\n%s", i, seed, err, d, describe(p))
		}
	}
	t.Logf("seed %d: %d super-packets, %d segments, %d mismatches", seed, n, segments, bad)
	return nil
}

// TestKernelGSO compares random super-packets without tunnel: TCP and UDP over
// IPv4 and IPv6, tags, options, extension headers, every flag.
func TestKernelGSO(t *testing.T) {
	withKernel(t, kernelref.NewSegmenter, func(k *kernelref.Segmenter) error {
		return compareKernel(t, k, exactN(t, 1000), func(r *rand.Rand) *super {
			p := gen(r, limits{maxSegs: 1500, maxLen: 65535})
			p.accECN, p.fixed = false, false
			if len(p.tags) > 0 {
				p.noCsum = false // the kernel refuses what it cannot dissect
			}
			return p
		})
	})
}

// TestKernelGSOTunnels compares TCP and UDP in VXLAN and Geneve, IPv4 and IPv6
// inside and outside, with and without outer checksum.
func TestKernelGSOTunnels(t *testing.T) {
	withKernel(t, kernelref.NewTunnelSegmenter, func(k *kernelref.Segmenter) error {
		return compareKernel(t, k, exactN(t, 1000), func(r *rand.Rand) *super {
			p := gen(r, limits{tunnels: true, maxSegs: 200, maxLen: 60000})
			p.tunnel = []packet.Tunnel{packet.VXLAN, packet.Geneve}[r.IntN(2)]
			p.noEth, p.accECN, p.fixed, p.fixedIn, p.plain, p.noCsum = false, false, false, false, false, false
			p.tags = nil
			return p
		})
	})
}

// TestKernelGSOGarbageChecksum has random bytes in the checksum field, which
// the kernel carries on into each segment.
func TestKernelGSOGarbageChecksum(t *testing.T) {
	withKernel(t, kernelref.NewSegmenter, func(k *kernelref.Segmenter) error {
		s := seed(t)
		for i := range 300 {
			r := rand.New(rand.NewPCG(s, uint64(i)))
			p := gen(r, limits{maxSegs: 20, maxLen: 65535})
			pkt, h, o := p.packet()
			if p.noCsum {
				continue
			}
			at := h.CsumStart + h.CsumOffset
			pkt[at], pkt[at+1] = byte(r.Uint32()), byte(r.Uint32())
			switch i {
			case 0:
				pkt[at], pkt[at+1] = 0, 0
			case 1:
				pkt[at], pkt[at+1] = 0xff, 0xff
			}
			want, err := k.Segment(pkt, h)
			if err != nil {
				return err
			}
			got, err := split(pkt, h, o)
			if d := diff(got, want); d != "" || err != nil {
				return fmt.Errorf("case %d (seed %d): %w %s\n%s", i, s, err, d, describe(p))
			}
		}
		return nil
	})
}

// TestKernelGSOSingle has no more payload than one segment takes: the kernel
// completes the checksum, with 0 written as 0xffff even for TCP, and touches
// nothing else.
func TestKernelGSOSingle(t *testing.T) {
	withKernel(t, kernelref.NewSegmenter, func(k *kernelref.Segmenter) error {
		s, lost := seed(t), 0
		for i := range 600 {
			r := rand.New(rand.NewPCG(s, uint64(i)))
			p := gen(r, limits{maxSegs: 3, maxLen: 65535})
			p.payload = p.payload[:1+r.IntN(p.size)]
			if len(p.tags) > 0 {
				p.noCsum = false
			}
			pkt, h, o := p.packet()
			if i%3 == 0 {
				h.GSOType, h.GSOSize = vnet.GSONone, 0
			}
			if i%4 == 0 && !p.noCsum && len(p.payload) >= 2 {
				sumToZero(pkt, int(h.CsumStart))
			}
			want, err := k.Segment(pkt, h)
			if err != nil {
				return fmt.Errorf("case %d (seed %d): %w", i, s, err)
			}
			got, err := split(pkt, h, o)
			if len(want) == 0 && err == nil && !p.udp && len(p.payload)+len(p.tcp.Options) > p.size {
				// Linux compares the segment size with the payload behind a
				// TCP header of 20 bytes, and drops what is not more behind
				// the real one. Here it is not lost.
				lost++
				continue
			}
			if d := diff(got, want); d != "" || err != nil {
				return fmt.Errorf("case %d (seed %d): %w %s %+v\n%s", i, s, err, d, h, describe(p))
			}
			got, err = scatter(pkt, h, o)
			if d := diff(got, want); d != "" || err != nil {
				return fmt.Errorf("case %d (seed %d): Scatter: %w %s\n%s", i, s, err, d, describe(p))
			}
		}
		t.Logf("seed %d: the kernel lost %d", s, lost)
		return nil
	})
}

// TestKernelGSOFragments compares legacy UFO: one datagram becomes IP fragments.
func TestKernelGSOFragments(t *testing.T) {
	withKernel(t, kernelref.NewSegmenter, func(k *kernelref.Segmenter) error {
		s := seed(t)
		for i := range 300 {
			r := rand.New(rand.NewPCG(s, uint64(i)))
			p := gen(r, limits{maxSegs: 20, maxLen: 65535})
			p.udp, p.v6, p.noCsum, p.ecnBit = true, false, false, false
			p.size = 8 * (1 + r.IntN(180))
			p.payload = random(r, 1+r.IntN(min(64000, 100*p.size)))
			pkt, h, o := p.packet()
			h.GSOType = vnet.GSOUDP
			want, err := k.Segment(pkt, h)
			if err != nil {
				return fmt.Errorf("case %d (seed %d): %w\n%s", i, s, err, describe(p))
			}
			for name, cut := range map[string]func([]byte, vnet.Header, gso.Options) ([][]byte, error){"Split": split, "Scatter": scatter} {
				got, err := cut(pkt, h, o)
				if d := diff(got, want); d != "" || err != nil {
					return fmt.Errorf("case %d (seed %d): %s: %w %s\n%s", i, s, name, err, d, describe(p))
				}
			}
		}
		return nil
	})
}

// sumToZero sets two bytes of payload so that the checksum from offset start
// on comes out as 0.
func sumToZero(pkt []byte, start int) {
	at := len(pkt) - 2
	if (at-start)%2 != 0 {
		at--
	}
	pkt[at], pkt[at+1] = 0, 0
	c := ^pkttest.Sum(pkt[start:], 0)
	pkt[at], pkt[at+1] = byte(c>>8), byte(c)
}

// TestKernelGSOEdges gives odd requests to the kernel and to Split: either both
// make the same frames, or the kernel refuses or drops and Split has an error
// that says so.
func TestKernelGSOEdges(t *testing.T) {
	withKernel(t, kernelref.NewSegmenter, func(k *kernelref.Segmenter) error {
		for _, tt := range edges {
			pkt, h := tt.build()
			want, kerr := k.Segment(pkt, h)
			if errors.Is(kerr, kernelref.ErrRefused) != (tt.result == refused) || (kerr == nil && len(want) == 0) != (tt.result == dropped) {
				t.Errorf("%s: the kernel says %d frames, %v; the table %v", tt.name, len(want), kerr, tt.result)
				continue
			}
			got, err := split(pkt, h, gso.Options{})
			switch {
			case tt.result != cut:
				if !errors.Is(err, tt.err) {
					t.Errorf("%s: Split: %v, want %v", tt.name, err, tt.err)
				}
			case err != nil:
				t.Errorf("%s: Split: %v, the kernel made %d frames", tt.name, err, len(want))
			default:
				if d := diff(got, want); d != "" {
					t.Errorf("%s: %s", tt.name, d)
				}
			}
		}
		return nil
	})
}

// TestKernelGSOTunnelSingle has no more payload than one segment takes, in a
// UDP tunnel. There the kernel completes the inner checksum and leaves the
// outer one unfinished; Split finishes both.
func TestKernelGSOTunnelSingle(t *testing.T) {
	withKernel(t, kernelref.NewTunnelSegmenter, func(k *kernelref.Segmenter) error {
		s := seed(t)
		for i := range 400 {
			r := rand.New(rand.NewPCG(s, uint64(i)))
			p := gen(r, limits{tunnels: true, maxSegs: 3, maxLen: 60000})
			p.tunnel, p.noEth, p.plain, p.noCsum, p.tags = packet.VXLAN, false, false, false, nil
			p.payload = p.payload[:1+r.IntN(p.size)]
			pkt, h, o := p.packet()
			want, err := k.Segment(pkt, h)
			if err != nil {
				return fmt.Errorf("case %d (seed %d): %w", i, s, err)
			}
			got, err := split(pkt, h, o)
			if len(want) == 0 && err == nil && len(p.payload)+len(p.tcp.Options) > p.size {
				continue // as in TestKernelGSOSingle
			}
			if at := h.OuterTransport; p.csum && err == nil {
				ip := 14
				if sum := pkttest.Sum(got[0][at:], uint32(pkttest.Pseudo(got[0][ip:], 17, len(got[0])-int(at)))); sum != 0xffff {
					t.Errorf("case %d (seed %d): outer checksum is wrong: sum %#04x", i, s, sum)
				}
				copy(want[0][at+6:], got[0][at+6:at+8])
			}
			if d := diff(got, want); d != "" || err != nil {
				return fmt.Errorf("case %d (seed %d): %w %s\n%s", i, s, err, d, describe(p))
			}
		}
		return nil
	})
}

// TestKernelGSORoundTrip covers the tunnels that no virtio header describes,
// GRE and IP in IP of every kind: the segments that Split makes go through the
// kernel's GRO, which joins them, and its GSO, which has to make the same
// segments again. (GRE with checksum and fixed IDs come back wrong from the
// kernel; TestKernelGROFaults of package gro lists that.)
func TestKernelGSORoundTrip(t *testing.T) {
	for _, tool := range []string{"ip", "tc", "ethtool", "sysctl"} {
		need.Tool(t, tool)
	}
	need.Root(t)
	need.TUN(t)
	need.NetNS(t)
	n := exactN(t, 2000) / 10
	kernelref.WithThread(t, func() error {
		c, err := kernelref.NewForwarder(false)
		if c != nil {
			defer c.Close()
		}
		if err != nil {
			return err
		}
		s, again := seed(t), 0
		for i := range n {
			if i%100 == 99 {
				runtime.GC()
			}
			p := genMergeable(rand.New(rand.NewPCG(s, uint64(i))))
			pkt, h, o := p.packet()
			frames, err := split(pkt, h, o)
			if d := diff(frames, p.segments()); d != "" || err != nil {
				return fmt.Errorf("case %d (seed %d): %w %s", i, s, err, d)
			}
			d, err := roundTrip(c, frames)
			if d != "" && err == nil { // a burst in very many is split; see package gro
				again++
				d, err = roundTrip(c, frames)
			}
			if d != "" || err != nil {
				return fmt.Errorf("case %d (seed %d): %w %s\n%s", i, s, err, d, describe(p))
			}
		}
		t.Logf("seed %d: %d super-packets, %d run again", s, n, again)
		return nil
	})
}

func roundTrip(c *kernelref.Coalescer, frames [][]byte) (string, error) {
	out, err := c.Burst(frames, func(kernelref.Frame) int { return 1 })
	var got [][]byte
	for _, f := range out {
		got = append(got, f.Data)
	}
	return diff(got, frames), err
}

// genMergeable makes a super-packet in GRE or IP in IP whose segments GRO
// joins.
func genMergeable(r *rand.Rand) *super {
	p := gen(r, limits{tunnels: true, maxSegs: 50, maxLen: 60000})
	p.tunnel = []packet.Tunnel{packet.GRE, packet.IPInIP}[r.IntN(2)]
	p.noEth, p.csum, p.fixed, p.fixedIn, p.accECN, p.tags = false, false, false, false, false, nil
	p.udp, p.ecnBit, p.noCsum, p.ext = false, false, false, 0
	p.ip4.Options, p.ip4.Reserved = nil, false
	p.tcp.Flags = packet.ACK | p.tcp.Flags&packet.PSH
	p.tcp.Reserved = 0
	return p
}
