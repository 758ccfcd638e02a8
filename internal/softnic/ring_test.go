package softnic_test

import (
	"testing"
	"time"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/unit"
	"github.com/offlab/offlab/vnet"
)

// slow is a wire on which a frame of 1,514 bytes takes 12.3 µs.
var slow = softnic.Wire{Rate: 1e9}

// TestRingHoldsOneLess fills rings of some sizes: one of N holds N−1.
func TestRingHoldsOneLess(t *testing.T) {
	for _, n := range []int{2, 3, 8, 64} {
		m := healthy()
		m.TX = softnic.TX{Ring: n, Stop: 1}
		b := newBench(t, cfg(m, slow))
		for range 2 * n {
			b.send(0, vnet.Header{}, segment(1, numbers(1460)))
		}
		b.steps()
		free, stopped := b.Free(0)
		if free != 0 || !stopped || b.count(0, softnic.TXPending) != uint64(n-1) || b.count(0, softnic.TXStops) != 1 {
			t.Errorf("a ring of %d: %d free, stopped %v, %d pending", n, free, stopped, b.count(0, softnic.TXPending))
		}
		b.advance(13 * time.Microsecond) // one frame leaves, one comes
		if got := b.count(0, softnic.TXPackets); got != uint64(n) {
			t.Errorf("a ring of %d: %d packets taken, want %d", n, got, n)
		}
		b.want(map[softnic.Station]uint64{softnic.TXWakes: 1, softnic.TXStops: 2})
		b.advance(time.Duration(2*n) * 13 * time.Microsecond)
		free, stopped = b.Free(0)
		if free != n-1 || stopped || b.count(1, softnic.RXUp) != uint64(2*n) {
			t.Errorf("a ring of %d, in the end: %d free, stopped %v, %d came", n, free, stopped, b.count(1, softnic.RXUp))
		}
	}
}

// TestStopAndWake checks the thresholds: the queue stops with fewer than Stop
// free, and wakes with Wake free, not before.
func TestStopAndWake(t *testing.T) {
	m := healthy()
	m.TX = softnic.TX{Ring: 16, Stop: 4, Wake: 8}
	b := newBench(t, cfg(m, slow))
	for range 30 {
		b.send(0, vnet.Header{}, segment(1, numbers(1460)))
	}
	b.steps()
	if free, stopped := b.Free(0); free != 3 || !stopped {
		t.Fatalf("%d free, stopped %v, want 3 and true", free, stopped)
	}
	for left := 1; left <= 5; left++ {
		b.advance(12_304 * time.Nanosecond) // (1514+24) bytes at 1 Gbit/s
		free, stopped := b.Free(0)
		wantFree, wantStopped := 3+left, true
		if left == 5 {
			wantFree, wantStopped = 3, true // awake at 8, and full again
		}
		if free != wantFree || stopped != wantStopped {
			t.Errorf("%d frames left: %d free, stopped %v", left, free, stopped)
		}
	}
	b.want(map[softnic.Station]uint64{softnic.TXStops: 2, softnic.TXWakes: 1})
}

// TestDescriptors counts those of a packet, for drivers of three kinds.
func TestDescriptors(t *testing.T) {
	h, f := super(10_000, 1000)
	single := segment(1, numbers(1000))
	for _, tt := range []struct {
		name          string
		tx            softnic.TX
		single, super int
	}{
		{"card-cuts", softnic.TX{PerPacket: 1}, 2, 2},
		{"card-cuts-4k", softnic.TX{PerPacket: 1, PerHeader: 1, PerData: 4096}, 3, 5},
		// fec: a descriptor for the header, one for the data of each segment.
		{"driver-cuts", softnic.TX{SoftwareTSO: true, PerHeader: 1}, 2, 20},
		{"driver-cuts-aligned", softnic.TX{SoftwareTSO: true, PerHeader: 1, Align: 16}, 3, 30},
	} {
		m := healthy()
		m.TX = tt.tx
		m.TX.Ring, m.TX.Stop = 128, 1
		for _, p := range []struct {
			h    vnet.Header
			f    []byte
			want int
		}{{vnet.Header{}, single, tt.single}, {h, f, tt.super}} {
			b := newBench(t, cfg(m, softnic.Wire{Rate: 1}))
			b.send(0, p.h, p.f)
			b.steps()
			if free, _ := b.Free(0); 127-free != p.want {
				t.Errorf("%s: %d bytes take %d descriptors, want %d", tt.name, len(p.f), 127-free, p.want)
			}
		}
	}
}

// TestNoRoom drops a packet that needs more than is free, as fec does.
func TestNoRoom(t *testing.T) {
	m := healthy()
	m.TX = softnic.TX{Ring: 20, Stop: 1, SoftwareTSO: true, PerHeader: 1}
	b := newBench(t, cfg(m, slow))
	h, f := super(10_000, 1000) // 20 descriptors, and 19 are there
	b.send(0, h, f)
	h, f = super(9_000, 1000)
	b.send(0, h, f)
	b.steps()
	b.want(map[softnic.Station]uint64{softnic.TXNoRoom: 1, softnic.TXTaken: 1, softnic.TXFrames: 9})
}

// TestAlignment copies only what lies before the next multiple.
func TestAlignment(t *testing.T) {
	m := healthy()
	m.TX = softnic.TX{Align: 16, SoftwareTSO: true, PerHeader: 1}
	b := newBench(t, cfg(m, softnic.Wire{}))
	h, f := super(4*1448, 1448) // 1448 is 8 more than a multiple of 16
	b.send(0, h, f)
	b.steps()
	b.want(map[softnic.Station]uint64{softnic.TXCopied: 2 * 8})
}

// TestStuck keeps descriptors for good: the queue stops and stays so.
func TestStuck(t *testing.T) {
	stick := softnic.Fault{Name: "stick", Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Super: func(f *softnic.Frame) softnic.Action {
			if f.Number >= 3 {
				return softnic.Stick
			}
			return softnic.Pass
		}}
	}}
	m := healthy()
	m.TX = softnic.TX{Ring: 8, Stop: 4}
	b := newBench(t, cfg(m, softnic.Wire{}, stick))
	for range 20 {
		b.send(0, vnet.Header{}, segment(1, nil))
	}
	b.steps()
	b.advance(10 * time.Microsecond)
	free, stopped := b.Free(0)
	if free != 3 || !stopped {
		t.Errorf("%d free, stopped %v", free, stopped)
	}
	b.want(map[softnic.Station]uint64{softnic.TXPackets: 7, softnic.TXFault: 4, softnic.RXUp: 3, softnic.TXStops: 1, softnic.TXWakes: 0})
}

// TestRate measures the time that frames take on lines and on a bus.
func TestRate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		wire  float64
		bus   float64
		bytes int
		each  time.Duration
	}{
		{"1G", 1e9, 0, 1514, 12_304 * time.Nanosecond},
		{"1G-short", 1e9, 0, 54, 672 * time.Nanosecond},
		{"100M", 1e8, 0, 1514, 123_040 * time.Nanosecond},
		{"bus", 0, 5e8, 1514, 24_224 * time.Nanosecond},
		{"bus-and-wire", 1e9, 5e8, 1514, 24_224 * time.Nanosecond},
	} {
		m := healthy()
		m.TX.Bus = unit.Rate(tt.bus)
		c := cfg(m, softnic.Wire{Rate: unit.Rate(tt.wire)})
		var times []time.Duration
		c.Tap = func(f softnic.Tapped) { times = append(times, f.Time) }
		b := newBench(t, c)
		for range 5 {
			b.send(0, vnet.Header{}, segment(1, numbers(tt.bytes-54)))
		}
		b.advance(6*tt.each + 2*time.Microsecond)
		for i := 1; i < len(times); i++ {
			if d := times[i] - times[i-1]; d < tt.each-2 || d > tt.each+2 {
				t.Errorf("%s: frame %d comes %v behind the one before, want %v", tt.name, i, d, tt.each)
			}
		}
		if len(times) != 5 {
			t.Errorf("%s: %d frames", tt.name, len(times))
		}
	}
}
