package load

import (
	"sync/atomic"

	"github.com/offlab/offlab/internal/sys/sock"
)

// A worker moves the data of some streams of one end. It shares nothing with
// other workers.
type worker struct {
	eng    *engine
	poller *sock.Poller
	size   int    // bytes per call
	buf    []byte // from sock.Buffer; nil when nothing is copied
	serve  func(*worker, *stream) bool
	want   sock.Interest

	source  *source  // sender
	checker *checker // receiver that verifies

	sizes [bins]atomic.Uint64
}

// The sizes of data calls are counted in bins of 16 KiB, as iperf2 does for
// its default read of 128 KiB. The last bin has everything above as well.
const (
	bins    = 8
	binSize = 16 << 10
)

// burst is how many calls in a row one stream gets while others may wait. It
// saves three quarters of the polls of a single stream.
const burst = 4

// pollSize is how many ready streams one poll reports.
const pollSize = 128

func newSender(e *engine) (*worker, error) {
	w, err := newWorker(e, e.spec.Size, sourceSize(e.spec.Size+gap))
	if err != nil {
		return nil, err
	}
	w.source, w.serve, w.want = newSource(w.buf), (*worker).send, sock.ForWrite
	return w, nil
}

func newReceiver(e *engine) (*worker, error) {
	bufSize := 0
	if e.spec.Verify {
		bufSize = e.spec.ReadSize
	}
	w, err := newWorker(e, e.spec.ReadSize, bufSize)
	if err != nil {
		return nil, err
	}
	w.serve, w.want = (*worker).receive, sock.ForRead
	if e.spec.Verify {
		w.checker = newChecker()
	}
	return w, nil
}

func newWorker(e *engine, size, bufSize int) (*worker, error) {
	p, err := sock.NewPoller(min(pollSize, e.spec.Streams))
	if err != nil {
		return nil, err
	}
	w := &worker{eng: e, poller: p, size: size}
	if bufSize > 0 {
		if w.buf, err = sock.Buffer(bufSize); err != nil {
			_ = p.Close() // the error that counts is the other
			return nil, err
		}
	}
	return w, nil
}

// add gives the worker a stream whose socket is set.
func (w *worker) add(s *stream) error {
	fd, _ := s.socket()
	return w.poller.Add(fd, w.want, s.id)
}

// run moves data until the engine stops.
func (w *worker) run() {
	var events []sock.Event
	for !w.eng.stopping.Load() {
		var err error
		if events, _, err = w.poller.Wait(events[:0], -1); err != nil {
			w.eng.fail(err)
			return
		}
		for _, ev := range events {
			if s := w.eng.streams[ev.ID]; !w.serve(w, s) {
				w.drop(s)
			}
		}
	}
}

// drop stops to look at a stream that died. Its socket stays open for the
// last tcp_info.
func (w *worker) drop(s *stream) {
	fd, _ := s.socket()
	if err := w.poller.Remove(fd); err != nil {
		w.eng.fail(err)
	}
}

// send writes to a stream that has room. It returns false if the stream died.
func (w *worker) send(s *stream) bool {
	fd, _ := s.socket()
	for range burst {
		// After a short write, back to the start of a line: an aligned copy
		// is faster, and the stamps of the line are already right.
		n := w.size
		if n > gap {
			n -= int(s.off % gap)
		}
		got, e := fd.Send(w.payload(s, n))
		if e == sock.ErrAgain {
			return true
		}
		if e != 0 {
			s.die(reason(e))
			return false
		}
		w.count(s, got)
		if got < n {
			return true
		}
	}
	return true
}

func (w *worker) payload(s *stream, n int) []byte {
	if !w.eng.spec.Verify {
		return w.buf[:n]
	}
	return w.source.next(s.key, s.off, n)
}

// receive reads what a stream has. It returns false if the stream ended.
func (w *worker) receive(s *stream) bool {
	fd, _ := s.socket()
	for range burst {
		n, e := w.read(fd)
		switch {
		case e == sock.ErrAgain:
			return true
		case e != 0:
			s.die(reason(e))
			return false
		case n == 0:
			s.die("closed by the peer")
			return false
		}
		if w.checker != nil {
			w.verify(s, w.buf[:n])
		}
		w.count(s, n)
		if n < w.size {
			return true
		}
	}
	return true
}

func (w *worker) read(fd sock.Socket) (int, sock.Errno) {
	if w.checker != nil {
		return fd.Recv(w.buf)
	}
	return fd.Discard(w.size)
}

func (w *worker) count(s *stream, n int) {
	w.sizes[min((n-1)/binSize, bins-1)].Add(1)
	s.moved(n)
}

func (w *worker) verify(s *stream, data []byte) {
	bad, first := w.checker.check(s.key, s.off, data)
	if bad == 0 {
		return
	}
	s.bad.Add(uint64(bad))
	if s.first.Load() == nil {
		c := w.checker.describe(s.key, s.off, data, first)
		c.Stream = s.id
		s.first.Store(&c)
	}
}

func (w *worker) close() error {
	err := w.poller.Close()
	if w.buf != nil {
		if e := sock.FreeBuffer(w.buf); err == nil {
			err = e
		}
	}
	return err
}
