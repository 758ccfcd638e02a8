package gro

import (
	"time"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

// lroState is what LRO keeps of the segments beside their payload.
type lroState struct {
	ack, echo uint32           // of the last segment
	value     uint32           // timestamp of the first segment (PAWS)
	window    uint16           // of the last segment
	stamped   bool             // the first segment has a timestamp
	sum       checksum.Partial // of the payload, as the segments' checksums have it
}

const lroSig = 1 << 63

// receiveLRO is __lro_proc_skb of net/ipv4/inet_lro.c, with the headers that a
// driver would have found.
func (e *Engine) receiveLRO(now time.Duration, pk *Packet, b []byte) {
	h := &e.h
	if r := e.parseLRO(b, h); r != accepted {
		e.pass(pk, r, false)
		return
	}
	h.sig = lroSig | uint64(h.bucket)
	hash := e.hashLRO(b)
	f := e.findLRO(b, hash)
	r := h.lroCheck(b, f)
	switch {
	case f != nil && be.Uint32(b[h.l4+4:]) != f.seq:
		e.complete(f, OutOfOrder)
		e.pass(pk, LoneEnd, false)
	case r != accepted:
		if f != nil {
			e.complete(f, BadFollower)
		}
		e.pass(pk, r, false)
	case f != nil:
		e.appendLRO(f, pk, b)
	case e.full() || len(b) > e.maxSize || pk.Header.GSOType != vnet.GSONone:
		e.pass(pk, NoRoom, false)
	default:
		e.startLRO(now, pk, b, hash)
	}
}

// parseLRO finds the IPv4 and TCP headers, behind at most one VLAN tag.
func (e *Engine) parseLRO(b []byte, h *headers) Reason {
	h.pay, h.o4 = 0, 0
	off := 0
	if e.link {
		if len(b) < packet.EthernetLen {
			return Truncated
		}
		et := be.Uint16(b[12:])
		off = packet.EthernetLen
		if et == packet.EtherTypeVLAN && len(b) >= off+packet.VLANLen {
			et = be.Uint16(b[off+2:])
			off += packet.VLANLen
		}
		if et != packet.EtherTypeIPv4 {
			return Unknown
		}
	}
	if len(b)-off < packet.IPv4MinLen {
		return Truncated
	}
	ip := packet.IPv4(b[off:])
	if ip[0]>>4 != 4 || ip.Proto() != packet.ProtoTCP {
		return Unknown
	}
	if ip.FragmentField()&0x3fff != 0 {
		return Fragmented
	}
	h.l3, h.l4 = off, off+ip.HeaderLen()
	if ip.HeaderLen() < packet.IPv4MinLen || len(b)-h.l4 < packet.TCPMinLen {
		return Truncated
	}
	h.pay = h.l4 + packet.TCP(b[h.l4:]).HeaderLen()
	if h.pay < h.l4+packet.TCPMinLen || h.pay > len(b) {
		return Truncated
	}
	return accepted
}

func (e *Engine) hashLRO(b []byte) uint32 {
	h := &e.h
	h.v6, h.tunnel, h.proto = false, packet.NoTunnel, packet.ProtoTCP
	sig := h.sig
	hash := e.identify(b, h)
	h.sig = sig
	return hash
}

func (e *Engine) findLRO(b []byte, hash uint32) *flow {
	h, t := &e.h, &e.table
	for i := hash; ; i++ {
		s := t.slot[i&t.mask]
		if s.index == 0 {
			return nil
		}
		f := e.flows[s.index-1]
		if s.hash == hash && f.sig == h.sig && le.Uint32(f.buf[f.l4:]) == le.Uint32(b[h.l4:]) &&
			le.Uint64(f.buf[f.l3+12:]) == le.Uint64(b[h.l3+12:]) {
			return f
		}
	}
}

// lroCheck is lro_tcp_ip_check: whether the segment may be aggregated, at the
// end of f or as a first one.
func (h *headers) lroCheck(b []byte, f *flow) Reason {
	ip, t := packet.IPv4(b[h.l3:]), packet.TCP(b[h.l4:])
	const refused = packet.CWR | packet.ECE | packet.URG | packet.RST | packet.SYN | packet.FIN
	switch {
	case ip.TotalLen() != len(b)-h.l3:
		return BadLength
	case h.pay == len(b):
		return NoPayload
	case ip.HeaderLen() != packet.IPv4MinLen:
		return IPOptions
	case t.Flags()&refused != 0 || t.Flags()&packet.ACK == 0:
		return Control
	case ip.TOS()&3 == 3: // congestion experienced
		return NotEligible
	}
	o := t.Options()
	switch {
	case !onlyTimestamp(o):
		return NotEligible
	case len(o) == 0:
		// inet_lro.c reads the echo from the payload if only the first
		// segment has a timestamp; here that ends the merge.
		if f != nil && f.lro.stamped {
			return NotEligible
		}
	case f != nil && int32(f.lro.value-be.Uint32(o[4:])) > 0, be.Uint32(o[8:]) == 0:
		return NotEligible
	}
	return accepted
}

func (e *Engine) startLRO(now time.Duration, pk *Packet, b []byte, hash uint32) {
	h := &e.h
	f := e.take(len(b))
	t := packet.TCP(b[h.l4:])
	n := len(b) - h.pay
	if e.opt.Gather {
		copy(f.buf, b[:h.pay])
		f.first, f.parts = pk.Data, len(pk.Rest) > 0
		f.refs = appendRefs(f.refs[:0], pk, h.pay)
	} else {
		copy(f.buf, b)
	}
	f.sig, f.hash, f.bucket = h.sig, hash, h.bucket
	f.l3, f.l4, f.pay, f.o3, f.o4 = h.l3, h.l4, h.pay, 0, 0
	f.size, f.fixed, f.valid, f.in = len(b), 0, false, pk.Header
	f.gso, f.count, f.pushed, f.at = n, 1, 1, now
	f.seq = t.Seq() + uint32(n)
	f.lro = lroState{sum: h.impliedSum(b), ack: t.Ack(), window: t.Window()}
	if o := t.Options(); len(o) > 0 {
		f.lro.stamped, f.lro.value, f.lro.echo = true, be.Uint32(o[4:]), be.Uint32(o[8:])
	}
	e.insert(f)
}

func (e *Engine) appendLRO(f *flow, pk *Packet, b []byte) {
	h := &e.h
	t := packet.TCP(b[h.l4:])
	n := len(b) - h.pay
	if f.size+n >= e.maxSize {
		e.complete(f, SizeLimit)
		e.startLRO(f.at, pk, b, f.hash)
		return
	}
	e.room(f, n)
	f.lro.sum = f.lro.sum.Combine(h.impliedSum(b), f.size-f.pay)
	if e.opt.Gather {
		f.refs = appendRefs(f.refs, pk, h.pay)
	} else {
		copy(f.buf[f.size:], b[h.pay:])
	}
	f.size += n
	f.seq += uint32(n)
	f.gso = max(f.gso, n)
	f.count++
	f.pushed++
	f.lro.ack, f.lro.window = t.Ack(), t.Window()
	if f.lro.stamped {
		f.lro.echo = be.Uint32(t.Options()[8:])
	}
	switch {
	case f.count >= e.maxSegs:
		e.complete(f, SegmentLimit)
	case f.size-f.l3 > 0xffff-e.opt.Limits.MTU:
		e.complete(f, SizeLimit)
	}
}

// impliedSum is the sum that the payload has if the TCP checksum is right:
// LRO does not read the payload.
func (h *headers) impliedSum(b []byte) checksum.Partial {
	t := packet.TCP(b[h.l4:h.pay])
	head := headerSum(t).Sub16(t.Checksum()) + pseudo(b[h.l3:], packet.ProtoTCP, len(b)-h.l4)
	return checksum.Partial(^t.Checksum()).Sub(head)
}

// rewriteLRO is lro_update_tcp_ip_header. The checksum stays right if those of
// all segments were, and wrong otherwise.
func (f *flow) rewriteLRO(o *Output) {
	t := packet.TCP(f.buf[f.l4:f.pay])
	t.SetAck(f.lro.ack)
	t.SetWindow(f.lro.window)
	if f.lro.stamped {
		be.PutUint32(t.Options()[8:], f.lro.echo)
	}
	f.setLength(f.l3)
	t.SetChecksum(0)
	sum := f.lro.sum + headerSum(t) + pseudo(f.buf[f.l3:], packet.ProtoTCP, f.size-f.l4)
	t.SetChecksum(sum.Checksum())
	o.Header = f.in
	o.Header.GSOSize = uint16(f.gso) // and no type: it cannot be segmented back
}
