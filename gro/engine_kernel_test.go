//go:build linux

package gro_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/kernelref"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// exactN is how many bursts a kernel test compares.
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

// kernelOptions are those of a TAP without a receive hash, one list of eight,
// with the rules of the running kernel.
func kernelOptions(tb testing.TB) gro.Options {
	tb.Helper()
	return gro.Options{MaxFlows: 8, UDP: true, NoVLAN: true, VXLANPort: packet.PortVXLAN, Semantics: runningSemantics(tb)}
}

// runningSemantics is the variant that the running kernel should have. Between
// the releases that were compared, 6.12, 6.16 to 6.18 and 7.2, it is a guess
// that the test checks.
func runningSemantics(tb testing.TB) gro.Semantics {
	tb.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		tb.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(b), "%d.%d", &major, &minor); err != nil {
		tb.Fatalf("kernel release %q: %v", b, err)
	}
	switch v := major*1000 + minor; {
	case v < 6012:
		tb.Fatalf("kernel %s: the rules before 6.12 are not modelled", b)
		return 0
	case v < 6016:
		return gro.Linux612
	case v < 6018:
		return gro.Linux616
	case v < 7000:
		return gro.Linux618
	}
	return gro.Linux72
}

// TestKernelGROPlain compares the engine with the running kernel, frame by
// frame and in order: TCP and UDP over IPv4 and IPv6.
func TestKernelGROPlain(t *testing.T) {
	testKernelGRO(t, exactN(t, 1000), []tunnelKind{plain})
}

// TestKernelGROTunnels does it in tunnels. A packet socket shows the whole
// aggregate, although virtio_net_hdr says nothing of the tunnel.
func TestKernelGROTunnels(t *testing.T) {
	testKernelGRO(t, exactN(t, 1000), kernelKinds)
}

func testKernelGRO(t *testing.T, n int, kinds []tunnelKind) {
	t.Helper()
	need.Root(t)
	need.TUN(t)
	need.NetNS(t)
	need.Tool(t, "ip")
	need.Tool(t, "ethtool")
	seed := rand.Uint64()
	t.Logf("seed %d, %d bursts", seed, n)
	if s := os.Getenv("OFFLAB_SEED"); s != "" { //nolint:forbidigo // to repeat a run
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	kernelref.WithThread(t, func() error {
		c, err := kernelref.NewCoalescer()
		if c != nil {
			defer c.Close()
		}
		if err != nil {
			return err
		}
		return compareBursts(t, c, n, seed, kinds)
	})
}

func compareBursts(t *testing.T, c *kernelref.Coalescer, n int, seed uint64, kinds []tunnelKind) error {
	t.Helper()
	copying, err := gro.New(kernelOptions(t))
	if err != nil {
		return err
	}
	gather := kernelOptions(t)
	gather.Gather = true
	gathering, err := gro.New(gather)
	if err != nil {
		return err
	}
	var packets, outputs, aggregates, bad int
	for i := range n {
		if i%500 == 499 {
			runtime.GC()
		}
		frames := burst(rand.New(rand.NewPCG(seed, uint64(i))), kernelref.MaxBurst, kinds)
		kernel, diff := twice(t, c, frames, frameSegments, func(k []kernelref.Frame) string {
			if d := compare(copying, frames, k); d != "" {
				return d
			}
			return compare(gathering, frames, k)
		})
		if diff != "" {
			t.Errorf("burst %d of %d frames, seed %d: %s", i, len(frames), seed, diff)
			if bad++; bad == 5 {
				break
			}
		}
		packets += len(frames)
		outputs += len(kernel)
		for _, f := range kernel {
			if f.Header.GSOType != vnet.GSONone {
				aggregates++
			}
		}
	}
	t.Logf("%d bursts, %d packets, %d outputs, %d aggregates; %d mismatches", n, packets, outputs, aggregates, bad)
	return nil
}

// twice sends the burst through the kernel and returns what check says of the
// result. A burst that differs runs once more, and the log tells so: on a busy
// machine the kernel sometimes runs in the middle of a burst, which is then two
// polls (once in 360 000 bursts on an idle one).
func twice(t *testing.T, c *kernelref.Coalescer, frames [][]byte, segs func(kernelref.Frame) int, check func([]kernelref.Frame) string) (kernel []kernelref.Frame, diff string) {
	t.Helper()
	for try := range 2 {
		var err error
		if kernel, err = c.Burst(frames, segs); err != nil {
			diff = err.Error()
		} else {
			diff = check(kernel)
		}
		if diff == "" {
			break
		}
		t.Logf("try %d of a burst of %d frames differs: %s", try+1, len(frames), diff)
	}
	return kernel, diff
}

// frameSegments counts the frames of the burst in an output of the kernel.
func frameSegments(f kernelref.Frame) int {
	h := f.Header
	if h.GSOType == vnet.GSONone || h.GSOSize == 0 {
		return 1
	}
	at := int(h.CsumStart) + 8
	if h.GSOType.Base() != vnet.GSOUDPL4 {
		at = int(h.CsumStart) + int(f.Data[h.CsumStart+12]>>4)*4
	}
	return (len(f.Data) - at + int(h.GSOSize) - 1) / int(h.GSOSize)
}

// compare pushes the burst through the engine and returns the first difference
// to what the kernel made of it.
func compare(e *gro.Engine, frames [][]byte, kernel []kernelref.Frame) string {
	want := make([]result, len(kernel))
	for i, f := range kernel {
		want[i] = result{Data: f.Data, Header: f.Header, Segments: frameSegments(f)}
		want[i].Header.HdrLen = 0 // the length of the first buffer: a hint
	}
	return diffResults(runBurst(e, frames), want)
}
