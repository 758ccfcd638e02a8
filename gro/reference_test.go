package gro_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/vnet"
)

// A reference is a slow model of Linux's GRO for TCP and UDP without tunnels:
// it walks lists as the kernel does and shares no code with the engine. The
// kernels 6.12, 6.16, 6.17, 6.18 and 7.2 were each compared with one variant of
// it and had no difference (2026-11).
type reference struct {
	sem   gro.Semantics
	limit int // held packets per list
	lists [][]*refItem
	outs  []result
}

type refItem struct {
	f           []byte
	l3, l4      int
	v6, udp     bool
	count, gso  int
	ulen, pay   int
	fixed, same bool
	valid       bool
}

func newReference(sem gro.Semantics, buckets, limit int) *reference {
	return &reference{sem: sem, limit: limit, lists: make([][]*refItem, buckets)}
}

func (m *reference) oldID() bool { return m.sem == gro.Linux612 || m.sem == gro.Linux616 }

func (m *reference) normal(f []byte, valid bool) {
	o := result{Data: f, Segments: 1}
	if valid {
		o.Header.Flags = vnet.DataValid
	}
	m.outs = append(m.outs, o)
}

func (m *reference) complete(p *refItem) {
	if p.count == 1 {
		m.normal(p.f, p.valid)
		return
	}
	ip := p.f[p.l3:]
	if p.v6 {
		be.PutUint16(ip[4:], uint16(len(p.f)-p.l3-40))
	} else {
		be.PutUint16(ip[2:], uint16(len(p.f)-p.l3))
		ip[10], ip[11] = 0, 0
		be.PutUint16(ip[10:], ^pkttest.Sum(ip[:20], 0))
	}
	t := p.f[p.l4:]
	o := result{Data: p.f, Segments: p.count}
	o.Header = vnet.Header{Flags: vnet.NeedsCsum, GSOSize: uint16(p.gso), CsumStart: uint16(p.l4)}
	switch {
	case p.udp:
		be.PutUint16(t[4:], uint16(len(t)))
		be.PutUint16(t[6:], pkttest.Pseudo(ip, 17, len(t)))
		o.Header.GSOType, o.Header.CsumOffset = 5, 6
	default:
		be.PutUint16(t[16:], pkttest.Pseudo(ip, 6, len(t)))
		o.Header.GSOType, o.Header.CsumOffset = 1, 16
		if p.v6 {
			o.Header.GSOType = 4
		}
		if m.sem != gro.Linux72 && t[13]&0x80 != 0 {
			o.Header.GSOType |= 0x80
		}
	}
	m.outs = append(m.outs, o)
}

func (m *reference) flush() {
	for i := range m.lists {
		for _, p := range slices.Backward(m.lists[i]) {
			m.complete(p)
		}
		m.lists[i] = nil
	}
}

func refValid(ip []byte, proto byte, l4 []byte) bool {
	return pkttest.Sum(l4, uint32(pkttest.Pseudo(ip, proto, len(l4)))) == 0xffff
}

func (m *reference) netFlush(f []byte, p *refItem) bool {
	a, b := f[p.l3:], p.f[p.l3:]
	if p.v6 {
		return a[0] != b[0] || a[1]&0xf0 != b[1]&0xf0 || a[7] != b[7]
	}
	if a[8] != b[8] || a[1] != b[1] || a[6]&0x40 != b[6]&0x40 {
		return true
	}
	d := be.Uint16(a[4:]) - be.Uint16(b[4:])
	if p.count == 1 && d == 0 && (!m.oldID() || a[6]&0x40 != 0) {
		p.fixed = true
	}
	if p.fixed {
		return d != 0
	}
	return d != uint16(p.count)
}

// parse finds the transport header and clears same in the packets of other
// flows. It reports false if the packet is delivered at once.
func (m *reference) parse(f []byte, it *refItem, list []*refItem) (proto byte, flush, ok bool) {
	for _, p := range list {
		p.same = string(p.f[:14]) == string(f[:14])
	}
	d := f[14:]
	it.f, it.l3, it.count = f, 14, 1
	switch be.Uint16(f[12:]) {
	case 0x0800:
		if len(d) < 20 {
			return 0, false, false
		}
		proto = d[9]
		if proto != 6 && proto != 17 || d[0] != 0x45 || d[6]&0x3f != 0 || d[7] != 0 || pkttest.Sum(d[:20], 0) != 0xffff {
			return 0, false, false
		}
		flush = int(be.Uint16(d[2:])) != len(d) || d[6]&0x80 != 0
		for _, p := range list {
			if p.same && (p.v6 || p.f[p.l3+9] != proto || string(p.f[p.l3+12:p.l3+20]) != string(d[12:20])) {
				p.same = false
			}
		}
		it.l4 = 34
		return proto, flush, true
	case 0x86dd:
		it.v6 = true
		if len(d) < 40 {
			return 0, false, false
		}
		flush = int(be.Uint16(d[4:])) != len(d)-40
		proto = d[6]
		o := 40
		for proto == 60 || proto == 43 || proto == 0 {
			if o+2 > len(d) || o+(int(d[o+1])+1)*8 > len(d) {
				break
			}
			n := (int(d[o+1]) + 1) * 8
			proto = d[o]
			o += n
		}
		if proto != 6 && proto != 17 {
			return 0, false, false
		}
		for _, p := range list {
			q := p.f[p.l3:]
			p.same = p.same && p.v6 && q[0]&0xf0 == d[0]&0xf0 && q[1]&0x0f == d[1]&0x0f && q[2] == d[2] && q[3] == d[3] &&
				string(q[8:40]) == string(d[8:40]) && q[6] == d[6] && len(q) >= o && string(q[40:o]) == string(d[40:o])
		}
		it.l4 = 14 + o
		return proto, flush, true
	}
	return 0, false, false
}

func (m *reference) receive(frame []byte, hash uint32) {
	list := &m.lists[hash%uint32(len(m.lists))]
	f := append([]byte{}, frame...)
	if len(f) < 14 {
		m.normal(f, false)
		return
	}
	it := &refItem{}
	proto, flush, ok := m.parse(f, it, *list)
	if !ok {
		m.normal(f, false)
		return
	}
	var pp *refItem
	var merged bool
	if proto == 6 {
		pp, merged, flush = m.tcp(f, it, *list, flush)
	} else {
		pp, merged, flush = m.udp(f, it, *list, flush)
	}
	if pp != nil {
		i := slices.Index(*list, pp)
		*list = slices.Delete(*list, i, i+1)
		m.complete(pp)
	}
	switch {
	case merged:
	case flush:
		m.normal(f, it.valid)
	default:
		if len(*list) >= m.limit {
			o := (*list)[len(*list)-1]
			*list = (*list)[:len(*list)-1]
			m.complete(o)
		}
		*list = append([]*refItem{it}, *list...)
	}
}

// tcp returns the held packet that is completed, if any, whether f was merged,
// and whether it is not to be held.
func (m *reference) tcp(f []byte, it *refItem, list []*refItem, flush bool) (pp *refItem, merged, fl bool) {
	t := f[it.l4:]
	if !flush {
		if !refValid(f[14:], 6, t) {
			return nil, false, true
		}
		it.valid = true
	}
	if len(t) < 20 || int(t[12]>>4)*4 < 20 || int(t[12]>>4)*4 > len(t) {
		return nil, false, true
	}
	thl := int(t[12]>>4) * 4
	n := len(t) - thl
	p := match(list, t)
	mss := 1
	if p != nil {
		t2 := p.f[p.l4:]
		bad := t[13]&0x80 != 0 && m.sem != gro.Linux72
		ignore := byte(0x09)
		if m.sem == gro.Linux612 {
			ignore |= 0x80
		}
		bad = bad || (t[13]^t2[13])&^ignore != 0 || t[12] != t2[12] || string(t[14:16]) != string(t2[14:16])
		bad = bad || string(t[8:12]) != string(t2[8:12]) || string(t[20:thl]) != string(t2[20:thl])
		bad = m.netFlush(f, p) || bad
		mss = p.gso
		bad = bad || n == 0 || n > mss || be.Uint32(t2[4:])+uint32(p.pay) != be.Uint32(t[4:])
		if bad || len(p.f)-14+n >= 65536 || flush {
			mss = 1
		} else {
			p.f = append(p.f, t[thl:]...)
			p.pay += n
			p.count++
			merged = true
			p.f[p.l4+13] |= t[13] & 0x09
		}
	}
	end := n < mss || t[13]&0x2f != 0
	if p != nil && (!merged || end) {
		pp = p
	}
	it.gso, it.pay = n, n
	return pp, merged, flush || end
}

func (m *reference) udp(f []byte, it *refItem, list []*refItem, flush bool) (pp *refItem, merged, fl bool) {
	it.udp = true
	t := f[it.l4:]
	if len(t) < 8 {
		return nil, false, true
	}
	if !flush {
		if be.Uint16(t[6:]) != 0 && !refValid(f[14:], 17, t) {
			return nil, false, true
		}
		it.valid = true
	}
	ul := int(be.Uint16(t[4:]))
	if be.Uint16(t[6:]) == 0 || ul <= 8 || ul != len(t) {
		return nil, false, true
	}
	it.gso, it.pay, it.ulen = ul-8, ul-8, ul
	p := match(list, t)
	if p == nil {
		return nil, false, flush
	}
	bad := m.netFlush(f, p)
	switch {
	case ul > p.ulen || bad:
		return p, false, flush
	case len(p.f)-14+len(t)-8 >= 65536 || flush:
		return p, false, flush
	}
	p.f = append(p.f, t[8:]...)
	p.count++
	if ul != p.ulen || p.count >= 64 {
		pp = p
	}
	return pp, true, flush
}

// match returns the first packet of the same flow, in list order.
func match(list []*refItem, t []byte) *refItem {
	for _, q := range list {
		if q.same && string(q.f[q.l4:q.l4+4]) == string(t[:4]) {
			return q
		}
	}
	return nil
}

// TestReference compares all variants with the reference, on lists as a TAP has
// them and as a device with a receive hash has.
func TestReference(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, sem := range []gro.Semantics{gro.Linux612, gro.Linux616, gro.Linux618, gro.Linux72} {
		for _, buckets := range []int{1, 8} {
			opt := gro.Options{MaxFlows: 8 * buckets, Buckets: buckets, UDP: true, NoVLAN: true, Semantics: sem}
			e := newEngine(t, opt)
			opt.Gather = true
			g := newEngine(t, opt)
			for i := range 50 {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				frames := burst(r, 64, []tunnelKind{plain})
				pkts := make([]gro.Packet, len(frames))
				m := newReference(sem, buckets, 8)
				for i, f := range frames {
					pkts[i] = gro.Packet{Data: f}
					if buckets > 1 && len(f) > 60 {
						pkts[i].Hash = uint32(f[35]) * 0x9e3779b1 >> 7
					}
					m.receive(f, pkts[i].Hash)
				}
				m.flush()
				for _, e := range []*gro.Engine{e, g} {
					if d := diffResults(pushAll(e, pkts), m.outs); d != "" {
						t.Fatalf("semantics %v, %d buckets, seed %d, burst %d: %s", sem, buckets, seed, i, d)
					}
				}
			}
		}
	}
}

// TestReferenceVariantsDiffer makes sure that the comparison would notice a
// wrong variant.
func TestReferenceVariantsDiffer(t *testing.T) {
	all := []gro.Semantics{gro.Linux612, gro.Linux616, gro.Linux618, gro.Linux72}
	for _, a := range all {
		for _, b := range all {
			if a == b {
				continue
			}
			e := newEngine(t, gro.Options{MaxFlows: 8, UDP: true, NoVLAN: true, Semantics: a})
			differ := 0
			for i := range 120 {
				frames := burst(rand.New(rand.NewPCG(1, uint64(i))), 64, []tunnelKind{plain})
				m := newReference(b, 1, 8)
				for _, f := range frames {
					m.receive(f, 0)
				}
				m.flush()
				if diffResults(runBurst(e, frames), m.outs) != "" {
					differ++
				}
			}
			if differ < 3 {
				t.Errorf("engine %v and reference %v differ in %d of 120 bursts, want more", a, b, differ)
			}
		}
	}
}
