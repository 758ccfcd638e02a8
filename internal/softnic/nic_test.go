package softnic_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

func hardware(int) gro.Options { return gro.Options{Policy: gro.Hardware} }

// TestSingle carries packets that need no cutting: with a checksum, with one
// to be completed, without any, and too short for Ethernet.
func TestSingle(t *testing.T) {
	partial := pkttest.Build(pkttest.Eth{}, pkttest.IP4{}, pkttest.TCP{Partial: true}, pkttest.Payload("partial"))
	partialHeader := vnet.Header{Flags: vnet.NeedsCsum, CsumStart: 34, CsumOffset: 16}
	bad := segment(1, []byte("spoilt"))
	bad[len(bad)-1] ^= 1
	arp := append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6}, make([]byte, 28)...)
	for _, tt := range []struct {
		name   string
		h      vnet.Header
		frame  []byte
		valid  bool
		finds  softnic.Station
		length int
	}{
		{"good", vnet.Header{}, segment(1, numbers(100)), true, softnic.RXGood, 154},
		{"partial", partialHeader, partial, true, softnic.RXGood, 61},
		{"bad", vnet.Header{}, bad, false, softnic.RXBad, 60},
		{"padded", vnet.Header{}, segment(1, nil), true, softnic.RXGood, 60},
		{"arp", vnet.Header{}, arp, false, softnic.RXUnknown, 60},
		{"tagged", vnet.Header{}, segment(1, numbers(100), 5, 6), true, softnic.RXGood, 162},
	} {
		for _, merge := range []bool{false, true} {
			m := healthy()
			if merge {
				m.RX.Merge = hardware
			}
			b := newBench(t, cfg(m, softnic.Wire{}))
			b.send(0, tt.h, tt.frame)
			b.steps()
			headers, frames := b.got(1)
			if len(frames) != 1 || len(frames[0]) != tt.length || headers[0].Flags&vnet.NeedsCsum != 0 {
				t.Fatalf("%s: got %d frames, headers %+v", tt.name, len(frames), headers)
			}
			if got := headers[0].Flags&vnet.DataValid != 0; got != tt.valid {
				t.Errorf("%s: valid is %v", tt.name, got)
			}
			if tt.valid {
				payload(t, frames)
			}
			b.want(map[softnic.Station]uint64{
				softnic.TXPackets: 1, softnic.TXTaken: 1, softnic.TXFrames: 1, softnic.WireFrames: 1,
				softnic.RXFrames: 1, tt.finds: 1, softnic.RXInterrupt: 1, softnic.RXPackets: 1, softnic.RXUp: 1,
			})
			if _, back := b.got(0); len(back) != 0 {
				t.Errorf("%s: came back", tt.name)
			}
		}
	}
}

// TestSuper cuts a super-packet, and merges it on the other side or not.
func TestSuper(t *testing.T) {
	const size, mss = 50_000, 1448
	for _, tt := range []struct {
		name   string
		merge  func(int) gro.Options
		frames int
		h      vnet.Header
	}{
		{"none", nil, 35, vnet.Header{Flags: vnet.DataValid}},
		{"hardware", hardware, 1, vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv4, GSOSize: mss, HdrLen: 54, CsumStart: 34, CsumOffset: 16}},
		{"lro", func(int) gro.Options { return gro.Options{Policy: gro.LRO} }, 1, vnet.Header{Flags: vnet.DataValid}},
		{"lro-held", func(int) gro.Options { return gro.Options{Policy: gro.LRO, Hold: time.Millisecond} }, 1, vnet.Header{Flags: vnet.DataValid}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := healthy()
			m.RX.Merge = tt.merge
			var tapped [][]byte
			c := cfg(m, softnic.Wire{})
			c.Tap = func(f softnic.Tapped) { tapped = append(tapped, bytes.Clone(f.Data)) }
			b := newBench(t, c)
			h, f := super(size, mss)
			b.send(0, h, f)
			b.steps()
			b.advance(2 * time.Millisecond) // for what is held
			headers, frames := b.got(1)
			if len(frames) != tt.frames {
				t.Fatalf("got %d frames, want %d", len(frames), tt.frames)
			}
			if diff := cmp.Diff(tt.h, headers[0]); diff != "" {
				t.Errorf("header differs:\n%s", diff)
			}
			if tt.merge == nil || tt.name != "hardware" {
				if !bytes.Equal(payload(t, frames), numbers(size)) {
					t.Error("payload differs")
				}
			} else if !bytes.Equal(frames[0], f) {
				t.Error("what was merged is not what was cut")
			}
			if len(tapped) != 35 || !bytes.Equal(payload(t, tapped), numbers(size)) {
				t.Errorf("%d frames on the wire, or not the payload", len(tapped))
			}
			for i, f := range tapped {
				tcp := packet.TCP(f[34:])
				if len(f) > 1514 || tcp.Seq() != 1000+uint32(i*mss) || tcp.Flags()&packet.PSH != 0 != (i == 34) {
					t.Errorf("frame %d: %d bytes, seq %d, flags %#x", i, len(f), tcp.Seq(), tcp.Flags())
				}
			}
			b.want(map[softnic.Station]uint64{softnic.TXSuper: 1, softnic.TXFrames: 35, softnic.RXGood: 35, softnic.RXUp: 35})
		})
	}
}

// TestPassThrough hands super-packets on where nobody could tell, and cuts them
// elsewhere.
func TestPassThrough(t *testing.T) {
	through := softnic.Wire{PassThrough: true}
	merging := healthy()
	merging.RX.Merge = hardware
	small := merging
	small.RX.Merge = func(int) gro.Options { return gro.Options{Policy: gro.Hardware, MaxSegments: 8} }
	noop := softnic.Fault{Name: "noop", Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Segment: func(*softnic.Frame) softnic.Action { return softnic.Pass }}
	}}
	lossy := through
	lossy.Delay = time.Nanosecond
	tapped := cfg(merging, through)
	tapped.Tap = func(softnic.Tapped) {}
	for _, tt := range []struct {
		name  string
		c     softnic.Config
		polls uint64 // 1: in one go
	}{
		{"through", cfg(merging, through), 1},
		{"not-asked", cfg(merging, softnic.Wire{}), 2},
		{"not-merging", cfg(healthy(), through), 2},
		{"smaller-merge", cfg(small, through), 2},
		{"fault", cfg(merging, through, noop), 2},
		{"wire", cfg(merging, lossy), 2},
		{"tap", tapped, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.c)
			h, f := super(100_000/2, 1000)
			b.send(0, h, f)
			b.send(0, vnet.Header{}, segment(7, []byte("single")))
			b.steps()
			b.advance(time.Microsecond)
			_, frames := b.got(1)
			if b.count(1, softnic.RXUp) != 51 || b.count(0, softnic.WireFrames) != 51 {
				t.Errorf("counts %+v", b.Counters())
			}
			if tt.polls == 1 && (len(frames) != 2 || !bytes.Equal(frames[0], f) || b.Frames() != 0) {
				t.Errorf("%d packets came, %d frames were cut", len(frames), b.Frames())
			}
			if tt.polls != 1 && b.Frames() == 0 {
				t.Error("nothing was cut")
			}
		})
	}
	t.Run("merge-off", func(t *testing.T) {
		b := newBench(t, cfg(merging, through))
		if err := b.Set(1, softnic.SetMerge, 0); err != nil {
			t.Fatal(err)
		}
		h, f := super(5000, 1000)
		b.send(0, h, f)
		b.steps()
		if _, frames := b.got(1); len(frames) != 5 {
			t.Errorf("%d packets came, want 5", len(frames))
		}
	})
}

// TestGarbage sends what makes no sense, and headers that contradict the frame.
func TestGarbage(t *testing.T) {
	h, f := super(5000, 1000)
	with := func(edit func(*vnet.Header)) vnet.Header { g := h; edit(&g); return g }
	for _, tt := range []struct {
		name  string
		h     vnet.Header
		frame []byte
	}{
		{"empty", vnet.Header{}, nil},
		{"short", vnet.Header{}, f[:13]},
		{"type", with(func(h *vnet.Header) { h.GSOType = 99 }), f},
		{"size", with(func(h *vnet.Header) { h.GSOSize = 0 }), f},
		{"csum-start", with(func(h *vnet.Header) { h.CsumStart = 60000 }), f},
		{"csum-offset", with(func(h *vnet.Header) { h.CsumOffset = 6 }), f},
		{"protocol", with(func(h *vnet.Header) { h.GSOType = vnet.GSOTCPv6 }), f},
		{"cut-off", h, f[:40]},
		{"too-long", h, append(slices.Clone(f), make([]byte, 70_000)...)},
	} {
		b := newBench(t, cfg(healthy(), softnic.Wire{}))
		b.send(0, tt.h, tt.frame)
		b.send(0, vnet.Header{}, segment(1, []byte("next")))
		b.steps()
		if _, frames := b.got(1); len(frames) != 1 || b.count(0, softnic.TXGarbage) != 1 {
			t.Errorf("%s: %d frames, %d counted as garbage", tt.name, len(frames), b.count(0, softnic.TXGarbage))
		}
	}
	b := newBench(t, cfg(healthy(), softnic.Wire{}))
	b.q[0].down <- []byte{1, 2, 3} // not even a header
	b.steps()
	b.want(map[softnic.Station]uint64{softnic.TXGarbage: 1})
}

// TestHostRefuses counts what the receiving host does not take.
func TestHostRefuses(t *testing.T) {
	for err, at := range map[error]softnic.Station{
		softnic.ErrDown: softnic.RXDown, softnic.ErrRefused: softnic.RXRefused, softnic.ErrNoMemory: softnic.RXNoMemory,
	} {
		m := healthy()
		m.RX.Merge = hardware
		b := newBench(t, cfg(m, softnic.Wire{}))
		b.q[1].fail = err
		h, f := super(5000, 1000)
		b.send(0, h, f)
		b.steps()
		b.want(map[softnic.Station]uint64{at: 5, softnic.RXUp: 0})
	}
	b := newBench(t, cfg(healthy(), softnic.Wire{}))
	b.q[1].fail = softnic.ErrGone
	b.send(0, vnet.Header{}, segment(1, nil))
	_, err := b.Step()
	if pe, ok := errors.AsType[*softnic.PortError](err); !ok || pe.Port != "p1" || !errors.Is(err, softnic.ErrGone) {
		t.Errorf("a device that is gone: %v", err)
	}
}

// TestConfigErrors names what is wrong.
func TestConfigErrors(t *testing.T) {
	port := softnic.Port{Name: "p", Format: vnet.V1, Queues: []softnic.Queue{newFake()}}
	other := port
	other.Name = "q"
	two := []softnic.Port{port, other}
	m := healthy()
	m.RX.Merge = func(int) gro.Options { return gro.Options{MaxFlows: -1} }
	more := port
	more.Queues = append(more.Queues, newFake())
	for _, tt := range []struct {
		want  string
		c     softnic.Config
		ports []softnic.Port
	}{
		{"number of ports", cfg(healthy(), softnic.Wire{}), two[:1]},
		{"number of ports", cfg(healthy(), softnic.Wire{}), nil},
		{"name of port 1", cfg(healthy(), softnic.Wire{}), []softnic.Port{port, port}},
		{"Cards", softnic.Config{}, two},
		{"number of queues of q", cfg(healthy(), softnic.Wire{}), []softnic.Port{other, more}},
		{"header size of p", cfg(healthy(), softnic.Wire{}), []softnic.Port{{Name: "p", Queues: port.Queues}, other}},
		{"Wire.Loss", cfg(healthy(), softnic.Wire{Loss: 1.5}), two},
		{"Wire.Rate", cfg(healthy(), softnic.Wire{Rate: -1}), two},
		{"Wire.Delay", cfg(healthy(), softnic.Wire{Delay: -1}), two},
		{"RX.Merge of healthy", cfg(m, softnic.Wire{}), two},
		{"TX.Ring of big", cfg(softnic.Model{Name: "big", TX: softnic.TX{Ring: 1 << 30}}, softnic.Wire{}), two},
	} {
		_, err := softnic.New(tt.c, tt.ports)
		if ce, ok := errors.AsType[*softnic.ConfigError](err); !ok || ce.Field != tt.want {
			t.Errorf("%v, want one of %s", err, tt.want)
		}
	}
}

// TestSettings changes them while the card runs, and a hook refuses.
func TestSettings(t *testing.T) {
	m := healthy()
	m.RX.Merge = hardware
	fixed := softnic.Fault{Name: "fixed", Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{
			Setting: func(s softnic.Setting, present, wanted int) int {
				if s == softnic.SetMerge {
					return present
				}
				return wanted
			},
			Offer: func(o softnic.Offloads) softnic.Offloads { return o &^ softnic.USO },
		}
	}}
	c := cfg(m, softnic.Wire{}, fixed)
	if got := c.Cards[0].Offer(); got != softnic.AllOffloads&^softnic.USO {
		t.Errorf("Offer() = %v", got)
	}
	b := newBench(t, c)
	for _, tt := range []struct {
		s         softnic.Setting
		v, become int
		wrong     bool
	}{
		{softnic.SetMerge, 0, 1, false}, // cannot be turned off
		{softnic.SetChecksum, 0, 0, false},
		{softnic.SetUsecs, 50, 50, false},
		{softnic.SetFrames, 8, 8, false},
		{softnic.SetUsecs, -1, 50, true},
		{"speed", 1, 0, true},
	} {
		if err := b.Set(1, tt.s, tt.v); (err != nil) != tt.wrong {
			t.Errorf("Set(%s, %d): %v", tt.s, tt.v, err)
		}
		if got, err := b.Setting(1, tt.s); got != tt.become || (err != nil) != (tt.s == "speed") {
			t.Errorf("%s became %d, %v, want %d", tt.s, got, err, tt.become)
		}
	}
	if err := b.Set(7, softnic.SetUsecs, 1); err == nil {
		t.Error("a port that is not there")
	}
	plain := newBench(t, cfg(healthy(), softnic.Wire{}))
	if err := plain.Set(0, softnic.SetMerge, 1); err == nil {
		t.Error("a card that cannot merge")
	}
}

// TestModeration lets frames wait for the interrupt.
func TestModeration(t *testing.T) {
	m := healthy()
	m.RX.Moderation = softnic.Moderation{Usecs: 50 * time.Microsecond, Frames: 4}
	b := newBench(t, cfg(m, softnic.Wire{}))
	send := func(n int) {
		for range n {
			b.send(0, vnet.Header{}, segment(1, []byte("x")))
		}
		b.steps()
	}
	send(3)
	b.want(map[softnic.Station]uint64{softnic.RXPending: 3, softnic.RXInterrupt: 0})
	b.advance(49 * time.Microsecond)
	b.want(map[softnic.Station]uint64{softnic.RXPending: 3, softnic.RXInterrupt: 0})
	b.advance(time.Microsecond)
	b.want(map[softnic.Station]uint64{softnic.RXPending: 0, softnic.RXInterrupt: 1, softnic.RXUp: 3})
	send(4) // as many as rx-frames
	b.want(map[softnic.Station]uint64{softnic.RXPending: 0, softnic.RXInterrupt: 2, softnic.RXUp: 7})
	// Many at once are one interrupt, and polls of 64.
	send(200)
	b.want(map[softnic.Station]uint64{softnic.RXPending: 0, softnic.RXUp: 207})
	if n := b.count(1, softnic.RXPolls); n < 2+200/64 {
		t.Errorf("%d polls", n)
	}
}

// TestRXRing drops what does not fit.
func TestRXRing(t *testing.T) {
	m := healthy()
	m.RX.Ring = 10
	m.RX.Moderation.Usecs = time.Millisecond
	b := newBench(t, cfg(m, softnic.Wire{}))
	h, f := super(15_000, 1000)
	b.send(0, h, f)
	b.steps()
	b.want(map[softnic.Station]uint64{softnic.RXFrames: 10, softnic.RXNoBuffer: 5, softnic.RXPending: 10})
}

// TestRun starts the goroutines, on virtual time, and ends them.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := [2]*fakeQueue{newFake(), newFake()}
		var ports []softnic.Port
		for i, name := range []string{"p0", "p1"} {
			ports = append(ports, softnic.Port{Name: name, Format: vnet.V1, Queues: []softnic.Queue{q[i]}})
		}
		n, err := softnic.New(cfg(healthy(), softnic.Wire{Delay: 3 * time.Millisecond, Rate: 1e9}), ports)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- n.Run(ctx) }()
		q[0].down <- append(make([]byte, 12), segment(1, []byte("hello"))...)
		time.Sleep(3 * time.Millisecond) //nolint:forbidigo // virtual
		synctest.Wait()
		if n.Counts(0)[softnic.WireFlight] != 1 || n.Counts(1)[softnic.RXUp] != 0 {
			t.Errorf("after the delay alone: %v", n.Counters())
		}
		time.Sleep(time.Microsecond) //nolint:forbidigo // the frame takes 672 ns of the line
		synctest.Wait()
		if n.Counters()["p1.rx_up_frames"] != 1 || n.Counters()["p0.tx_packets"] != 1 {
			t.Errorf("nothing arrived: %v", n.Counters())
		}
		cancel()
		if err := errors.Join(<-done, n.Balance()); err != nil {
			t.Error(err)
		}
		if err := n.Run(t.Context()); err == nil {
			t.Error("a second Run")
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoAllocs carries packets of each kind without allocation, once it is
// warm.
func TestNoAllocs(t *testing.T) {
	merging := healthy()
	merging.RX.Merge = hardware
	lro := healthy()
	lro.RX.Merge = func(int) gro.Options { return gro.Options{Policy: gro.LRO, Hold: time.Microsecond} }
	noop := softnic.Fault{Name: "noop", Hooks: func(softnic.Env) softnic.Hooks {
		f := func(f *softnic.Frame) softnic.Action {
			f.Forwarded()
			return softnic.Pass
		}
		return softnic.Hooks{Super: f, Segment: f, Wire: f, Receive: f}
	}}
	tapped := cfg(merging, softnic.Wire{})
	tapped.Tap = func(softnic.Tapped) {}
	for _, tt := range []struct {
		name string
		c    softnic.Config
	}{
		{"plain", cfg(healthy(), softnic.Wire{})},
		{"merge", cfg(merging, softnic.Wire{})},
		{"lro", cfg(lro, softnic.Wire{})},
		{"through", cfg(merging, softnic.Wire{PassThrough: true})},
		{"wire", cfg(merging, softnic.Wire{Rate: 1e10, Delay: time.Microsecond, Loss: 0.1, Dup: 0.1, Reorder: 0.1, Corrupt: 0.1})},
		{"hooks", cfg(merging, softnic.Wire{}, noop)},
		{"tap", tapped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.c)
			b.q[1].keep = false
			h, f := super(60_000, 1448)
			whole := make([]byte, b.format.Size+len(f))
			if err := b.format.Put(whole, h); err != nil {
				t.Fatal(err)
			}
			copy(whole[b.format.Size:], f)
			small := append(make([]byte, b.format.Size), segment(1, numbers(1000))...)
			round := func() {
				for range 4 {
					b.q[0].down <- whole
					b.q[0].down <- small
				}
				for range 20 {
					b.now += 20 * time.Microsecond
					if _, err := b.Step(); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 200 {
				round()
			}
			if n := testing.AllocsPerRun(100, round); n != 0 {
				t.Errorf("%v allocations for 8 packets", n)
			}
		})
	}
}
