package softnic

import (
	"time"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// A step of a lane ends with so many packets or bytes, so that what was read
// first does not wait for what is read last, and all of it stays in a
// second-level cache: it is touched three times.
const (
	stepPackets = Budget
	stepBytes   = 64 << 10
)

// transmit takes packets from the host until there are none, the queue is
// stopped or the step is long enough. It reports whether it left any.
func (l *lane) transmit(now time.Duration) (more bool, err error) {
	t := &l.tx
	for n, from := 0, l.c[TXBytes]; n < stepPackets && l.c[TXBytes]-from < stepBytes && !t.stopped; n++ {
		size, err := l.in.Read(t.buf[headroom-l.src.format.Size:])
		if err != nil {
			if err == ErrAgain { //nolint:errorlint // a value of the data path, never wrapped
				return false, nil
			}
			return false, &PortError{l.src.name, err}
		}
		if l.exact || l.rx.waits {
			now = l.clock()
		}
		l.take(size, now)
	}
	return !t.stopped, nil
}

// take carries one packet of the host, of so many bytes with its header, as far
// as it goes now.
func (l *lane) take(size int, now time.Duration) {
	t := &l.tx
	l.c[TXPackets]++
	hs := l.src.format.Size
	h, err := l.src.format.Get(t.buf[headroom-hs : headroom-hs+max(0, size)])
	if err != nil || size-hs < packet.EthernetLen || size > len(t.buf)-headroom+hs-1 {
		l.c[TXGarbage]++ // too short for a frame, or cut off
		return
	}
	data := t.buf[headroom : headroom+size-hs]
	l.c[TXBytes] += uint64(len(data))
	f := &t.packet
	f.Data, f.Header, f.Index, f.Count, f.Number = data, h, 0, 1, l.c[TXPackets]-1
	f.Changed()
	for range l.before(f) {
		l.send(f, now)
	}
}

// before runs the hooks before segmentation and returns how often the packet
// goes on.
func (l *lane) before(f *Frame) int {
	times := 1
	for _, h := range l.tx.super {
		switch h(f) {
		case Pass, Later:
		case Twice:
			times++
			l.c[TXAgain]++
		case Stick:
			l.tx.free -= l.tx.need(1, len(f.Data))
			l.stopIfFull()
			l.c[TXFault] += uint64(times)
			return 0
		case Drop:
			l.c[TXFault] += uint64(times)
			return 0
		}
	}
	return times
}

// send cuts a packet into frames and puts them on the ring.
func (l *lane) send(p *Frame, now time.Duration) {
	t := &l.tx
	if err := t.cutter.Reset(p.Data, p.Header, cutOptions); err != nil {
		l.c[TXGarbage]++
		return
	}
	count := t.cutter.Len()
	payload := len(p.Data)
	if t.PerHeader > 0 {
		payload -= min(payload, t.cutter.HeaderLen())
	}
	need := t.need(count, payload)
	if need > t.free {
		l.c[TXNoRoom]++
		return
	}
	l.c[TXTaken]++
	if count > 1 {
		l.c[TXSuper]++
	}
	l.c[TXFrames] += uint64(count)
	if l.rx.through && l.pass(p, count) {
		return
	}
	t.free -= need
	each, rest := 0, need // with hardware TSO all go with the last frame
	if t.SoftwareTSO {
		each = need / count
		rest = need - each*(count-1)
	}
	for i := range count {
		f := l.pool.get(max(t.cutter.Size(i), minFrame))
		n, err := t.cutter.Frame(f.Data, i)
		if err != nil { // the room was asked for
			panic("softnic: " + err.Error())
		}
		clear(f.Data[n:])
		f.Header, f.Index, f.Count = p.Header, i, count
		f.Number = t.number
		t.number++
		f.desc = each
		if count > 1 && l.untouched {
			f.origin = l.c[TXPackets]
		}
		if i == count-1 {
			f.desc = rest
		}
		if t.Align > 1 {
			l.align(i, n)
		}
		l.after(f, now)
	}
	l.stopIfFull()
}

// cutOptions are those of a card: padding that the host has left is not data.
var cutOptions = gso.Options{TrimPadding: true}

// minFrame is the shortest Ethernet frame without FCS; the card pads.
const minFrame = 60

// align counts what has to be copied to bring the payload of segment i, in a
// frame of n bytes, to the card's alignment. The host's buffer begins at a
// multiple of it.
func (l *lane) align(i, n int) {
	t := &l.tx
	head := t.cutter.HeaderLen()
	off := i * int(t.packet.Header.GSOSize)
	if i == 0 && t.cutter.Len() == 1 {
		off = head
	}
	if odd := off % t.Align; odd != 0 {
		l.c[TXCopied] += uint64(min(t.Align-odd, max(0, n-head)))
	}
}

// after runs the hooks after segmentation and puts the frame on the ring.
func (l *lane) after(f *Frame, now time.Duration) {
	t := &l.tx
	times, later := 1, false
	for _, h := range t.segment {
		switch h(f) {
		case Pass:
		case Later:
			later = true
		case Twice:
			times++
		case Stick:
			l.c[TXStuck]++
			l.pool.put(f)
			l.afterLater(now)
			return
		case Drop:
			l.c[TXLost]++
			l.giveBack(f.desc)
			l.pool.put(f)
			l.afterLater(now)
			return
		}
	}
	if later && !f.Last() && t.later == nil {
		t.later = f
		return
	}
	for range times - 1 {
		l.c[TXExtra]++
		l.enqueue(l.pool.copyOf(f), now)
	}
	l.enqueue(f, now)
	l.afterLater(now)
}

// afterLater lets the frame go that waited for the one just sent.
func (l *lane) afterLater(now time.Duration) {
	if f := l.tx.later; f != nil {
		l.tx.later = nil
		l.enqueue(f, now)
	}
}

// enqueue puts a frame on the ring, and off again if nothing takes time.
func (l *lane) enqueue(f *Frame, now time.Duration) {
	t := &l.tx
	if !t.timed {
		f.at = now
		l.leave(f)
		return
	}
	f.at = l.wire.line.reserve(t.bus.reserve(now, len(f.Data)), max(minFrame, len(f.Data))+frameOverhead)
	t.ring.push(f)
}

// frameOverhead is what a frame takes of a line beside its bytes: preamble and
// start 8, FCS 4, gap 12 (IEEE 802.3).
const frameOverhead = 24

// depart lets frames leave the ring whose time has come.
func (l *lane) depart(now time.Duration) (n int) {
	q := &l.tx.ring
	for q.n > 0 && q.first().at <= now {
		l.leave(q.pop())
		n++
	}
	return n
}

// leave gives a frame to the wire and its descriptors to the driver.
func (l *lane) leave(f *Frame) {
	l.c[WireFrames]++
	l.c[WireBytes] += uint64(len(f.Data))
	l.giveBack(f.desc)
	l.carry(f)
}

func (l *lane) giveBack(desc int) {
	t := &l.tx
	t.free += desc
	if t.stopped && t.free >= t.Wake {
		t.stopped = false
		l.c[TXWakes]++
	}
}

// stopIfFull stops the queue when the next packet might not fit.
func (l *lane) stopIfFull() {
	t := &l.tx
	if !t.stopped && t.free < t.Stop {
		t.stopped = true
		l.c[TXStops]++
	}
}

// pass hands a packet of count frames to the receiving host as it is, and
// reports whether it could.
func (l *lane) pass(p *Frame, count int) bool {
	r := &l.rx
	if !r.merge || !r.checksum || count > 1 && !r.accepts(p, count) || r.ring.n+r.held > 0 {
		return false
	}
	h, at := p.Header, RXGood
	if h.Flags&vnet.NeedsCsum == 0 {
		h.Flags = vnet.DataValid
		if what := found(p); what != good {
			h.Flags, at = 0, what.station()
		}
	}
	l.c[at] += uint64(count)
	bytes := uint64(len(p.Data) + (count-1)*l.tx.cutter.HeaderLen())
	l.c[WireFrames] += uint64(count)
	l.c[WireBytes] += bytes
	l.c[RXFrames] += uint64(count)
	l.c[RXBytes] += bytes
	l.c[RXInterrupt]++
	l.c[RXPolls]++
	if count > 1 {
		l.c[RXSuper]++
		l.c[RXMerged] += uint64(count)
	}
	from := headroom - l.dst.format.Size
	_ = l.dst.format.Put(l.tx.buf[from:], h) // the size was checked by New
	r.parts = append(r.parts[:0], l.tx.buf[from:headroom+len(p.Data)])
	l.up(count, len(p.Data))
	return true
}
