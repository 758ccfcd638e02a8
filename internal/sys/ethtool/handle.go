package ethtool

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Options say how to talk to the kernel. The zero Options take the best
// interface there is.
type Options struct {
	// Ioctl leaves out generic netlink, as on a kernel older than 5.6.
	Ioctl bool
}

// A Handle asks and changes the devices of one network namespace. It may be
// used by several goroutines at once.
type Handle struct {
	conn   *genetlink.Conn // nil where the ioctl is all there is
	family genetlink.Family
	fd     int // socket for the ioctl

	mu    sync.Mutex
	names []string // features by bit, "" for a bit without a name
}

// Open opens a handle in the network namespace of the calling thread.
func Open() (*Handle, error) { return Options{}.Open() }

// Open opens a handle in the network namespace of the calling thread.
func (o Options) Open() (*Handle, error) {
	// A netlink socket serves SIOCETHTOOL too, but one for the purpose needs
	// no care about who reads what.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) { // a kernel or sandbox without IPv4
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	}
	if err != nil {
		return nil, fail("open socket", "", err)
	}
	h := &Handle{fd: fd}
	if o.Ioctl {
		return h, nil
	}
	if err := h.dial(); err != nil {
		unix.Close(fd) //nolint:errcheck // nothing was written to it
		return nil, err
	}
	return h, nil
}

// dial opens the netlink side. A kernel without the family is no error.
func (h *Handle) dial() error {
	conn, err := genetlink.Dial(nil)
	if err != nil {
		return fail("open generic netlink", "", err)
	}
	family, err := conn.GetFamily(unix.ETHTOOL_GENL_NAME)
	if errors.Is(err, fs.ErrNotExist) {
		return conn.Close()
	}
	if err == nil {
		err = conn.SetOption(netlink.ExtendedAcknowledge, true)
	}
	if err != nil {
		conn.Close() //nolint:errcheck // the first error is the one to report
		return fail("find the family", "", err)
	}
	h.conn, h.family = conn, family
	return nil
}

// Close releases the sockets.
func (h *Handle) Close() error {
	err := unix.Close(h.fd)
	if h.conn != nil {
		err = errors.Join(err, h.conn.Close())
	}
	return err
}

// Interface says which interface carries features, coalescing and rings:
// "netlink" or "ioctl".
func (h *Handle) Interface() string {
	if h.conn == nil {
		return "ioctl"
	}
	return "netlink"
}

// either runs the netlink form of an operation and, where the kernel lacks it,
// the ioctl form. A device that supports neither gets the netlink error, which
// says more.
func (h *Handle) either(nl, ioctl func() error) error {
	if h.conn == nil {
		return ioctl()
	}
	err := nl()
	if errors.Is(err, ErrUnsupported) && ioctl() == nil {
		return nil
	}
	return err
}
