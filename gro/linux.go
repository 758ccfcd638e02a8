package gro

import (
	"time"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

const (
	endFlags  = packet.FIN | packet.PSH
	holdFlags = packet.URG | packet.PSH | packet.RST | packet.SYN | packet.FIN // are not held
)

// receiveTCP is tcp_gro_receive, and what dev_gro_receive does after it.
func (e *Engine) receiveTCP(now time.Duration, pk *Packet, b []byte) {
	h := &e.h
	n := len(b) - h.pay
	flags := b[h.l4+13]
	segs, gso, whole := 1, n, true // whole: no short segment in a pushed aggregate
	if pk.Header.GSOType != vnet.GSONone {
		gso, segs = int(pk.Header.GSOSize), e.segments(pk)
		whole = n == segs*gso
		if !pk.Trusted || !h.isTCP(pk.Header) {
			h.flush = true
		}
	}
	hash := e.identify(b, h)
	f := e.find(b, hash)
	why := accepted
	if f != nil {
		if why = e.tcpMismatch(f, b, n, pk); why == accepted {
			e.mergeTCP(f, pk, b, segs, whole)
			return
		}
	}
	switch {
	case h.flush && pk.Header.GSOType != vnet.GSONone:
		e.turnAway(f, why, pk, b, AlreadyMerged)
	case h.flush:
		e.turnAway(f, why, pk, b, BadLength)
	case e.opt.Policy == Hardware && !e.eligible(b):
		e.turnAway(f, BadFollower, pk, b, NotEligible)
	case n == 0:
		e.turnAway(f, why, pk, b, NoPayload)
	case flags&(packet.URG|packet.RST|packet.SYN) != 0:
		e.turnAway(f, why, pk, b, Control)
	case flags&endFlags != 0, !whole:
		e.turnAway(f, why, pk, b, LoneEnd)
	default:
		g := e.hold(f, why, pk, b, hash)
		if g == nil {
			return
		}
		g.gso, g.count, g.at = gso, segs, now
		g.seq = be.Uint32(b[h.l4+4:]) + uint32(n)
		g.prepare(e, b)
		e.insert(g)
		e.recent = g
	}
}

// tcpMismatch returns accepted if the packet may be appended to f, or why not.
func (e *Engine) tcpMismatch(f *flow, b []byte, n int, pk *Packet) Reason {
	h := &e.h
	x, y := f.buf[h.l4:], b[h.l4:]
	// The acknowledgment number, then the fourth word without FIN and PSH.
	d := le.Uint64(x[8:]) ^ le.Uint64(y[8:])
	ignore := uint64(endFlags)
	if e.opt.Semantics == Linux612 {
		ignore |= packet.CWR
	}
	cwr := e.opt.Semantics != Linux72 && y[13]&packet.CWR != 0
	if d&^(ignore<<40) != 0 || cwr {
		switch {
		case uint32(d) != 0:
			return AckChanged
		case d>>48 != 0:
			return WindowChanged
		}
		return FlagsChanged
	}
	if h.pay-h.l4 != packet.TCPMinLen && string(x[packet.TCPMinLen:h.pay-h.l4]) != string(y[packet.TCPMinLen:h.pay-h.l4]) {
		return OptionsChanged
	}
	if r := e.ipMismatch(f, b); r != accepted {
		return r
	}
	switch {
	case n == 0:
		return EmptySegment
	case pk.Header.GSOType != vnet.GSONone && int(pk.Header.GSOSize) != f.gso, h.flush:
		return BadFollower
	case pk.Header.GSOType == vnet.GSONone && n > f.gso:
		return Larger
	case be.Uint32(y[4:]) != f.seq:
		return OutOfOrder
	case f.size+n >= e.limit():
		return SizeLimit
	case e.opt.Policy == Hardware && !e.eligible(b):
		return BadFollower
	}
	return accepted
}

// isTCP reports whether a pushed aggregate claims to be what it is.
func (h *headers) isTCP(v vnet.Header) bool {
	want := vnet.GSOTCPv4
	if h.v6 {
		want = vnet.GSOTCPv6
	}
	return v.GSOType.Valid() && v.GSOType.Base() == want && v.GSOSize > 0
}

// limit is the size, from the first byte on, that an aggregate stays below. BIG
// TCP is not for tunnels.
func (e *Engine) limit() int {
	if e.opt.MaxSize > DefaultMaxSize && (e.h.o4 != 0 || e.h.proto != packet.ProtoTCP) {
		return e.maxSize - e.opt.MaxSize + DefaultMaxSize
	}
	return e.maxSize
}

// mergeTCP appends the packet to f if its checksum is right. If it is not the
// packet is passed and f stays as it is (Linux verifies first).
func (e *Engine) mergeTCP(f *flow, pk *Packet, b []byte, segs int, whole bool) {
	h := &e.h
	if !e.absorb(f, pk, b) {
		return
	}
	e.recent = f
	f.count += segs
	n := len(b) - h.pay
	f.seq += uint32(n)
	flags := b[h.l4+13]
	f.buf[h.l4+13] |= flags & endFlags
	switch {
	case flags&packet.PSH != 0:
		e.complete(f, Push)
	case flags&packet.FIN != 0:
		e.complete(f, Fin)
	case segs == 1 && n < f.gso, !whole:
		e.complete(f, Short)
	case f.count >= e.maxSegs:
		e.complete(f, SegmentLimit)
	}
}

// receiveUDP is udp_gro_receive_segment, and what dev_gro_receive does after it.
func (e *Engine) receiveUDP(now time.Duration, pk *Packet, b []byte) {
	h := &e.h
	u := packet.UDP(b[h.l4:])
	n := len(b) - h.pay
	aggregate := pk.Header.GSOType != vnet.GSONone
	h.flush = h.flush || aggregate
	none := u.Checksum() == 0
	switch {
	case !e.opt.UDP || e.opt.Policy == Hardware && e.opt.Limits.MinSize > len(b)-h.l3:
		e.turnAway(nil, accepted, pk, b, NotEligible)
		return
	case none:
		e.turnAway(nil, accepted, pk, b, NoChecksum)
		return
	case n <= 0 || u.Length() != packet.UDPLen+n:
		e.turnAway(nil, accepted, pk, b, BadLength)
		return
	}
	hash := e.identify(b, h)
	f := e.find(b, hash)
	why := accepted
	if f != nil {
		why = e.ipMismatch(f, b)
		switch {
		case why != accepted:
		case n > f.gso:
			why = Larger
		case h.flush:
			why = BadFollower
		case f.size+n >= e.limit():
			why = SizeLimit
		default:
			e.mergeUDP(f, pk, b)
			return
		}
	}
	if h.flush {
		r := BadLength
		if aggregate {
			r = AlreadyMerged
		}
		e.turnAway(f, why, pk, b, r)
		return
	}
	if g := e.hold(f, why, pk, b, hash); g != nil {
		g.gso, g.count, g.at = n, 1, now
		g.words.quick = false
		e.insert(g)
		e.recent = g
	}
}

func (e *Engine) mergeUDP(f *flow, pk *Packet, b []byte) {
	if !e.absorb(f, pk, b) {
		return
	}
	e.recent = f
	f.count++
	switch {
	case len(b)-e.h.pay < f.gso:
		e.complete(f, Short)
	case f.count >= min(MaxUDPSegments, e.maxSegs):
		e.complete(f, SegmentLimit)
	}
}

// absorb appends the payload to f and reports whether it did: a packet whose
// checksum is wrong is passed instead.
func (e *Engine) absorb(f *flow, pk *Packet, b []byte) bool {
	pay := b[e.h.pay:]
	e.room(f, len(pay))
	inner, outer := e.unverified(b)
	var sum checksum.Partial
	switch {
	case e.opt.Gather:
		if inner || outer {
			sum = checksum.Sum(pay)
		}
	case inner || outer:
		sum = checksum.CopySum(f.buf[f.size:], pay)
	default:
		copy(f.buf[f.size:], pay)
	}
	if inner || outer {
		if ok, valid := e.verify(b, sum, inner, outer); !ok {
			e.corrupt(f, pk, valid)
			return false
		}
	}
	if e.opt.Gather {
		f.refs = appendRefs(f.refs, pk, e.h.pay)
	}
	f.size += len(pay)
	f.fixed = e.fixed
	f.words.quick = false // the general way does not keep them
	f.pushed++
	return true
}

// hold makes the packet a flow that is not yet inserted, after completing f for
// the reason why. It returns nil if the packet's checksum is wrong, which
// leaves f alone, or if the policy has no room; then the packet is passed.
func (e *Engine) hold(f *flow, why Reason, pk *Packet, b []byte, hash uint32) *flow {
	h := &e.h
	if e.opt.Policy != Linux && f == nil && e.full() || len(b) > e.maxSize {
		r := NoRoom
		if len(b) > e.maxSize {
			r = NotEligible
		}
		e.turnAway(f, why, pk, b, r)
		return nil
	}
	g := e.take(len(b))
	inner, outer := e.unverified(b)
	var sum checksum.Partial
	switch {
	case e.opt.Gather:
		copy(g.buf, b[:h.pay])
		if inner || outer {
			sum = checksum.Sum(b[h.pay:])
		}
		g.first, g.parts = pk.Data, len(pk.Rest) > 0
		g.refs = appendRefs(g.refs[:0], pk, h.pay)
	case inner || outer:
		copy(g.buf, b[:h.pay])
		sum = checksum.CopySum(g.buf[h.pay:], b[h.pay:])
	default:
		copy(g.buf, b)
	}
	ok, valid := e.verify(b, sum, inner, outer)
	if !ok {
		e.release(g)
		e.corrupt(f, pk, valid)
		return nil
	}
	if f != nil {
		e.complete(f, why)
	}
	g.sig, g.hash, g.bucket = h.sig, hash, h.bucket
	g.l3, g.l4, g.pay, g.o3, g.o4 = h.l3, h.l4, h.pay, h.o3, h.o4
	g.size, g.fixed, g.valid, g.in, g.pushed = len(b), 0, valid, pk.Header, 1
	return g
}

// turnAway passes a packet that is not held, after completing f, which it
// follows in its flow, for the reason why. With a wrong checksum it does not
// count as f's follower.
func (e *Engine) turnAway(f *flow, why Reason, pk *Packet, b []byte, r Reason) {
	inner, outer := e.unverified(b)
	var sum checksum.Partial
	if inner || outer {
		sum = checksum.Sum(b[e.h.pay:])
	}
	ok, valid := e.verify(b, sum, inner, outer)
	if !ok {
		e.corrupt(f, pk, valid)
		return
	}
	if f != nil {
		e.complete(f, why)
	}
	e.pass(pk, r, valid)
}

// corrupt passes a packet whose checksum is wrong. Linux leaves the flow that it
// pretends to be of alone; a device ends it, so that it stays in order.
func (e *Engine) corrupt(f *flow, pk *Packet, valid bool) {
	if f != nil && e.opt.Policy == Hardware {
		e.complete(f, BadFollower)
	}
	e.pass(pk, BadChecksum, valid)
}
