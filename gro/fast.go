package gro

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

// The fast path merges the common packet: TCP over IPv4 without tags, tunnel or
// IP options, with 20 or 32 bytes of TCP header, that continues a held flow. It
// compares nine words, as they lie in memory, with those of the flow's first
// packet. What it does not take goes the general way, which decides by itself;
// the fast path changes nothing before it knows that it will merge.

// words are the headers of a flow's first packet as little-endian words, and
// what of the checksums does not change from packet to packet.
type words struct {
	ip0, ip8, ip16 uint64 // of the IP header; ip16 ends with the ports
	tcp12          uint64 // data offset and flags, window, checksum, urgent pointer
	opt0           uint64 // the TCP options
	opt8           uint32
	ack            uint32
	eth0, eth6     uint64
	ipSum          uint16 // length + ID + checksum of the IP header
	nextID         uint16
	stepID         uint16
	long           bool // 12 bytes of options
	quick          bool // the fast path may be tried
	tcpSum         uint64
}

const (
	longTCP   = 32                 // header with 12 bytes of options
	fastMin   = 52                 // bytes from the IP header on that are loaded
	ip0Mask   = 0xffff00000000ffff // version, header length, TOS; flags and fragment offset
	ip8Mask   = 0xffffffff0000ffff // TTL, protocol, source
	tcp12Mask = 0x00000000ffffffff &^ uint64(endFlags<<8)
)

var le = binary.LittleEndian

// prepare fills in the words of a flow that holds its first packet b, or says
// that the fast path is not for it.
func (f *flow) prepare(e *Engine, b []byte) {
	n := f.pay - f.l4
	f.words.quick = f.l3 == e.l3 && f.l4 == f.l3+packet.IPv4MinLen && f.o4 == 0 && f.proto() == packet.ProtoTCP &&
		(n == packet.TCPMinLen || n == longTCP) && !f.parts && f.in.GSOType == vnet.GSONone && f.in.Flags&vnet.NeedsCsum == 0 &&
		b[f.l4+13]&packet.CWR == 0 && e.opt.Policy == Linux && len(b)-f.l3 >= fastMin
	if f.words.quick {
		f.words.fill(b, e.l3, n == longTCP)
	}
}

// fill sets the words to those of b.
func (w *words) fill(b []byte, l3 int, long bool) {
	p := b[l3 : l3+fastMin]
	w.ip0, w.ip8, w.ip16 = le.Uint64(p), le.Uint64(p[8:]), le.Uint64(p[16:])
	w.ack = le.Uint32(p[28:])
	w.tcp12 = le.Uint64(p[32:])
	w.long, w.quick = long, true
	w.opt0, w.opt8 = 0, 0
	if long {
		w.opt0, w.opt8 = le.Uint64(p[40:]), le.Uint32(p[48:])
	}
	if l3 != 0 {
		w.eth0, w.eth6 = le.Uint64(b), le.Uint64(b[6:])
	}
	w.ipSum = mod16(w.ip0>>16&0xffff + w.ip0>>32&0xffff + w.ip8>>16&0xffff)
	w.nextID = bits.ReverseBytes16(uint16(w.ip0 >> 32))
	w.tcpSum = w.ip8>>32 + w.ip16>>32 + w.ip16&0xffffffff + packet.ProtoTCP<<8 +
		uint64(w.ack) + w.tcp12&tcp12Mask + w.opt0>>32 + w.opt0&0xffffffff + uint64(w.opt8)
}

// headSum is the sum of the pseudo-header and the TCP header of a packet of the
// flow, n bytes long from the TCP header on.
func (w *words) headSum(seq uint32, tcp12 uint64, n int) checksum.Partial {
	s := w.tcpSum + uint64(seq) + tcp12&(endFlags<<8) + tcp12>>32&0xffff + tcp12>>48 + uint64(bits.ReverseBytes16(uint16(n)))
	return checksum.Partial(bits.ReverseBytes16(fold(s>>32 + s&0xffffffff)))
}

// mod16 returns s modulo 65535, for s below 1<<32: two sums of 16-bit words are
// the same ones' complement number if they agree in that.
func mod16(s uint64) uint16 {
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	if s == 0xffff {
		return 0
	}
	return uint16(s)
}

// fast merges or holds the packet if it is a common one, and reports whether it
// did.
func (e *Engine) fast(now time.Duration, pk *Packet) bool {
	b := pk.Data
	if len(b) < e.l3+fastMin || pk.Header.GSOType != vnet.GSONone || pk.Header.Flags&^vnet.DataValid != 0 || len(pk.Rest) != 0 {
		return false
	}
	p := b[e.l3:]
	ip0, ip8, ip16, seq := le.Uint64(p), le.Uint64(p[8:]), le.Uint64(p[16:]), le.Uint32(p[24:])
	if byte(ip0) != 0x45 || byte(ip8>>8) != packet.ProtoTCP {
		return false
	}
	f := e.last
	if f == nil || (ip16^f.words.ip16)|(ip8^f.words.ip8)&ip8Mask != 0 || f.bucket != pk.Hash&e.bucketMask || !f.words.quick {
		var hash uint32
		var clash bool
		if f, hash, clash = e.findFast(ip8, ip16, pk.Hash&e.bucketMask); f == nil {
			return !clash && e.start(now, pk, hash)
		}
		e.last = f
	}
	w := &f.words
	tcp12 := le.Uint64(p[32:])
	diff := (ip0^w.ip0)&ip0Mask | (ip8^w.ip8)&ip8Mask | (tcp12^w.tcp12)&tcp12Mask | uint64(le.Uint32(p[28:])^w.ack)
	head := packet.IPv4MinLen + packet.TCPMinLen
	if w.long {
		head = packet.IPv4MinLen + longTCP
		diff |= le.Uint64(p[40:]) ^ w.opt0 | uint64(le.Uint32(p[48:])^w.opt8)
	}
	if e.link {
		diff |= le.Uint64(b) ^ w.eth0 | le.Uint64(b[6:]) ^ w.eth6
	}
	id := bits.ReverseBytes16(uint16(ip0 >> 32))
	n := len(p) - head
	if diff != 0 || bits.ReverseBytes32(seq) != f.seq || uint(n-1) >= uint(f.gso) || f.size+n >= e.maxSize ||
		int(bits.ReverseBytes16(uint16(ip0>>16))) != len(p) || id != w.nextID && f.count != 1 ||
		mod16(ip0>>16&0xffff+ip0>>32&0xffff+ip8>>16&0xffff) != w.ipSum {
		return false
	}
	step := w.stepID
	if f.count == 1 {
		if step = id - bits.ReverseBytes16(uint16(w.ip0>>32)); step > 1 || step == 0 && !e.fixedOK(w.ip0) {
			return false
		}
	}
	pay := p[head:]
	e.room(f, n)
	if e.mustSum(pk) {
		if (w.headSum(seq, tcp12, len(p)-packet.IPv4MinLen) + e.copySum(f.buf, f.size, pay)).Fold() != 0xffff {
			return false
		}
	} else if !e.opt.Gather {
		copy(f.buf[f.size:], pay)
	}
	if e.opt.Gather {
		f.refs = append(f.refs, slices.Clip(pay))
	}
	if f.count == 1 {
		w.stepID = step
		f.fixed = fixedInner &^ uint8(step)
	}
	w.nextID = id + step
	f.size += n
	f.seq += uint32(n)
	f.count++
	f.pushed++
	if end := byte(tcp12>>8) & endFlags; end != 0 || n < f.gso || f.count >= e.maxSegs {
		e.finish(f, n, end)
	}
	return true
}

func (e *Engine) mustSum(pk *Packet) bool { return pk.Header.Flags == 0 && !e.opt.TrustChecksums }

// copySum sums the payload and, in copying mode, copies it.
func (e *Engine) copySum(buf []byte, at int, pay []byte) checksum.Partial {
	if e.opt.Gather {
		return checksum.Sum(pay)
	}
	return checksum.CopySum(buf[at:], pay)
}

// start holds the first packet of a flow if it is a common one: what parse,
// receiveTCP and hold make of it, in one go.
func (e *Engine) start(now time.Duration, pk *Packet, hash uint32) bool {
	b := pk.Data
	p := b[e.l3:]
	head := packet.IPv4MinLen + int(p[32]>>4)*4
	long := head == packet.IPv4MinLen+longTCP
	if p[0] != 0x45 || p[9] != packet.ProtoTCP || int(be.Uint16(p[2:])) != len(p) || be.Uint16(p[6:])&^packet.IPv4DF != 0 ||
		!long && head != packet.IPv4MinLen+packet.TCPMinLen || p[33]&(holdFlags|packet.CWR) != 0 ||
		len(p) <= head || len(b) > e.maxSize || e.link && be.Uint16(b[12:]) != packet.EtherTypeIPv4 {
		return false
	}
	f := e.take(len(b))
	w := &f.words
	w.fill(b, e.l3, long)
	s := w.ip0>>32 + w.ip0&0xffffffff + w.ip8>>32 + w.ip8&0xffffffff + w.ip16&0xffffffff
	f.valid = true
	f.pay = e.l3 + head
	pay := b[f.pay:]
	sum := checksum.Partial(0xffff)
	if e.mustSum(pk) {
		sum = w.headSum(le.Uint32(p[24:]), w.tcp12, len(p)-packet.IPv4MinLen) + e.copySum(f.buf, f.pay, pay)
	} else if !e.opt.Gather {
		copy(f.buf[f.pay:], pay)
	}
	if fold(s>>32+s&0xffffffff) != 0xffff || sum.Fold() != 0xffff {
		e.release(f)
		return false
	}
	copy(f.buf, b[:f.pay])
	if e.opt.Gather {
		f.first, f.parts = b, false
		f.refs = append(f.refs[:0], slices.Clip(pay))
	}
	f.l3, f.l4, f.o3, f.o4 = e.l3, e.l3+packet.IPv4MinLen, 0, 0
	f.bucket = pk.Hash & e.bucketMask
	f.sig = signature(f.l3, f.l4, f.bucket, packet.ProtoTCP)
	f.size, f.gso, f.count, f.pushed, f.fixed = len(b), len(pay), 1, 1, 0
	f.seq = be.Uint32(p[24:]) + uint32(len(pay))
	f.hash, f.at, f.in = hash, now, pk.Header
	e.insert(f)
	return true
}

// fixedOK reports whether the ID of a flow that begins with such a header may
// stay the same, as in levelMismatch.
func (e *Engine) fixedOK(ip0 uint64) bool {
	return ip0&(0x40<<48) != 0 || e.opt.Semantics != Linux612 && e.opt.Semantics != Linux616
}

// finish completes f if the segment of n bytes that was just merged is its last.
func (e *Engine) finish(f *flow, n int, end byte) {
	f.buf[f.l4+13] |= end
	switch {
	case end&packet.PSH != 0:
		e.complete(f, Push)
	case end != 0:
		e.complete(f, Fin)
	case n < f.gso:
		e.complete(f, Short)
	default:
		e.complete(f, SegmentLimit)
	}
}

// findFast is find for the fast path. A clash is another flow with the same
// hash, which may be that of the packet and not for the fast path.
func (e *Engine) findFast(ip8, ip16 uint64, bucket uint32) (f *flow, hash uint32, clash bool) {
	hash = e.hash4(ip8>>32|ip16<<32, ip16>>32|packet.ProtoTCP<<32|uint64(bucket)<<40)
	t := &e.table
	for i := hash; ; i++ {
		s := t.slot[i&t.mask]
		if s.index == 0 {
			return nil, hash, clash
		}
		if s.hash == hash {
			f := e.flows[s.index-1]
			if w := &f.words; w.quick && w.ip16 == ip16 && (w.ip8^ip8)&ip8Mask == 0 && f.bucket == bucket {
				return f, hash, false
			}
			clash = true
		}
	}
}

// hash4 hashes the addresses and, with the protocol and the bucket, the ports.
func (e *Engine) hash4(addrs, ports uint64) uint32 {
	hi, lo := bits.Mul64(addrs^e.seed[0], ports^e.seed[1])
	return uint32(hi) ^ uint32(lo>>32) ^ uint32(lo)
}
