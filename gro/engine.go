package gro

import (
	"time"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// A Packet is one received packet and what its receiver knows about it.
type Packet struct {
	// Data is the packet, or its first part.
	Data []byte
	// Rest holds further parts of a packet that is spread over buffers. The
	// headers may straddle them.
	Rest [][]byte
	// Header is the virtio_net_hdr that came with the packet, zero without
	// one. DataValid says that the device verified the checksum, NeedsCsum that
	// it is not filled in yet, a GSO type that the packet is already an
	// aggregate.
	Header vnet.Header
	// Hash is the receive hash. It chooses the bucket; 0 is the first.
	Hash uint32
	// Level is how many checksums beside the first DataValid vouches for
	// (csum_level), from the outermost on.
	Level uint8
	// Trusted says of an aggregate that a device made it. Linux merges further
	// only those: what a guest or a program wrote is not (SKB_GSO_DODGY).
	Trusted bool
}

// An Output is a packet or an aggregate that leaves the engine.
type Output struct {
	// Data is the packet; of an aggregate, or a packet in parts, that has
	// Payload, it is only the beginning.
	Data []byte
	// Payload is the rest, in order. It is empty in copying mode, except for
	// packets that were pushed in parts and passed.
	Payload [][]byte
	// Header describes Data and Payload. The zero value is an ordinary packet.
	// The header of an aggregate in a GRE or IP-in-IP tunnel says nothing of
	// the tunnel, as virtio_net_hdr cannot.
	Header vnet.Header
	// Segments is how many segments it holds, 1 for a packet.
	Segments int
	// Reason says why it leaves.
	Reason Reason
	// Tunnel is the tunnel that an aggregate is in.
	Tunnel packet.Tunnel
	// FixedID says that the IPv4 IDs of all segments are the same
	// (SKB_GSO_TCP_FIXEDID), those of the outer header in a tunnel, and
	// FixedInnerID the inner ones. A splitter that counts up instead does not
	// give back what was merged; the options of package gso have the same names.
	FixedID, FixedInnerID bool
}

// Len returns the number of bytes in Data and Payload.
func (o *Output) Len() int {
	n := len(o.Data)
	for _, p := range o.Payload {
		n += len(p)
	}
	return n
}

// An Engine merges packets. It is not safe for concurrent use: a receive queue
// has one of its own.
type Engine struct {
	opt        Options
	l3         int  // 14 or 0
	link       bool // packets begin with an Ethernet header
	maxSize    int  // from the first byte on
	maxSegs    int
	perList    int
	last       *flow // of the fast path
	recent     *flow // of the general way
	masks      [8]mask
	nextMask   int
	bucketMask uint32
	seed       [2]uint64
	table      table
	lists      []list
	held       int
	flows      []*flow // all there are
	free       []*flow
	done       []*flow  // the caller reads their outputs
	large      [][]byte // buffers that are not in use
	larges     int      // how many there are
	out        []Output
	counts     [reasons]uint64
	h          headers
	fixed      uint8  // what merge would make of flow.fixed
	scratch    []byte // a packet in parts, in one piece
}

// New returns an engine, or an [OptionError]. It reserves memory for MaxFlows
// flows of two segments; buffers for larger ones follow as they are needed.
func New(opt Options) (*Engine, error) {
	if err := opt.normalize(); err != nil {
		return nil, err
	}
	e := &Engine{
		opt: opt, link: opt.Start == packet.StartEthernet,
		maxSize: opt.MaxSize, maxSegs: opt.MaxSegments,
		perList: opt.MaxFlows / opt.Buckets,
		seed:    [2]uint64{0x9e3779b97f4a7c15 ^ opt.Seed, 0xd1b54a32d192ed03 ^ opt.Seed<<1},
		table:   newTable(opt.MaxFlows),
		lists:   make([]list, opt.Buckets),
		out:     make([]Output, 0, opt.MaxFlows),
		done:    make([]*flow, 0, opt.MaxFlows),
	}
	e.bucketMask = uint32(opt.Buckets - 1)
	if e.link {
		e.l3 = packet.EthernetLen
		e.maxSize += packet.EthernetLen
	}
	if e.maxSegs == 0 {
		e.maxSegs = MaxMaxSize
	}
	e.grow(opt.MaxFlows)
	return e, nil
}

// Push offers packets in the order they were received at the time now, which
// counts from any fixed instant and does not go back. It returns what is
// completed by them, in Linux's order. The outputs, and the memory of the
// engine that they refer to, are valid until the next call.
//
// In copying mode the pushed bytes are free again with the outputs; with
// Options.Gather each pushed buffer must stay until the output with its payload
// has been used. They are not written to.
func (e *Engine) Push(now time.Duration, pkts ...Packet) []Output {
	e.reset()
	if e.opt.Hold > 0 {
		e.expire(now)
	}
	for i := range pkts {
		if pk := &pkts[i]; e.opt.Policy != Linux || !e.fast(now, pk) && !e.template(pk) {
			e.receive(now, pk)
		}
	}
	return e.out
}

// Flush completes what has been held for Options.Hold at the time now, and
// everything if Hold is 0: the end of a poll. It goes through the buckets in
// order, oldest packet first. The outputs are valid until the next call.
func (e *Engine) Flush(now time.Duration) []Output {
	e.reset()
	if e.opt.Hold > 0 {
		e.expire(now)
		return e.out
	}
	e.flushAll()
	return e.out
}

// FlushAll completes everything, whatever its age.
func (e *Engine) FlushAll() []Output {
	e.reset()
	e.flushAll()
	return e.out
}

func (e *Engine) flushAll() {
	for i := range e.lists {
		for f := e.lists[i].oldest; f != nil; f = e.lists[i].oldest {
			e.complete(f, Flushed)
		}
	}
}

func (e *Engine) expire(now time.Duration) {
	for i := range e.lists {
		for f := e.lists[i].oldest; f != nil && now-f.at >= e.opt.Hold; f = e.lists[i].oldest {
			e.complete(f, Timeout)
		}
	}
}

// Deadline returns the time at which the oldest held packet reaches
// Options.Hold: when to call Flush at the latest. It reports false if nothing
// is held.
func (e *Engine) Deadline() (at time.Duration, ok bool) {
	for i := range e.lists {
		if f := e.lists[i].oldest; f != nil && (!ok || f.at+e.opt.Hold < at) {
			at, ok = f.at+e.opt.Hold, true
		}
	}
	return at, ok
}

// Held returns the number of packets and aggregates that are held.
func (e *Engine) Held() int { return e.held }

// Count returns how many outputs left for a reason since New.
func (e *Engine) Count(r Reason) uint64 {
	if r >= reasons {
		return 0
	}
	return e.counts[r]
}

// reset takes back what the outputs of the last call referred to.
func (e *Engine) reset() {
	for _, f := range e.done {
		e.release(f)
	}
	e.done = e.done[:0]
	e.out = e.out[:0]
}

// receive is dev_gro_receive of net/core/gro.c.
func (e *Engine) receive(now time.Duration, pk *Packet) {
	b := pk.Data
	if len(pk.Rest) > 0 {
		b = e.join(pk)
	}
	h := &e.h
	h.bucket = pk.Hash & e.bucketMask
	e.claims(pk)
	if e.opt.Policy == LRO {
		e.receiveLRO(now, pk, b)
		return
	}
	r := e.parse(b, h)
	switch {
	case r != accepted:
		e.fail(pk, b, r)
	case h.pay > MaxHeader:
		h.reached = true
		e.fail(pk, b, LongHeader)
	case h.proto == packet.ProtoUDP:
		e.receiveUDP(now, pk, b)
	default:
		e.receiveTCP(now, pk, b)
	}
}

// claims notes what is known of the packet's checksums.
func (e *Engine) claims(pk *Packet) {
	h := &e.h
	h.good, h.partial = 0, false
	if pk.Header.Flags != 0 {
		if pk.Header.Flags&vnet.NeedsCsum != 0 {
			h.partial, h.start = true, int(pk.Header.CsumStart)
		} else if pk.Header.Flags&vnet.DataValid != 0 {
			h.good = 1 + int(pk.Level)
		}
	}
	if e.opt.TrustChecksums && h.good == 0 {
		h.good = 1
	}
}

// join brings a packet in parts into one piece, which lives until the next one.
func (e *Engine) join(pk *Packet) []byte {
	e.scratch = append(e.scratch[:0], pk.Data...)
	for _, p := range pk.Rest {
		e.scratch = append(e.scratch, p...)
	}
	return e.scratch
}

// pass delivers a packet as it came.
func (e *Engine) pass(pk *Packet, r Reason, valid bool) {
	e.counts[r]++
	o := e.output()
	o.Data, o.Payload, o.Header, o.Segments, o.Reason = pk.Data, pk.Rest, pk.Header, 1, r
	if pk.Header.GSOType != vnet.GSONone {
		o.Segments = e.segments(pk)
	}
	if valid && pk.Header.Flags&vnet.NeedsCsum == 0 {
		o.Header.Flags |= vnet.DataValid
	}
}
