package gro

import (
	"time"

	"github.com/offlab/offlab/vnet"
)

// A flow is a held packet, or what has been merged with it.
type flow struct {
	words words // the first packet, for the fast path

	gso    int    // payload of the first segment
	count  int    // segments
	size   int    // bytes from the first byte on
	seq    uint32 // the next one expected
	bucket uint32
	fixed  uint8 // fixedInner, fixedOuter
	valid  bool  // the checksum of the first packet was verified
	parts  bool  // the first packet came in parts
	pushed int   // packets

	buf   []byte   // headers; in copying mode the payload, too
	refs  [][]byte // gathering: the payload
	small []byte   // the first buffer, which may be buf

	sig   uint64
	hash  uint32
	index uint32 // in Engine.flows

	// Offsets, as in headers.
	l3, l4, pay, o3, o4 int

	newer, older *flow
	at           time.Duration
	first        []byte      // gathering: the first packet as it came
	in           vnet.Header // of the first packet
	lro          lroState
}

const (
	fixedInner = 1
	fixedOuter = 2
)

// A list is one bucket: what is held, by age.
type list struct {
	newest, oldest *flow
	n              int
}

func (l *list) push(f *flow) {
	f.older, f.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = f
	} else {
		l.oldest = f
	}
	l.newest = f
	l.n++
}

func (l *list) remove(f *flow) {
	if f.newer != nil {
		f.newer.older = f.older
	} else {
		l.newest = f.older
	}
	if f.older != nil {
		f.older.newer = f.newer
	} else {
		l.oldest = f.newer
	}
	f.newer, f.older = nil, nil
	l.n--
}

// table finds held flows by hash: open addressing with linear probing, a
// quarter to half full at most, and deletion that moves followers back, so that
// there are no tombstones.
type table struct {
	slot []entry
	mask uint32
}

// entry is empty if index is 0; it names Engine.flows[index-1].
type entry struct{ hash, index uint32 }

func newTable(flows int) table {
	n := 16
	for n < 2*flows {
		n *= 2
	}
	return table{slot: make([]entry, n), mask: uint32(n - 1)}
}

func (t *table) insert(hash, index uint32) {
	i := hash & t.mask
	for t.slot[i].index != 0 {
		i = (i + 1) & t.mask
	}
	t.slot[i] = entry{hash, index + 1}
}

func (t *table) remove(hash, index uint32) {
	i := hash & t.mask
	for t.slot[i].index != index+1 {
		i = (i + 1) & t.mask
	}
	for j := (i + 1) & t.mask; t.slot[j].index != 0; j = (j + 1) & t.mask {
		// j may move to i unless its home lies behind i on the way to j.
		if home := t.slot[j].hash & t.mask; (j-home)&t.mask >= (j-i)&t.mask {
			t.slot[i] = t.slot[j]
			i = j
		}
	}
	t.slot[i] = entry{}
}

// find returns the held flow of the packet at hand, or nil. It is what Linux's
// handlers do by clearing same_flow in one held packet after another: keys in a
// bucket are distinct, so which one is found first does not matter.
func (e *Engine) find(b []byte, hash uint32) *flow {
	t := &e.table
	i := hash & t.mask
	for {
		s := t.slot[i&t.mask]
		if s.index == 0 {
			return nil
		}
		if s.hash == hash {
			if f := e.flows[s.index-1]; f.sig == e.h.sig && e.same(f, b) {
				return f
			}
		}
		i++
	}
}

// smallBuffer is the first buffer of a flow in copying mode: two segments of an
// MTU of 1500. What grows beyond gets a large one. Most of many flows stay
// small, so that they lie close together.
const smallBuffer = 3264

// stride is the distance of buffers of a size: an odd number of cache lines, as
// buffers a power of two apart would compete for the same sets.
func stride(size int) int {
	n := (size + 63) / 64
	return (n | 1) * 64
}

// grow adds n flows with their first buffers.
func (e *Engine) grow(n int) {
	size := MaxHeader
	if !e.opt.Gather {
		size = min(smallBuffer, e.maxSize)
	}
	step := stride(size)
	mem := make([]byte, step*n)
	flows := make([]flow, n)
	e.free = append(make([]*flow, 0, len(e.flows)+n), e.free...)
	for i := range flows {
		f := &flows[i]
		f.index = uint32(len(e.flows))
		f.small = mem[i*step : i*step+size : i*step+size]
		f.buf = f.small
		e.flows = append(e.flows, f)
		e.free = append(e.free, f)
	}
}

// enlarge gives f a buffer for the longest aggregate.
func (e *Engine) enlarge(f *flow) {
	if len(e.large) == 0 {
		n := max(4, e.larges/4)
		step := stride(e.maxSize)
		mem := make([]byte, step*n)
		e.larges += n
		e.large = make([][]byte, 0, e.larges)
		for i := range n {
			e.large = append(e.large, mem[i*step:i*step+e.maxSize:i*step+e.maxSize])
		}
	}
	n := len(e.large) - 1
	big := e.large[n]
	e.large = e.large[:n]
	copy(big, f.buf[:f.size])
	f.buf = big
}

// take returns a flow that is not in use and, in copying mode, has room for n
// bytes.
func (e *Engine) take(n int) *flow {
	if len(e.free) == 0 {
		e.grow(max(16, len(e.flows)/4))
	}
	f := e.free[len(e.free)-1]
	e.free = e.free[:len(e.free)-1]
	if n > len(f.buf) && !e.opt.Gather {
		f.size = 0
		e.enlarge(f)
	}
	return f
}

// release takes back a flow, and its large buffer if it has one.
func (e *Engine) release(f *flow) {
	if len(f.buf) != len(f.small) {
		e.large = append(e.large, f.buf)
		f.buf = f.small
	}
	e.free = append(e.free, f)
}

// room makes sure that n more bytes fit in the buffer of f.
func (e *Engine) room(f *flow, n int) {
	if f.size+n > len(f.buf) && !e.opt.Gather {
		e.enlarge(f)
	}
}

// full reports whether the bucket of the packet at hand has no place.
func (e *Engine) full() bool { return e.lists[e.h.bucket].n >= e.perList }

// insert holds f, evicting the oldest of its bucket if that is full.
func (e *Engine) insert(f *flow) {
	l := &e.lists[f.bucket]
	if l.n >= e.perList {
		e.complete(l.oldest, Evicted)
	}
	l.push(f)
	e.held++
	e.table.insert(f.hash, f.index)
}

func (e *Engine) unlink(f *flow) {
	if e.last == f {
		e.last = nil
	}
	if e.recent == f {
		e.recent = nil
	}
	e.lists[f.bucket].remove(f)
	e.held--
	e.table.remove(f.hash, f.index)
}
