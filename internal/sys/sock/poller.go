package sock

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Poller waits for sockets (epoll, level-triggered). One goroutine waits;
// any may call Wake.
type Poller struct {
	ep, wake int
	raw      []unix.EpollEvent
	mu       sync.Mutex
	closed   bool // guarded by mu: a late Wake must not write to a reused descriptor
}

// An Event says that the socket registered under ID can be used.
type Event struct {
	ID int
	// Readable includes the end of the stream, and both include errors: the
	// next call tells.
	Readable, Writable bool
}

// Interest is what a socket is registered for.
type Interest uint32

// The interests.
const (
	ForRead  Interest = unix.EPOLLIN
	ForWrite Interest = unix.EPOLLOUT
)

// wakeID marks the eventfd among the events.
const wakeID = -1

// NewPoller returns a poller that reports up to n events at once.
func NewPoller(n int) (*Poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		_ = unix.Close(ep) // the first error is the cause
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &Poller{ep: ep, wake: wake, raw: make([]unix.EpollEvent, n+1)}
	if err := p.ctl(unix.EPOLL_CTL_ADD, Socket(wake), ForRead, wakeID); err != nil {
		_ = p.Close() // likewise
		return nil, err
	}
	return p, nil
}

// Add registers a socket under an ID of the caller's, 0 or more.
func (p *Poller) Add(s Socket, want Interest, id int) error {
	return p.ctl(unix.EPOLL_CTL_ADD, s, want, id)
}

// Set changes what a registered socket waits for.
func (p *Poller) Set(s Socket, want Interest, id int) error {
	return p.ctl(unix.EPOLL_CTL_MOD, s, want, id)
}

// Remove forgets a socket, which must still be open.
func (p *Poller) Remove(s Socket) error { return p.ctl(unix.EPOLL_CTL_DEL, s, 0, 0) }

func (p *Poller) ctl(op int, s Socket, want Interest, id int) error {
	ev := unix.EpollEvent{Events: uint32(want), Fd: int32(id)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.ep, op, int(s), &ev))
}

// Wait appends to events what can be used now, waiting up to timeout for the
// first (forever if negative). woken says that Wake was called.
func (p *Poller) Wait(events []Event, timeout time.Duration) (got []Event, woken bool, err error) {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond) // never earlier
	}
	n, err := unix.EpollWait(p.ep, p.raw, ms)
	if err == unix.EINTR {
		return events, false, nil
	}
	if err != nil {
		return events, false, os.NewSyscallError("epoll_wait", err)
	}
	const failed = unix.EPOLLERR | unix.EPOLLHUP
	for _, ev := range p.raw[:n] {
		if ev.Fd == wakeID {
			woken = true
			p.drain()
			continue
		}
		events = append(events, Event{
			ID:       int(ev.Fd),
			Readable: ev.Events&(unix.EPOLLIN|failed) != 0,
			Writable: ev.Events&(unix.EPOLLOUT|failed) != 0,
		})
	}
	return events, woken, nil
}

func (p *Poller) drain() {
	var b [8]byte
	_, _ = unix.Read(p.wake, b[:]) // EAGAIN: somebody drained it already
}

// Wake ends the present or the next Wait.
func (p *Poller) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // EAGAIN: it is awake
	}
}

// Close gives the descriptors back. Nobody may wait any more.
func (p *Poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return os.NewSyscallError("close", errFirst(unix.Close(p.ep), unix.Close(p.wake)))
}

func errFirst(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
