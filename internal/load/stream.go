package load

import (
	"sync/atomic"

	"github.com/offlab/offlab/internal/sys/sock"
)

// A stream is one data connection. Its worker alone moves data and counts; the
// counters are atomic so that a snapshot needs no lock.
type stream struct {
	id  int
	key uint64

	sock atomic.Int64 // a sock.Socket, or noSocket
	off  uint64       // payload moved so far; the worker's own

	bytes, calls, bad atomic.Uint64
	first             atomic.Pointer[Corruption]
	death             atomic.Pointer[Death]

	info infoState // guarded by engine.mu
}

const noSocket = -1

// A Death says when and why a stream stopped to work.
type Death struct {
	Stream int    `json:"stream"`
	At     uint64 `json:"at"` // bytes moved before
	Reason string `json:"reason"`
}

func newStreams(spec Spec) []*stream {
	all := make([]*stream, spec.Streams)
	for i := range all {
		all[i] = &stream{id: i, key: streamKey(spec.Token, i)}
		all[i].sock.Store(noSocket)
	}
	return all
}

func (s *stream) socket() (sock.Socket, bool) {
	v := s.sock.Load()
	return sock.Socket(v), v != noSocket
}

// moved counts one call that moved n bytes.
func (s *stream) moved(n int) {
	s.off += uint64(n)
	s.bytes.Store(s.off)
	s.calls.Add(1)
}

func (s *stream) die(reason string) {
	s.death.CompareAndSwap(nil, &Death{Stream: s.id, At: s.off, Reason: reason})
}

// reason words the error of a data call.
func reason(e sock.Errno) string {
	if e == sock.ErrReset || e == sock.ErrBroken {
		return "reset by the peer"
	}
	if e == sock.ErrTimedOut {
		return "timed out: the peer does not answer"
	}
	return e.Error()
}
