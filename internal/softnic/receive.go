package softnic

import (
	"errors"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

func (r *receiver) init(l *lane, cfg Config) error {
	r.size = l.dst.model.RX.Ring
	var can bool
	if r.options, can = l.dst.mergeOptions(cfg.Seed); can {
		engine, err := gro.New(r.options)
		if err != nil {
			return &ConfigError{"RX.Merge of " + l.dst.model.Name, err, "possible options"}
		}
		r.engine = engine
	}
	t := &l.tx
	r.through = cfg.Wire.PassThrough && can && !t.timed && l.wire.plain &&
		len(t.segment) == 0 && len(r.hooks) == 0
	r.parts = make([][]byte, 0, 64)
	r.batch = make([]gro.Packet, 0, Budget)
	r.load(l.dst)
	return nil
}

// load takes over the present settings of the port.
func (r *receiver) load(p *port) {
	r.merge = r.engine != nil && p.settings[atMerge].Load() != 0
	if on := p.settings[atChecksum].Load() != 0; on != r.checksum {
		r.checksum, r.sibling = on, siblings{}
	}
	r.usecs = time.Duration(p.settings[atUsecs].Load()) * time.Microsecond
	r.frames = int(p.settings[atFrames].Load())
	r.waits = r.usecs > 0 || r.frames > 0 || r.options.Hold > 0
}

// arrive puts a frame into the RX ring.
func (l *lane) arrive(f *Frame) {
	r := &l.rx
	if r.ring.n >= r.size {
		l.lose(f, RXNoBuffer)
		return
	}
	l.c[RXFrames]++
	l.c[RXBytes] += uint64(len(f.Data))
	r.ring.push(f)
	if r.ring.n >= Budget && r.due(f.at) {
		l.poll(f.at) // the host polls while the wire brings more
	}
}

// due reports whether the host takes frames out of the ring now: it is at it,
// or an interrupt calls it.
func (r *receiver) due(now time.Duration) bool {
	switch {
	case r.ring.n == 0:
		return false
	case r.polling || r.usecs == 0 && r.frames == 0:
		return true
	case r.frames > 0 && r.ring.n >= r.frames:
		return true
	}
	return r.usecs > 0 && now-r.ring.first().at >= r.usecs
}

// next is when an interrupt or the end of a hold is due.
func (r *receiver) next() time.Duration {
	at := never
	if r.ring.n > 0 {
		at = r.ring.first().at + r.usecs
		if r.usecs == 0 && r.frames > 0 {
			at += idleInterrupt
		}
	}
	if r.held > 0 && r.options.Hold > 0 {
		if d, ok := r.engine.Deadline(); ok {
			at = min(at, d)
		}
	}
	return at
}

// idleInterrupt bounds the wait for rx-frames without rx-usecs, which on some
// cards would last forever.
const idleInterrupt = 10 * time.Millisecond

// receive polls until the ring is empty, if the host is called at all, and ends
// what is held.
func (l *lane) receive(now time.Duration) {
	r := &l.rx
	if r.usecs == 0 && r.frames > 0 && r.ring.n > 0 && now-r.ring.first().at >= idleInterrupt {
		r.polling = true
		l.c[RXInterrupt]++
	}
	for r.polling || r.due(now) {
		l.poll(now)
	}
	if r.held > 0 && r.options.Hold > 0 {
		l.merged(r.engine.Flush(now))
	}
}

// poll is one call of the driver's poll function: at most Budget frames. One
// that finds fewer is the last, and ends what is held (napi_complete_done).
func (l *lane) poll(now time.Duration) {
	r := &l.rx
	if !r.polling {
		r.polling = true
		l.c[RXInterrupt]++
	}
	l.c[RXPolls]++
	done := 0
	for ; done < Budget && r.ring.n > 0; done++ {
		l.pick(r.ring.pop())
	}
	l.push(now)
	if done == Budget {
		return
	}
	r.polling = false
	if r.held > 0 && (r.options.Hold == 0 || !r.merge) {
		l.merged(r.engine.FlushAll())
	}
	l.giveBackLent()
}

// pick inspects one frame, runs the hooks and sends it on.
func (l *lane) pick(f *Frame) {
	r := &l.rx
	what, mergeable := l.inspect(f)
	f.Checked, f.Valid = r.checksum, what == good
	if len(r.hooks) == 0 {
		l.accept(f, what, mergeable)
		return
	}
	times := 1
	for _, h := range r.hooks {
		switch h(f) {
		case Pass, Later, Stick:
		case Twice:
			times++
		case Drop:
			l.lose(f, RXFault)
			return
		}
	}
	if what == good && !f.Valid { // a hook knows better
		what = unknown
	}
	mergeable = l.mergeable(f)
	for range times - 1 {
		l.c[RXExtra]++
		l.accept(l.pool.copyOf(f), what, mergeable)
	}
	l.accept(f, what, mergeable)
}

// accept counts what is known of the checksums, and offers the frame to the
// aggregation or hands it up.
func (l *lane) accept(f *Frame, what finding, mergeable bool) {
	r := &l.rx
	if f.Valid {
		what = good // in the eyes of a hook, at least
	}
	l.c[what.station()]++
	if !r.merge || !mergeable {
		l.push(f.at) // what came before goes first
		l.upFrame(f)
		return
	}
	p := gro.Packet{Data: f.Data}
	if f.Valid {
		p.Header.Flags = vnet.DataValid
		p.Level = 1
	}
	r.batch = append(r.batch, p)
	r.lent = append(r.lent, f)
}

// mergeable reports whether the virtio header of the receiving host could
// describe an aggregate of such frames: it knows no GRE and no IP in IP.
func (l *lane) mergeable(f *Frame) bool {
	switch f.Layout().Tunnel {
	case packet.NoTunnel:
		return true
	case packet.VXLAN, packet.Geneve:
		return l.dst.format.Size == vnet.Tunnel.Size
	case packet.GRE, packet.IPInIP:
	}
	return false
}

// accepts reports whether a super-packet of count frames is one that the
// receiving model could have merged.
func (r *receiver) accepts(p *Frame, count int) bool {
	o := &r.options
	base := p.Header.GSOType.Base()
	switch {
	case o.Policy == gro.LRO || !p.Partial():
		return false
	case base == vnet.GSOUDPL4:
		return o.UDP && !p.Header.GSOType.UDPTunnel()
	case base == vnet.GSOUDP || p.Header.GSOType.UDPTunnel():
		return false
	case o.MaxSize > 0 && len(p.Data)-packet.EthernetLen >= o.MaxSize:
		return false
	}
	return o.MaxSegments == 0 || count <= o.MaxSegments
}

// push gives the batch to the aggregation.
func (l *lane) push(now time.Duration) {
	r := &l.rx
	if len(r.batch) == 0 {
		return
	}
	r.held += len(r.batch)
	l.merged(r.engine.Push(now, r.batch...))
	r.batch = r.batch[:0]
	if !r.options.Gather {
		l.giveBackLent()
	}
}

// giveBackLent takes frames back that the engine does not refer to any more.
func (l *lane) giveBackLent() {
	r := &l.rx
	for _, f := range r.lent {
		l.pool.put(f)
	}
	r.lent = r.lent[:0]
}

// merged hands up what the aggregation has completed.
func (l *lane) merged(outs []gro.Output) {
	r := &l.rx
	for i := range outs {
		o := &outs[i]
		h := o.Header
		if h.GSOType == vnet.GSONone {
			h.GSOSize = 0 // classic LRO knows it, and does not say
		}
		if o.Segments > 1 {
			l.c[RXSuper]++
			l.c[RXMerged] += uint64(o.Segments)
		}
		n := l.dst.format.Size
		_ = l.dst.format.Put(r.header[:n], h) // the size was checked by New
		r.parts = append(append(r.parts[:0], r.header[:n], o.Data), o.Payload...)
		r.held -= o.Segments
		l.up(o.Segments, o.Len())
	}
}

// upFrame hands up one frame as it is.
func (l *lane) upFrame(f *Frame) {
	var h vnet.Header
	if f.Valid {
		h.Flags = vnet.DataValid
	}
	at := headroom - l.dst.format.Size
	_ = l.dst.format.Put(f.buf[at:], h) // likewise
	r := &l.rx
	r.parts = append(r.parts[:0], f.buf[at:headroom+len(f.Data)])
	l.up(1, len(f.Data))
	l.pool.put(f)
}

// up hands the packet in parts, of so many frames and bytes, to the host.
func (l *lane) up(frames, bytes int) {
	r := &l.rx
	err := l.out.Write(r.parts)
	if err == nil {
		l.c[RXPackets]++
		l.c[RXUp] += uint64(frames)
		l.c[RXUpBytes] += uint64(bytes)
		return
	}
	switch {
	case errors.Is(err, ErrDown):
		l.c[RXDown] += uint64(frames)
	case errors.Is(err, ErrNoMemory):
		l.c[RXNoMemory] += uint64(frames)
	default:
		l.c[RXRefused] += uint64(frames)
		if !errors.Is(err, ErrRefused) {
			r.gone = err
		}
	}
}
