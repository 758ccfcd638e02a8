package softnic

import "sync/atomic"

// headroom is what is free before each frame, for the longest virtio header;
// tailroom what a hook may add behind it.
const (
	headroom = 24
	tailroom = 64
)

// classes are the lengths of frame buffers. Those of one class do not lie a
// power of two apart, where they would compete for the same lines of a cache.
var classes = [...]int{2304, 10240 + 256, 65536 + 4096 + 256}

// A pool keeps the frames of a lane that are not in use.
type pool struct {
	free [len(classes)][]*Frame
	made atomic.Int64 // a soak looks at it while the lane runs
}

// get returns a frame with room for n bytes. Its Data is as long as that and
// has arbitrary contents.
func (p *pool) get(n int) *Frame {
	class := 0
	for class < len(classes)-1 && n > classes[class]-headroom-tailroom {
		class++
	}
	list := &p.free[class]
	if len(*list) == 0 {
		p.made.Add(1)
		*list = append(*list, &Frame{class: class, buf: make([]byte, classes[class])})
	}
	f := (*list)[len(*list)-1]
	*list = (*list)[:len(*list)-1]
	f.Data = f.buf[headroom : headroom+n]
	f.parsed, f.Valid, f.desc, f.origin = false, false, 0, 0
	return f
}

// put takes a frame back. Last in, first out: its buffer is still in a cache.
func (p *pool) put(f *Frame) { p.free[f.class] = append(p.free[f.class], f) }

// copyOf returns a second frame like f.
func (p *pool) copyOf(f *Frame) *Frame {
	g := p.get(len(f.Data))
	copy(g.Data, f.Data)
	g.Header, g.Index, g.Count, g.Number, g.Valid, g.origin = f.Header, f.Index, f.Count, f.Number, f.Valid, f.origin
	return g
}

// A queue of frames: a ring buffer that grows.
type fifo struct {
	slot []*Frame // its length is a power of two
	head int
	n    int
}

func (q *fifo) push(f *Frame) {
	if q.n == len(q.slot) {
		q.grow()
	}
	q.slot[(q.head+q.n)&(len(q.slot)-1)] = f
	q.n++
}

func (q *fifo) grow() {
	bigger := make([]*Frame, max(64, 2*len(q.slot)))
	for i := range q.n {
		bigger[i] = q.slot[(q.head+i)&(len(q.slot)-1)]
	}
	q.slot, q.head = bigger, 0
}

func (q *fifo) pop() *Frame {
	f := q.slot[q.head]
	q.slot[q.head] = nil
	q.head = (q.head + 1) & (len(q.slot) - 1)
	q.n--
	return f
}

func (q *fifo) first() *Frame { return q.slot[q.head] }
