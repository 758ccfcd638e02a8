package softnic_test

import (
	"testing"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/vnet"
)

// laws checks what holds whatever comes: no panic, nothing lost without a
// counter, and everything at rest in the end.
func laws(t *testing.T, b *bench) {
	t.Helper()
	b.steps()
	for range 3 {
		b.now += 2 * time.Millisecond // more than anything waits
		b.steps()
	}
	b.want(map[softnic.Station]uint64{softnic.TXPending: 0, softnic.WireFlight: 0, softnic.RXPending: 0, softnic.RXHeld: 0})
	if free, stopped := b.Free(0); stopped || free != softnic.DefaultRing-1 {
		t.Errorf("%d descriptors are free, stopped %v", free, stopped)
	}
}

// FuzzTransmit hands arbitrary bytes down, as a broken kernel might.
func FuzzTransmit(f *testing.F) {
	h, frame := super(3000, 1000, 5)
	seed := make([]byte, vnet.Tunnel.Size+len(frame))
	if err := vnet.Tunnel.Put(seed, h); err != nil {
		f.Fatal(err)
	}
	copy(seed[vnet.Tunnel.Size:], frame)
	f.Add(seed, uint8(0))
	f.Add(seed[:60], uint8(1))
	f.Add(append(make([]byte, vnet.Tunnel.Size), segment(1, nil)...), uint8(2))
	f.Add(make([]byte, 30), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		if len(data) > 70_000 {
			return
		}
		b := newBench(t, fuzzConfig(kind))
		b.q[0].down <- data
		b.q[0].down <- seed
		laws(t, b)
	})
}

// FuzzReceive lets arbitrary frames arrive, as a broken peer might send them.
func FuzzReceive(f *testing.F) {
	f.Add(segment(1, numbers(1000)), segment(1001, numbers(1000)), uint8(0))
	f.Add(segment(1, numbers(100), 5), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00\x00"), uint8(1))
	f.Add([]byte{}, make([]byte, 14), uint8(2))
	f.Fuzz(func(t *testing.T, one, two []byte, kind uint8) {
		if len(one) > 65_000 || len(two) > 65_000 {
			return
		}
		b := newBench(t, fuzzConfig(kind))
		b.send(0, vnet.Header{}, one)
		b.send(0, vnet.Header{}, two)
		b.send(0, vnet.Header{}, one)
		laws(t, b)
	})
}

// fuzzConfig returns one of some cards and wires, with hooks that look at all
// there is.
func fuzzConfig(kind uint8) softnic.Config {
	look := func(f *softnic.Frame) softnic.Action {
		f.Forwarded()
		f.Tagged()
		f.Finish()
		if tcp := f.TCP(); tcp != nil {
			_ = tcp.Options()
		}
		_ = f.UDP()
		return softnic.Pass
	}
	m := healthy()
	var faults []softnic.Fault
	var w softnic.Wire
	switch kind % 4 {
	case 1:
		m.RX.Merge = func(int) gro.Options {
			return gro.Options{Policy: gro.Hardware, UDP: true, VXLANPort: 4789, GenevePort: 6081}
		}
	case 2:
		m.RX.Merge = func(int) gro.Options { return gro.Options{Policy: gro.LRO} }
		w = softnic.Wire{Corrupt: 0.5, Dup: 0.5, Reorder: 0.5, Delay: 1000}
	case 3:
		faults = []softnic.Fault{{Name: "look", Hooks: func(softnic.Env) softnic.Hooks {
			return softnic.Hooks{Super: look, Segment: look, Wire: look, Receive: look}
		}}}
	}
	if kind >= 128 {
		m.RX.Merge = hardware
		w.PassThrough = true
	}
	return cfg(m, w, faults...)
}
