package softnic_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/testutil/need"
)

// soakTime is how long TestKernelSoak lasts: a moment, or OFFLAB_SOAK.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("OFFLAB_SOAK") //nolint:forbidigo // the length of a test, set by make soak
	if s == "" {
		return 2 * time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("OFFLAB_SOAK: %v", err)
	}
	return d
}

// maxGrowth is what the heap may differ by between two looks at it, in bytes:
// the load's own buffers and samples are in it.
const maxGrowth = 4 << 20

// TestKernelSoak carries traffic over a wire that does everything to frames,
// and looks again and again: the counters balance, the heap stays as it is, and
// no frame buffer is made any more.
func TestKernelSoak(t *testing.T) {
	need.Long(t)
	total := soakTime(t)
	c := cfg(generic(true), softnic.Wire{
		Rate: 10e9, Delay: 50 * time.Microsecond, Loss: 1e-5, Dup: 1e-4, Reorder: 1e-4, Corrupt: 1e-5,
	})
	var w wireCheck
	c.Tap = w.tap
	r := newRig(t, c, softnic.TapOptions{NAPI: softnic.NAPIInline, Queues: 2})
	start := time.Now()
	var first, last uint64
	frames, rounds := 0, 0
	for time.Since(start) < total || rounds < 2 {
		r.transfer(4, 32<<20)
		r.transfer(6, 32<<20)
		if err := r.nic.Balance(); err != nil {
			t.Fatalf("after %v: %v: %v", time.Since(start), err, r.counters())
		}
		last = heap()
		if rounds++; rounds == 1 || time.Since(start) < total/5 { // still warming up
			first, frames = last, r.nic.Frames()
		}
	}
	made := r.nic.Frames()
	r.stop()
	if err := r.nic.Balance(); err != nil {
		t.Errorf("%v: %v", err, r.counters())
	}
	if last > first+maxGrowth {
		t.Errorf("the heap grew from %d to %d bytes", first, last)
	}
	// Two queues in two directions, each with two rings, and what 10 Gbit/s
	// bring in 50 µs; a lane that comes late finds more on its wire.
	if bound := 4 * (2*softnic.DefaultRing + 10*45); made > bound {
		t.Errorf("%d frame buffers after the first fifth, %d in the end, at most %d can be in use", frames, made, bound)
	}
	sent, got := r.nic.Counts(0), r.nic.Counts(1)
	if w.bad > 0 || sent[softnic.TXGarbage]+got[softnic.RXRefused] > 0 {
		t.Errorf("%d bad frames on the wire, first %s: %v", w.bad, w.first, r.counters())
	}
	t.Logf("%d rounds in %v: %d bytes sent in %d frames, %d lost, %d received, %d handed up in %d packets; heap %d to %d bytes, %d frame buffers, then %d",
		rounds, time.Since(start).Round(time.Millisecond), sent[softnic.TXBytes], sent[softnic.WireFrames], sent[softnic.WireLost],
		got[softnic.RXFrames], got[softnic.RXUp], got[softnic.RXPackets], first, last, frames, made)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
