package load

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/offlab/offlab/internal/sys/sock"
)

// ErrRejected is in the chain of a *SetupError when the receiver has closed a
// connection during the handshake.
var ErrRejected = errors.New("turned away by the receiver: not its token, or a stream too many")

// ErrTimeout is in the chain of a *SetupError when Spec.SetupTimeout is over.
// It answers to os.ErrDeadlineExceeded.
var ErrTimeout = fmt.Errorf("time is over: %w", os.ErrDeadlineExceeded)

var (
	errSilent  = errors.New("it did not say who it is")
	errCrowd   = errors.New("too many connections in the handshake")
	errTaken   = errors.New("a stream that stands already")
	errStopped = errors.New("stopped")
)

// A SetupError says why the streams of a load do not stand.
type SetupError struct {
	Op   string         // "listen", "connect", "handshake" or "accept"
	Addr netip.AddrPort // of the receiver
	Have int            // streams that stood
	Want int
	Err  error // the cause
}

// Error says what failed, where, why, and how far the set-up had come.
func (e *SetupError) Error() string {
	return fmt.Sprintf("load: %s %v: %v (%d of %d streams stood)", e.Op, e.Addr, e.Err, e.Have, e.Want)
}

// Unwrap returns the cause: ErrRejected, ErrTimeout, the error of the context,
// or that of the system call.
func (e *SetupError) Unwrap() error { return e.Err }

// Refused reports whether nothing listens at the address of the receiver.
func (e *SetupError) Refused() bool { return errors.Is(e.Err, sock.ErrRefused) }

// deaths words what happened to streams.
func deaths(dead []Death, streams int) string {
	d := dead[0]
	s := fmt.Sprintf("stream %d ended after %d bytes: %s", d.Stream, d.At, d.Reason)
	if len(dead) > 1 {
		s += fmt.Sprintf(" (%d of %d streams ended)", len(dead), streams)
	}
	return s
}
