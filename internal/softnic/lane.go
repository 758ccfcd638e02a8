package softnic

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/sys/tap"
)

// A hook is one function of Hooks that sees frames.
type hook = func(*Frame) Action

// A lane carries the packets of one queue from one port to the other: one
// goroutine, which owns all that is in here but pub.
type lane struct {
	nic      *NIC
	src, dst *port
	in, out  Queue
	clock    func() time.Duration
	exact    bool // the time matters within a step
	// untouched says that no hook can change frames between the two ends.
	untouched bool
	c         Counts
	pool      pool

	tx   transmitter
	wire wire
	rx   receiver

	mu  sync.Mutex
	pub Counts // what c was after the last step
}

func newLane(n *NIC, src, dst *port, q int, ln *line) (*lane, error) {
	l := &lane{nic: n, src: src, dst: dst, in: src.queues[q], out: dst.queues[q], clock: n.cfg.Now}
	l.tx = transmitter{
		TX: src.model.TX, free: src.model.TX.Ring - 1, buf: make([]byte, headroom+tap.MaxPacket),
		number: 0, bus: line{rate: float64(src.model.TX.Bus)},
	}
	for _, h := range src.hooks[q] {
		l.tx.super = appendHook(l.tx.super, h.Super)
		l.tx.segment = appendHook(l.tx.segment, h.Segment)
		l.wire.hooks = appendHook(l.wire.hooks, h.Wire)
	}
	for _, h := range dst.hooks[q] {
		l.rx.hooks = appendHook(l.rx.hooks, h.Receive)
	}
	l.wire.init(n.cfg, src.index, q, ln)
	l.tx.timed = l.wire.line.rate > 0 || l.tx.bus.rate > 0
	l.untouched = len(l.tx.segment)+len(l.wire.hooks)+len(l.rx.hooks) == 0
	l.exact = l.tx.timed || !l.wire.plain
	return l, l.rx.init(l, n.cfg)
}

func appendHook(list []hook, h hook) []hook {
	if h == nil {
		return list
	}
	return append(list, h)
}

// run is the lane's goroutine.
func (l *lane) run() error {
	for !l.nic.stopping.Load() {
		busy, err := l.step()
		l.publish()
		if err != nil {
			return err
		}
		if busy {
			continue
		}
		if err := l.in.Wait(l.next(), l.tx.stopped); err != nil {
			return &PortError{l.src.name, err}
		}
	}
	return nil
}

// step does what can be done now, and reports whether there may be more.
func (l *lane) step() (busy bool, err error) {
	l.rx.load(l.dst)
	now := l.clock()
	moved := l.depart(now) + l.land(now)
	more, err := l.transmit(now)
	if err != nil {
		return true, err
	}
	if l.exact || l.rx.waits {
		now = l.clock()
	}
	l.receive(now)
	if l.rx.gone != nil {
		return true, &PortError{l.dst.name, l.rx.gone}
	}
	return moved > 0 || more, nil
}

// next returns how long the lane has nothing to do unless the host sends, or
// -1 for as long as it likes.
func (l *lane) next() time.Duration {
	at := never
	if l.tx.ring.n > 0 {
		at = min(at, l.tx.ring.first().at)
	}
	at = min(at, l.wire.next(), l.rx.next())
	if at == never {
		return -1
	}
	return max(0, at-l.clock())
}

// never is later than anything.
const never = time.Duration(1<<63 - 1)

func (l *lane) publish() {
	l.c[TXPending] = uint64(l.tx.ring.n)
	l.c[WireFlight] = uint64(l.wire.flight())
	l.c[RXPending] = uint64(l.rx.ring.n)
	l.c[RXHeld] = uint64(l.rx.held)
	l.mu.Lock()
	l.pub = l.c
	l.mu.Unlock()
}

func (l *lane) counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pub
}

// A line is what takes time per byte: a wire in one direction, or a bus.
type line struct {
	rate float64 // bit/s; 0 is no limit
	mu   sync.Mutex
	free time.Duration // when it has carried all that was given to it
}

// reserve gives it so many bytes at a time, and returns when it is done with
// them.
func (l *line) reserve(at time.Duration, bytes int) time.Duration {
	if l.rate == 0 {
		return at
	}
	took := time.Duration(float64(bytes) * 8e9 / l.rate)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = max(l.free, at) + took
	return l.free
}

// A transmitter is the sending half of a lane: driver, ring and segmentation.
type transmitter struct {
	TX
	buf     []byte // what the host has handed down
	cutter  gso.Splitter
	packet  Frame  // the same for hooks
	later   *Frame // waits for the next of its super-packet
	free    int    // descriptors
	stopped bool
	timed   bool // frames stay on the ring until the bus and the wire had time
	ring    fifo
	bus     line
	number  uint64
	super   []hook
	segment []hook
}

// A wire is what is between a transmitter and a receiver.
type wire struct {
	Wire
	line   *line
	hooks  []hook
	rand   *rand.Rand
	tap    func(Tapped)
	port   int
	queue  int
	plain  bool // nothing but the line's rate happens to frames
	air    fifo
	held   *Frame // is to be overtaken
	heldAt time.Duration
}

// A receiver is the receiving half of a lane: ring, interrupt, aggregation.
type receiver struct {
	size    int
	ring    fifo
	hooks   []hook
	polling bool

	merge    bool
	checksum bool
	usecs    time.Duration
	frames   int
	waits    bool // for a time or a number of frames

	sibling siblings
	options gro.Options
	engine  *gro.Engine // nil: the model cannot merge
	through bool        // Wire.PassThrough, and nothing is in its way
	batch   []gro.Packet
	lent    []*Frame // the engine refers to their bytes
	held    int      // frames that the engine holds
	parts   [][]byte
	header  [headroom]byte
	gone    error
}
