package softnic

import (
	"time"

	"github.com/offlab/offlab/packet"
)

// maxFlight bounds the frames on a wire with a delay: 65,536 frames of 1,514
// bytes are 100 MB.
const maxFlight = 1 << 16

// overtakeTime is how long a frame that is to be overtaken waits for another.
const overtakeTime = time.Millisecond

func (w *wire) init(cfg Config, port, queue int, ln *line) {
	w.Wire, w.line, w.tap, w.port, w.queue = cfg.Wire, ln, cfg.Tap, port, queue
	w.rand = random(cfg.Seed, port, queue, 0)
	w.plain = w.Loss == 0 && w.Dup == 0 && w.Reorder == 0 && w.Corrupt == 0 && w.MTU == 0 &&
		w.Delay == 0 && w.tap == nil && len(w.hooks) == 0
}

// carry takes a frame at f.at, when it has left the ring.
func (l *lane) carry(f *Frame) {
	w := &l.wire
	if w.plain {
		l.arrive(f)
		return
	}
	if w.tap != nil {
		w.tap(Tapped{f.at, w.port, w.queue, f.Data})
	}
	if w.MTU > 0 && len(f.Data) > w.MTU+linkLen(f.Data) {
		l.lose(f, WireTooLong)
		return
	}
	times, ok := l.onWire(f)
	if !ok {
		return
	}
	// Each property draws its number for each frame, so that one does not
	// shift what the others do.
	lost, dup, reorder, corrupt := w.draw(w.Loss), w.draw(w.Dup), w.draw(w.Reorder), w.draw(w.Corrupt)
	if lost {
		l.lose(f, WireLost)
		return
	}
	if corrupt {
		l.c[WireCorrupt]++
		w.corrupt(f)
	}
	if dup {
		times++
	}
	for range times - 1 {
		l.c[WireExtra]++
		g := l.pool.copyOf(f)
		g.at = f.at
		l.fly(g)
	}
	if reorder && w.held == nil {
		l.c[WireReorder]++
		w.held, w.heldAt = f, f.at
		return
	}
	l.fly(f)
	l.overtake(f.at)
}

// onWire runs the hooks of the wire. It reports false if one ended the frame,
// and how often it goes on.
func (l *lane) onWire(f *Frame) (times int, ok bool) {
	times = 1
	for _, h := range l.wire.hooks {
		switch h(f) {
		case Pass, Later, Stick:
		case Twice:
			times++
		case Drop:
			l.lose(f, WireFault)
			return 0, false
		}
	}
	return times, true
}

func (l *lane) lose(f *Frame, at Station) {
	l.c[at]++
	l.pool.put(f)
}

// draw decides with a probability. A property that is off draws nothing.
func (w *wire) draw(share float64) bool { return share > 0 && w.rand.Float64() < share }

// corrupt turns one bit over, behind the Ethernet header: a frame with another
// address would be nobody's.
func (w *wire) corrupt(f *Frame) {
	if n := len(f.Data) - packet.EthernetLen; n > 0 {
		bit := w.rand.IntN(8 * n)
		f.Data[packet.EthernetLen+bit/8] ^= 1 << (bit % 8)
		f.origin = 0
		f.Changed()
	}
}

// overtake lets the frame go that had to be overtaken.
func (l *lane) overtake(at time.Duration) {
	if f := l.wire.held; f != nil {
		l.wire.held = nil
		f.at = at
		l.fly(f)
	}
}

// fly brings a frame to the other end, now or after the delay.
func (l *lane) fly(f *Frame) {
	w := &l.wire
	if w.Delay == 0 {
		l.arrive(f)
		return
	}
	if w.air.n >= maxFlight {
		l.lose(f, WireFull)
		return
	}
	f.at += w.Delay
	w.air.push(f)
}

// land lets frames arrive whose time has come.
func (l *lane) land(now time.Duration) (n int) {
	w := &l.wire
	for w.air.n > 0 && w.air.first().at <= now {
		l.arrive(w.air.pop())
		n++
	}
	if w.held != nil && now-w.heldAt >= overtakeTime {
		l.overtake(now)
		n++
	}
	return n
}

func (w *wire) next() time.Duration {
	at := never
	if w.air.n > 0 {
		at = w.air.first().at
	}
	if w.held != nil {
		at = min(at, w.heldAt+overtakeTime)
	}
	return at
}

func (w *wire) flight() int {
	if w.held != nil {
		return w.air.n + 1
	}
	return w.air.n
}

// linkLen returns the length of the Ethernet header with its tags.
func linkLen(b []byte) int {
	n := packet.EthernetLen
	for n+packet.VLANLen <= len(b) {
		t := uint16(b[n-2])<<8 | uint16(b[n-1])
		if t != packet.EtherTypeVLAN && t != packet.EtherTypeQinQ {
			break
		}
		n += packet.VLANLen
	}
	return n
}
