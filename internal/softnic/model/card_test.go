package model_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/internal/softnic/model"
	tu "github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// A host is one that sends what it is given and keeps what it receives.
type host struct {
	send [][]byte
	idle chan struct{} // closed when all was sent and nothing is to be done
	once sync.Once
	wake chan struct{}
	got  [][]byte
}

func newHost(send ...[]byte) *host {
	return &host{send: send, idle: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func (h *host) Read(p []byte) (int, error) {
	if len(h.send) == 0 {
		return 0, softnic.ErrAgain
	}
	n := copy(p, h.send[0])
	h.send = h.send[1:]
	return n, nil
}

func (h *host) Write(parts [][]byte) error {
	h.got = append(h.got, slices.Concat(parts...))
	return nil
}

func (h *host) Wait(d time.Duration, stopped bool) error {
	if d < 0 && (len(h.send) == 0 || stopped) {
		h.once.Do(func() { close(h.idle) })
		<-h.wake
		return nil
	}
	select {
	case <-time.After(max(d, 0)):
	case <-h.wake:
	}
	return nil
}

func (h *host) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// run lets a card carry what a host sends, and returns what the other gets. set
// is what is changed before.
func run(t *testing.T, cfg softnic.Config, send [][]byte, set ...softnic.Setting) (*softnic.NIC, [][]byte) {
	t.Helper()
	a, b := newHost(send...), newHost()
	n, err := softnic.New(cfg, []softnic.Port{
		{Name: "a", Format: vnet.Tunnel, Queues: []softnic.Queue{a}},
		{Name: "b", Format: vnet.Tunnel, Queues: []softnic.Queue{b}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set {
		if err := n.Set(1, s, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	<-a.idle
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := n.Balance(); err != nil {
		t.Error(err)
	}
	return n, b.got
}

// of returns the configuration of a card with faults.
func of(t *testing.T, m softnic.Model, faults ...string) softnic.Config {
	t.Helper()
	c := softnic.Card{Model: m}
	for _, name := range faults {
		f, err := fault.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		c.Faults = append(c.Faults, f)
	}
	return softnic.Config{Cards: []softnic.Card{c}}
}

// packets returns n packets of 3 segments each, with the virtio header in
// front, and one small one behind each.
func packets(n int, layers ...tu.Layer) [][]byte {
	data := bytes.Repeat([]byte("0123456789abcdef"), 256)[:2*1448+1000]
	start := 14 + 4*(len(layers)-1) + 20
	var list [][]byte
	for i := range n {
		for _, payload := range [][]byte{data, data[:300]} {
			h := vnet.Header{Flags: vnet.NeedsCsum, CsumStart: uint16(start), CsumOffset: 16}
			if len(payload) > 1448 {
				h.GSOType, h.GSOSize = vnet.GSOTCPv4, 1448
			}
			ip, tcp := tu.IP4{ID: uint16(4 * i), DF: true}, tu.TCP{Seq: uint32(len(list) * 10000), Partial: true}
			head := make([]byte, vnet.Tunnel.Size)
			_ = vnet.Tunnel.Put(head, h) // has the size
			frame := tu.Build(append(slices.Clip(layers), ip, tcp, tu.Payload(payload))...)
			list = append(list, slices.Concat(head, frame))
		}
	}
	return list
}

// TestHealthy: every model brings everything that it is given, and its counters
// say so.
func TestHealthy(t *testing.T) {
	const n = 50
	for _, e := range model.Models.All() {
		t.Run(e.Name(), func(t *testing.T) {
			nic, _ := run(t, of(t, e.Model), packets(n, tu.Eth{}))
			c := nic.Counts(1)
			if c[softnic.RXFrames] != 4*n || c[softnic.RXUp] != 4*n || c[softnic.RXBad] != 0 {
				t.Errorf("%d frames arrived and %d went up, %d bad; want %d",
					c[softnic.RXFrames], c[softnic.RXUp], c[softnic.RXBad], 4*n)
			}
			if merges := e.RX.Merge != nil && !e.RX.MergeOff; merges != (c[softnic.RXSuper] > 0) {
				t.Errorf("%d aggregates", c[softnic.RXSuper])
			}
			for _, d := range slices.Concat(nic.DriverCounters(0), nic.DriverCounters(1)) {
				t.Logf("%s: %d", d.Name, d.Value)
			}
		})
	}
}

// TestStmmac: right on the base interface; on a VLAN the first segment alone
// has the tag, and packets that are not cut have it.
func TestStmmac(t *testing.T) {
	for _, s := range []struct {
		name   string
		layers []tu.Layer
		tagged int // of 4 frames each
	}{
		{"base", []tu.Layer{tu.Eth{}}, 0},
		{"vlan", []tu.Layer{tu.Eth{}, tu.Tag{TCI: 100}}, 2},
	} {
		_, got := run(t, of(t, find(t, "stmmac")), packets(10, s.layers...))
		tagged := 0
		for _, b := range got {
			if packet.Ethernet(b[vnet.Tunnel.Size:]).EtherType() == packet.EtherTypeVLAN {
				tagged++
			}
		}
		if len(got) != 40 || tagged != 10*s.tagged {
			t.Errorf("%s: %d frames, %d tagged; want 40, %d", s.name, len(got), tagged, 10*s.tagged)
		}
	}
}

// TestFec: only what lies before the next multiple of 16 is copied. Segment 1
// begins at byte 1448 = 90·16+8 of the payload, segment 2 at 2896 = 181·16.
func TestFec(t *testing.T) {
	nic, _ := run(t, of(t, find(t, "fec")), packets(1, tu.Eth{})[:1])
	if c := nic.Counts(0); c[softnic.TXCopied] != 8 {
		t.Errorf("%d bytes copied, want 8", c[softnic.TXCopied])
	}
}

// TestEveryFault: on every model every fault loses nothing without a counter.
func TestEveryFault(t *testing.T) {
	for _, e := range model.Models.All() {
		for _, f := range fault.Faults.All() {
			t.Run(e.Name()+"/"+f.Name(), func(t *testing.T) {
				run(t, of(t, e.Model, f.Name()), packets(5, tu.Eth{}))
				run(t, of(t, e.Model, f.Name()), packets(5, tu.Eth{}, tu.Tag{TCI: 100}))
			})
		}
	}
}

// TestRingStuck: the ring fills, and the queue stops for good.
func TestRingStuck(t *testing.T) {
	send := packets(2000, tu.Eth{})
	nic, _ := run(t, of(t, find(t, "generic"), "ring-stuck"), send)
	c := nic.Counts(0)
	if c[softnic.TXSuper] != 256 || c[softnic.TXStops] != 1 || c[softnic.TXWakes] != 0 {
		t.Errorf("%d super-packets left, %d stops, %d wakes; want 256, 1, 0",
			c[softnic.TXSuper], c[softnic.TXStops], c[softnic.TXWakes])
	}
	if int(c[softnic.TXPackets]) == len(send) {
		t.Error("the host was never stopped")
	}
}

// TestBadCsumGood: of frames with a bit turned over, the card finds what it can;
// the broken one calls all good, until it is told not to look.
func TestBadCsumGood(t *testing.T) {
	const n = 400 // frames
	for _, s := range []struct {
		name    string
		faults  []string
		set     []softnic.Setting
		bad, ok bool
	}{
		{"healthy", nil, nil, true, false},
		{"broken", []string{"bad-csum-good"}, nil, false, true},
		{"cured", []string{"bad-csum-good"}, []softnic.Setting{softnic.SetChecksum}, false, false},
	} {
		cfg := of(t, find(t, "generic"), s.faults...)
		cfg.Wire.Corrupt = 1
		nic, _ := run(t, cfg, packets(n/4, tu.Eth{}), s.set...)
		c := nic.Counts(1)
		if c[softnic.RXFrames] != n || (c[softnic.RXBad] > n/2) != s.bad || (c[softnic.RXGood] > n/2) != s.ok {
			t.Errorf("%s: of %d frames %d bad, %d good", s.name, c[softnic.RXFrames], c[softnic.RXBad], c[softnic.RXGood])
		}
	}
}

// TestLROForward: what goes up is longer than the MTU and says no segment size.
func TestLROForward(t *testing.T) {
	for _, faults := range [][]string{nil, {"lro-forward"}} {
		_, got := run(t, of(t, find(t, "generic"), faults...), packets(10, tu.Eth{}))
		long, unknown := 0, 0
		for _, b := range got {
			h, err := vnet.Tunnel.Get(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(b)-vnet.Tunnel.Size > 1514 {
				long++
				if h.GSOType == vnet.GSONone {
					unknown++
				}
			}
		}
		if broken := faults != nil; long != 10 || (unknown == long) != broken {
			t.Errorf("faults %v: %d aggregates, %d without a segment size", faults, long, unknown)
		}
	}
}

// TestMergeFixed: the card merges after it was told not to.
func TestMergeFixed(t *testing.T) {
	for _, faults := range [][]string{nil, {"merge-fixed"}} {
		nic, _ := run(t, of(t, find(t, "generic"), faults...), packets(10, tu.Eth{}), softnic.SetMerge)
		if broken := faults != nil; (nic.Counts(1)[softnic.RXSuper] > 0) != broken {
			t.Errorf("faults %v: %d aggregates", faults, nic.Counts(1)[softnic.RXSuper])
		}
	}
}
