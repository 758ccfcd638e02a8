package softnic_test

import (
	"bytes"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// A fakeQueue is a host on channels, with one nasty habit: it overwrites what
// was read, and keeps nothing of what was written but a copy.
type fakeQueue struct {
	down chan []byte // what the host sends, virtio header first
	wake chan struct{}
	fail error // of the next writes

	mu   sync.Mutex
	up   [][]byte
	keep bool
}

func newFake() *fakeQueue {
	return &fakeQueue{down: make(chan []byte, 4096), wake: make(chan struct{}, 1), keep: true}
}

func (q *fakeQueue) Read(p []byte) (int, error) {
	select {
	case b := <-q.down:
		return copy(p, b), nil
	default:
		return 0, softnic.ErrAgain
	}
}

func (q *fakeQueue) Write(parts [][]byte) error {
	if q.fail != nil {
		return q.fail
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.keep {
		q.up = append(q.up, bytes.Join(parts, nil))
	}
	return nil
}

func (q *fakeQueue) Wait(d time.Duration, idle bool) error {
	var timer <-chan time.Time
	if d >= 0 {
		timer = time.After(d)
	}
	down := q.down
	if idle {
		down = nil
	}
	select {
	case b := <-down:
		q.down <- b // tests that wait send one packet at a time
	case <-timer:
	case <-q.wake:
	}
	return nil
}

func (q *fakeQueue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *fakeQueue) take() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	up := q.up
	q.up = nil
	return up
}

// A bench is a card between fakes, with a clock that stands still.
type bench struct {
	*softnic.NIC
	tb     testing.TB
	now    time.Duration
	q      [2]*fakeQueue
	format vnet.Format
}

func newBench(tb testing.TB, cfg softnic.Config) *bench {
	tb.Helper()
	b := &bench{tb: tb, q: [2]*fakeQueue{newFake(), newFake()}, format: vnet.Tunnel}
	cfg.Now = func() time.Duration { return b.now }
	var ports []softnic.Port
	for i, q := range b.q {
		ports = append(ports, softnic.Port{Name: "p" + string(rune('0'+i)), Format: b.format, Queues: []softnic.Queue{q}})
	}
	n, err := softnic.New(cfg, ports)
	if err != nil {
		tb.Fatal(err)
	}
	b.NIC = n
	return b
}

// send puts a packet into the hands of the card.
func (b *bench) send(port int, h vnet.Header, frame []byte) {
	b.tb.Helper()
	p := make([]byte, b.format.Size+len(frame))
	if err := b.format.Put(p, h); err != nil {
		b.tb.Fatal(err)
	}
	copy(p[b.format.Size:], frame)
	b.q[port].down <- p
}

// steps runs the card until it is idle, at the present instant.
func (b *bench) steps() {
	b.tb.Helper()
	for range 10_000 {
		busy, err := b.Step()
		if err != nil {
			b.tb.Fatal(err)
		}
		if err := b.Balance(); err != nil {
			b.tb.Fatal(err)
		}
		if !busy && len(b.q[0].down)+len(b.q[1].down) == 0 {
			return
		}
		if _, stopped := b.Free(0); !busy && stopped {
			return
		}
	}
	b.tb.Fatal("the card never comes to rest")
}

// advance lets time pass in small pieces.
func (b *bench) advance(d time.Duration) {
	b.tb.Helper()
	for end := b.now + d; b.now < end; {
		b.now = min(end, b.now+time.Microsecond)
		b.steps()
	}
}

// got returns what the host of a port received, with its headers.
func (b *bench) got(port int) (headers []vnet.Header, frames [][]byte) {
	b.tb.Helper()
	for _, p := range b.q[port].take() {
		h, err := b.format.Get(p)
		if err != nil {
			b.tb.Fatal(err)
		}
		headers, frames = append(headers, h), append(frames, p[b.format.Size:])
	}
	return headers, frames
}

func (b *bench) count(port int, s softnic.Station) uint64 { return b.Counts(port)[s] }

// want checks counts of the sending port 0 and the receiving port 1.
func (b *bench) want(counts map[softnic.Station]uint64) {
	b.tb.Helper()
	for s, want := range counts {
		port := 0
		if s >= softnic.RXFrames {
			port = 1
		}
		if got := b.count(port, s); got != want {
			b.tb.Errorf("%v = %d, want %d", s, got, want)
		}
	}
}

// healthy is a plain card.
func healthy() softnic.Model {
	return softnic.Model{
		Name: "healthy", About: "for tests", Offloads: softnic.AllOffloads,
		RX: softnic.RX{Checksum: true},
	}
}

func cfg(m softnic.Model, w softnic.Wire, f ...softnic.Fault) softnic.Config {
	return softnic.Config{Cards: []softnic.Card{{Model: m, Faults: f}}, Wire: w, Seed: 1}
}

// segment is a TCP packet over IPv4, whose checksum is complete.
func segment(seq uint32, payload []byte, tags ...uint16) []byte {
	layers := []pkttest.Layer{pkttest.Eth{}}
	for _, id := range tags {
		layers = append(layers, pkttest.Tag{TCI: id})
	}
	layers = append(layers, pkttest.IP4{DF: true, ID: uint16(seq)}, pkttest.TCP{Seq: seq}, pkttest.Payload(payload))
	return pkttest.Build(layers...)
}

// super is a super-packet as a kernel hands it down.
func super(n, mss int, tags ...uint16) (vnet.Header, []byte) {
	layers := []pkttest.Layer{pkttest.Eth{}}
	for _, id := range tags {
		layers = append(layers, pkttest.Tag{TCI: id})
	}
	layers = append(layers, pkttest.IP4{DF: true, ID: 100}, pkttest.TCP{Seq: 1000, Flags: packet.ACK | packet.PSH, Partial: true}, pkttest.Payload(numbers(n)))
	f := pkttest.Build(layers...)
	at := packet.EthernetLen + packet.VLANLen*len(tags) + packet.IPv4MinLen
	return vnet.Header{
		Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv4, GSOSize: uint16(mss),
		HdrLen: uint16(at + packet.TCPMinLen), CsumStart: uint16(at), CsumOffset: packet.TCPChecksumOffset,
	}, f
}

// numbers are n bytes that differ from place to place.
func numbers(n int) []byte {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 4 {
		binary.BigEndian.PutUint32(b[i:], uint32(i)*2654435761)
	}
	return b[:n]
}

// payload returns the TCP payload of frames, joined, and fails for a frame with
// a wrong checksum.
func payload(tb testing.TB, frames [][]byte) []byte {
	tb.Helper()
	var all []byte
	for i, f := range frames {
		l, err := packet.Parse(f, packet.StartEthernet)
		if err != nil || l.Proto != packet.ProtoTCP {
			tb.Fatalf("frame %d: %+v, %v", i, l, err)
		}
		seg := f[l.Transport : l.Network+l.Length]
		if !packet.IPv4(f[l.Network:]).ChecksumValid() || pkttest.Sum(seg, uint32(pkttest.Pseudo(f[l.Network:], packet.ProtoTCP, len(seg)))) != 0xffff {
			tb.Errorf("frame %d has a wrong checksum", i)
		}
		all = append(all, f[l.Payload:l.Network+l.Length]...)
	}
	return all
}
