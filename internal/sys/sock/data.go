package sock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Errno is the error number of a system call; 0 is success. It is an error
// that answers errors.Is with the words of io/fs and os.
type Errno = unix.Errno //nolint:errname // the name the whole world knows it by

// The error numbers that callers tell apart.
const (
	// ErrAgain says that the call would have to wait: see [Poller].
	ErrAgain Errno = unix.EAGAIN
	// ErrRefused says that nothing listens on the port.
	ErrRefused Errno = unix.ECONNREFUSED
	// ErrReset says that the peer has dropped the connection.
	ErrReset Errno = unix.ECONNRESET
	// ErrBroken says that this end can no longer send (EPIPE).
	ErrBroken Errno = unix.EPIPE
	// ErrTimedOut says that the peer stopped to answer.
	ErrTimedOut Errno = unix.ETIMEDOUT
)

// Send queues as much of p as fits. It never blocks.
func (s Socket) Send(p []byte) (int, Errno) {
	return s.data(unix.SYS_SENDTO, unsafe.Pointer(unsafe.SliceData(p)), len(p), unix.MSG_NOSIGNAL)
}

// Recv reads what has arrived into p. It never blocks; 0 with errno 0 is the
// end of the stream.
func (s Socket) Recv(p []byte) (int, Errno) {
	return s.data(unix.SYS_RECVFROM, unsafe.Pointer(unsafe.SliceData(p)), len(p), 0)
}

// Discard takes up to n bytes off the stream and leaves the copy out
// (MSG_TRUNC, tcp(7)). It never blocks; 0 with errno 0 is the end of the
// stream.
func (s Socket) Discard(n int) (int, Errno) {
	return s.data(unix.SYS_RECVFROM, nil, n, unix.MSG_TRUNC)
}

// data makes a call of the sendto(2) shape. The scheduler is not told: with
// MSG_DONTWAIT the call returns after the copy, some 10 µs for 64 KiB.
func (s Socket) data(call uintptr, p unsafe.Pointer, n, flags int) (int, Errno) {
	for {
		r, _, e := unix.RawSyscall6(call, uintptr(s), uintptr(p), uintptr(n), uintptr(flags|unix.MSG_DONTWAIT), 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}
