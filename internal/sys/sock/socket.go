package sock

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A Socket is a non-blocking TCP socket.
type Socket int

// Options are set on a socket before it listens or connects. The zero value
// leaves everything to the kernel.
type Options struct {
	// MSS is the largest segment (TCP_MAXSEG); accepted sockets inherit it.
	MSS int
	// Congestion names the congestion control (TCP_CONGESTION).
	Congestion string
	// SendBuffer and ReceiveBuffer are SO_SNDBUF and SO_RCVBUF. Setting one
	// turns the kernel's own sizing off; the kernel doubles the value and
	// cuts it to net.core.wmem_max or rmem_max without a word.
	SendBuffer, ReceiveBuffer int
	// UserTimeout ends a connection whose data stays unacknowledged that
	// long (TCP_USER_TIMEOUT, RFC 5482).
	UserTimeout time.Duration
}

// Listen opens a socket that listens on addr; port 0 lets the kernel choose.
func Listen(addr netip.AddrPort, backlog int, o Options) (Socket, error) {
	s, err := open(addr.Addr(), o)
	if err != nil {
		return -1, err
	}
	if err := s.listen(addr, backlog); err != nil {
		return -1, closeWith(s, err)
	}
	return s, nil
}

func (s Socket) listen(addr netip.AddrPort, backlog int) error {
	if err := unix.SetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt SO_REUSEADDR", err)
	}
	if err := unix.Bind(int(s), sockaddr(addr)); err != nil {
		return fmt.Errorf("bind %v: %w", addr, err)
	}
	return os.NewSyscallError("listen", unix.Listen(int(s), backlog))
}

// Connect opens a socket and starts to connect it to addr. It returns at
// once: the socket becomes writable when the connection stands or has failed,
// and [Socket.Err] tells which.
func Connect(addr netip.AddrPort, o Options) (Socket, error) {
	s, err := open(addr.Addr(), o)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(int(s), sockaddr(addr))
	if err != nil && err != unix.EINPROGRESS { //nolint:errorlint // a bare errno from x/sys
		return -1, closeWith(s, fmt.Errorf("connect %v: %w", addr, err))
	}
	return s, nil
}

func open(addr netip.Addr, o Options) (Socket, error) {
	family := unix.AF_INET
	if addr.Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	s := Socket(fd)
	if err := s.apply(o); err != nil {
		return -1, closeWith(s, err)
	}
	return s, nil
}

func (s Socket) apply(o Options) error {
	for _, x := range []struct {
		name              string
		level, opt, value int
	}{
		{"TCP_MAXSEG", unix.IPPROTO_TCP, unix.TCP_MAXSEG, o.MSS},
		{"SO_SNDBUF", unix.SOL_SOCKET, unix.SO_SNDBUF, o.SendBuffer},
		{"SO_RCVBUF", unix.SOL_SOCKET, unix.SO_RCVBUF, o.ReceiveBuffer},
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(o.UserTimeout.Milliseconds())},
	} {
		if x.value == 0 {
			continue
		}
		if err := unix.SetsockoptInt(int(s), x.level, x.opt, x.value); err != nil {
			return fmt.Errorf("setsockopt %s=%d: %w", x.name, x.value, err)
		}
	}
	if o.Congestion != "" {
		if err := unix.SetsockoptString(int(s), unix.IPPROTO_TCP, unix.TCP_CONGESTION, o.Congestion); err != nil {
			return fmt.Errorf("setsockopt TCP_CONGESTION=%s: %w", o.Congestion, err)
		}
	}
	return nil
}

// Accept returns the next connection in the backlog. ok is false when there
// is none.
func (s Socket) Accept() (c Socket, ok bool, err error) {
	for {
		fd, _, err := unix.Accept4(int(s), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			return Socket(fd), true, nil
		case unix.EAGAIN:
			return -1, false, nil
		case unix.EINTR, unix.ECONNABORTED: // accept(2): the client has gone again
		default:
			return -1, false, os.NewSyscallError("accept", err)
		}
	}
}

// Err reports and clears the pending error of the socket (SO_ERROR).
func (s Socket) Err() error {
	v, err := unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return os.NewSyscallError("getsockopt SO_ERROR", err)
	}
	if v != 0 {
		return Errno(v)
	}
	return nil
}

// LocalAddr returns the address the socket is bound to.
func (s Socket) LocalAddr() (netip.AddrPort, error) {
	sa, err := unix.Getsockname(int(s))
	if err != nil {
		return netip.AddrPort{}, os.NewSyscallError("getsockname", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("getsockname: unexpected address family %T", sa)
}

// Congestion returns the name of the congestion control in use.
func (s Socket) Congestion() (string, error) {
	name, err := unix.GetsockoptString(int(s), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	return name, os.NewSyscallError("getsockopt TCP_CONGESTION", err)
}

// Buffers returns the present SO_SNDBUF and SO_RCVBUF as the kernel counts
// them: twice what was asked for.
func (s Socket) Buffers() (send, receive int, err error) {
	if send, err = unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil {
		return 0, 0, os.NewSyscallError("getsockopt SO_SNDBUF", err)
	}
	if receive, err = unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil {
		return 0, 0, os.NewSyscallError("getsockopt SO_RCVBUF", err)
	}
	return send, receive, nil
}

// SetLowWater sets how many bytes must have arrived before the socket is
// readable (SO_RCVLOWAT). The kernel wakes a reader earlier when the window is
// full, and at the end of the stream, and makes room for twice as many bytes.
func (s Socket) SetLowWater(n int) error {
	err := unix.SetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_RCVLOWAT, n)
	return os.NewSyscallError("setsockopt SO_RCVLOWAT", err)
}

// Close closes the socket. Unsent data is still delivered by the kernel.
func (s Socket) Close() error { return os.NewSyscallError("close", unix.Close(int(s))) }

// Abort closes the socket with a reset (SO_LINGER 0): what is queued on
// either side is dropped, and no TIME_WAIT stays behind.
func (s Socket) Abort() error {
	err := unix.SetsockoptLinger(int(s), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	if err != nil {
		return closeWith(s, os.NewSyscallError("setsockopt SO_LINGER", err))
	}
	return s.Close()
}

// closeWith closes s after err, which is what the caller has to know.
func closeWith(s Socket, err error) error {
	_ = s.Close() // a close error after a failure says nothing new
	return err
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zone(a.Addr().Zone())}
}
