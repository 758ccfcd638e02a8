package softnic_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// order sends n numbered frames over a wire, and returns the numbers that
// came.
func order(t *testing.T, n int, c softnic.Config) (*bench, []int) {
	t.Helper()
	b := newBench(t, c)
	for i := range n {
		b.send(0, vnet.Header{}, segment(uint32(i), numbers(100)))
		if i%50 == 49 {
			b.steps()
		}
	}
	b.steps()
	b.advance(2 * time.Millisecond) // what is to be overtaken is not forever
	var got []int
	_, frames := b.got(1)
	for _, f := range frames {
		got = append(got, int(binary.BigEndian.Uint32(f[38:])))
	}
	return b, got
}

// TestWireIsDeterministic runs a bad wire twice with one seed, and with another.
func TestWireIsDeterministic(t *testing.T) {
	w := softnic.Wire{Loss: 0.05, Dup: 0.05, Reorder: 0.05, Corrupt: 0.05}
	c := cfg(healthy(), w)
	b, first := order(t, 2000, c)
	_, second := order(t, 2000, c)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same seed gives something else:\n%s", diff)
	}
	c.Seed++
	if _, other := order(t, 2000, c); slices.Equal(first, other) {
		t.Error("another seed gives the same")
	}
	for _, s := range []softnic.Station{softnic.WireLost, softnic.WireExtra, softnic.WireReorder, softnic.WireCorrupt} {
		// 2000 draws with 5 %: 100, and 5 standard deviations of 9.7.
		if n := b.count(0, s); n < 50 || n > 150 {
			t.Errorf("%v = %d, want about 100", s, n)
		}
	}
	c.Seed--
	c.Wire.Corrupt = 0 // draws nothing, and so does not change the others
	b2, _ := order(t, 2000, c)
	if b2.count(0, softnic.WireCorrupt) != 0 {
		t.Error("corrupted without being told to")
	}
}

// TestWireProperties takes one at a time.
func TestWireProperties(t *testing.T) {
	all := make([]int, 200)
	for i := range all {
		all[i] = i
	}
	t.Run("perfect", func(t *testing.T) {
		if _, got := order(t, 200, cfg(healthy(), softnic.Wire{})); !slices.Equal(got, all) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("loss", func(t *testing.T) {
		b, got := order(t, 200, cfg(healthy(), softnic.Wire{Loss: 0.3}))
		if !slices.IsSorted(got) || uint64(len(got)) != 200-b.count(0, softnic.WireLost) {
			t.Errorf("%d came", len(got))
		}
	})
	t.Run("loss-of-all", func(t *testing.T) {
		if _, got := order(t, 200, cfg(healthy(), softnic.Wire{Loss: 1})); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("dup", func(t *testing.T) {
		b, got := order(t, 200, cfg(healthy(), softnic.Wire{Dup: 0.3}))
		if !slices.IsSorted(got) || uint64(len(got)) != 200+b.count(0, softnic.WireExtra) || !slices.Equal(slices.Compact(got), all) {
			t.Errorf("got %v", got)
		}
	})
	t.Run("reorder", func(t *testing.T) {
		b, got := order(t, 200, cfg(healthy(), softnic.Wire{Reorder: 0.3}))
		swaps := uint64(0)
		for i := range len(got) - 1 {
			if got[i] > got[i+1] {
				swaps++
			}
		}
		if n := b.count(0, softnic.WireReorder); swaps < n-1 || swaps > n || n == 0 {
			t.Errorf("%d swaps, %d counted", swaps, n)
		}
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Errorf("sorted %v", got)
		}
	})
	t.Run("corrupt", func(t *testing.T) {
		b := newBench(t, cfg(healthy(), softnic.Wire{Corrupt: 1}))
		f := segment(1, numbers(1000))
		b.send(0, vnet.Header{}, f)
		b.steps()
		_, frames := b.got(1)
		bits := 0
		for i := range f {
			for d := f[i] ^ frames[0][i]; d != 0; d &= d - 1 {
				bits++
			}
		}
		if bits != 1 || !bytes.Equal(f[:14], frames[0][:14]) {
			t.Errorf("%d bits differ", bits)
		}
		b.want(map[softnic.Station]uint64{softnic.WireCorrupt: 1, softnic.RXGood: 0})
	})
	t.Run("delay", func(t *testing.T) {
		b := newBench(t, cfg(healthy(), softnic.Wire{Delay: 100 * time.Microsecond}))
		b.send(0, vnet.Header{}, segment(1, nil))
		b.steps()
		b.advance(99 * time.Microsecond)
		b.want(map[softnic.Station]uint64{softnic.WireFlight: 1, softnic.RXUp: 0})
		b.advance(time.Microsecond)
		b.want(map[softnic.Station]uint64{softnic.WireFlight: 0, softnic.RXUp: 1})
	})
	t.Run("mtu", func(t *testing.T) {
		b := newBench(t, cfg(healthy(), softnic.Wire{MTU: 1000}))
		b.send(0, vnet.Header{}, segment(1, numbers(960), 5)) // 1000 bytes of IP, behind a tag
		b.send(0, vnet.Header{}, segment(1, numbers(961)))
		b.steps()
		b.want(map[softnic.Station]uint64{softnic.WireTooLong: 1, softnic.RXUp: 1})
	})
}

// TestHooks shows each station its frames, in their context, and what each
// action does there.
func TestHooks(t *testing.T) {
	type sight struct {
		Place         string
		Index, Count  int
		Tagged        bool
		First, Last   bool
		Valid, Partly bool
	}
	var seen []sight
	see := func(place string) func(*softnic.Frame) softnic.Action {
		return func(f *softnic.Frame) softnic.Action {
			if f.TCP() == nil || f.UDP() != nil || f.Tunnel() != packet.NoTunnel || f.Forwarded() {
				t.Errorf("%s: a TCP frame is something else", place)
			}
			seen = append(seen, sight{place, f.Index, f.Count, f.Tagged(), f.First(), f.Last(), f.Valid, f.Partial()})
			return softnic.Pass
		}
	}
	watch := softnic.Fault{Name: "watch", Hooks: func(e softnic.Env) softnic.Hooks {
		if e.Port == 0 {
			return softnic.Hooks{Super: see("super"), Segment: see("segment"), Wire: see("wire")}
		}
		return softnic.Hooks{Receive: see("receive")}
	}}
	b := newBench(t, cfg(healthy(), softnic.Wire{}, watch))
	h, f := super(2000, 1000, 5)
	b.send(0, h, f)
	b.steps()
	want := []sight{
		{Place: "super", Count: 1, Tagged: true, First: true, Last: true, Partly: true},
		{Place: "segment", Count: 2, Tagged: true, First: true, Partly: true},
		{Place: "wire", Count: 2, Tagged: true, First: true, Partly: true},
		{Place: "segment", Index: 1, Count: 2, Tagged: true, Last: true, Partly: true},
		{Place: "wire", Index: 1, Count: 2, Tagged: true, Last: true, Partly: true},
		{Place: "receive", Count: 2, Tagged: true, First: true, Valid: true, Partly: true},
		{Place: "receive", Index: 1, Count: 2, Tagged: true, Last: true, Valid: true, Partly: true},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("seen differs:\n%s", diff)
	}
}

// TestActions does each action at each station, to the second frame of four.
func TestActions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		place string
		a     softnic.Action
		want  []int
		at    softnic.Station
	}{
		{"super-drop", "super", softnic.Drop, nil, softnic.TXFault},
		{"super-twice", "super", softnic.Twice, []int{0, 1, 2, 3, 0, 1, 2, 3}, softnic.TXAgain},
		{"super-stick", "super", softnic.Stick, nil, softnic.TXFault},
		{"segment-drop", "segment", softnic.Drop, []int{0, 2, 3}, softnic.TXLost},
		{"segment-twice", "segment", softnic.Twice, []int{0, 1, 1, 2, 3}, softnic.TXExtra},
		{"segment-later", "segment", softnic.Later, []int{0, 2, 1, 3}, softnic.TXFrames},
		{"segment-stick", "segment", softnic.Stick, []int{0, 2, 3}, softnic.TXStuck},
		{"wire-drop", "wire", softnic.Drop, []int{0, 2, 3}, softnic.WireFault},
		{"wire-twice", "wire", softnic.Twice, []int{0, 1, 1, 2, 3}, softnic.WireExtra},
		{"receive-drop", "receive", softnic.Drop, []int{0, 2, 3}, softnic.RXFault},
		{"receive-twice", "receive", softnic.Twice, []int{0, 1, 1, 2, 3}, softnic.RXExtra},
	} {
		t.Run(tt.name, func(t *testing.T) {
			do := func(f *softnic.Frame) softnic.Action {
				if f.Index == 1 || tt.place == "super" {
					return tt.a
				}
				return softnic.Pass
			}
			fault := softnic.Fault{Name: "f", Hooks: func(softnic.Env) softnic.Hooks {
				switch tt.place {
				case "super":
					return softnic.Hooks{Super: do}
				case "segment":
					return softnic.Hooks{Segment: do}
				case "wire":
					return softnic.Hooks{Wire: do}
				}
				return softnic.Hooks{Receive: do}
			}}
			b := newBench(t, cfg(healthy(), softnic.Wire{}, fault))
			h, f := super(4000, 1000)
			b.send(0, h, f)
			b.steps()
			var got []int
			_, frames := b.got(1)
			for _, f := range frames {
				got = append(got, int(binary.BigEndian.Uint32(f[38:])-1000)/1000)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("order differs:\n%s", diff)
			}
			if b.Counts(0)[tt.at]+b.Counts(1)[tt.at] == 0 {
				t.Errorf("%v was not counted", tt.at)
			}
		})
	}
	t.Run("edit", func(t *testing.T) {
		edit := softnic.Fault{Name: "edit", Hooks: func(softnic.Env) softnic.Hooks {
			return softnic.Hooks{Segment: func(f *softnic.Frame) softnic.Action {
				f.Data = append(f.Data, "trailer"...) // within the capacity
				f.TCP().SetWindow(7)
				f.Finish()
				return softnic.Pass
			}}
		}}
		b := newBench(t, cfg(healthy(), softnic.Wire{}, edit))
		h, f := super(4000, 1000)
		b.send(0, h, f)
		b.steps()
		_, frames := b.got(1)
		if !bytes.Equal(payload(t, frames), numbers(4000)) || !bytes.HasSuffix(frames[0], []byte("trailer")) {
			t.Error("payload or trailer is wrong")
		}
		b.want(map[softnic.Station]uint64{softnic.RXGood: 4})
	})
}
