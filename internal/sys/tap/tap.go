package tap

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/offlab/offlab/vnet"
)

// Offloads are the TUN_F_ bits of include/uapi/linux/if_tun.h (Linux 6.18).
type Offloads uint

// The offloads. TSO and what follows are refused without Csum.
const (
	Csum       Offloads = unix.TUN_F_CSUM
	TSO4       Offloads = unix.TUN_F_TSO4
	TSO6       Offloads = unix.TUN_F_TSO6
	TSOECN     Offloads = unix.TUN_F_TSO_ECN
	USO        Offloads = unix.TUN_F_USO4 | unix.TUN_F_USO6 // since 6.2, both or none
	Tunnel     Offloads = 0x080                             // TUN_F_UDP_TUNNEL_GSO, since 6.17
	TunnelCsum Offloads = 0x100                             // TUN_F_UDP_TUNNEL_GSO_CSUM
)

// MaxPacket is the longest packet that is read without BIG TCP, virtio header
// included.
const MaxPacket = 65535 + 14 + 8 + 24

// Options say what device to make.
type Options struct {
	// Queues is the number of queues; 0 means 1.
	Queues int
	// Offloads are asked for; the device gets those of them that the kernel
	// has.
	Offloads Offloads
	// HeaderSize is that of the virtio header: 10, 12 or 24. 0 means 24 where
	// the kernel has tunnel offloads and Offloads asks for them, else 12.
	HeaderSize int
	// NAPI gives the device the kernel's GRO (IFF_NAPI).
	NAPI bool
}

// A Device is a TAP device.
type Device struct {
	Name     string
	Offloads Offloads // granted
	Format   vnet.Format
	Queues   []*Queue
}

const openPath = "open /dev/net/tun"

// Open makes a device. The name may be a pattern such as "tap%d". An error is
// an [*OpenError].
func Open(name string, o Options) (*Device, error) {
	d := &Device{Name: name}
	if err := d.open(o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Device) fail(op string, err error) error { return &OpenError{d.Name, op, err} }

func (d *Device) open(o Options) error {
	for range max(1, o.Queues) {
		if err := d.attach(o); err != nil {
			return err
		}
	}
	return d.negotiate(o)
}

// attach adds a queue. The first makes the device.
func (d *Device) attach(o Options) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return d.fail(openPath, err)
	}
	q, err := newQueue(fd)
	if err != nil {
		_ = unix.Close(fd) // the first error is the cause
		return d.fail("eventfd", err)
	}
	d.Queues = append(d.Queues, q)
	req, err := unix.NewIfreq(d.Name)
	if err != nil {
		return d.fail("name", err)
	}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_MULTI_QUEUE)
	if o.NAPI {
		flags |= unix.IFF_NAPI
	}
	if len(d.Queues) == 1 {
		flags |= unix.IFF_TUN_EXCL // a device of somebody else's is an error, not joined
	}
	req.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return d.fail("TUNSETIFF", err)
	}
	d.Name = req.Name()
	return nil
}

// negotiate settles the virtio header and the offloads.
func (d *Device) negotiate(o Options) error {
	size := o.HeaderSize
	tunnel := o.Offloads & (Tunnel | TunnelCsum)
	if size == 0 {
		size = vnet.V1.Size
		if tunnel != 0 && d.setHeaderSize(vnet.Tunnel.Size) == nil {
			size = vnet.Tunnel.Size
		}
	}
	if err := d.setHeaderSize(size); err != nil {
		return d.fail(fmt.Sprintf("TUNSETVNETHDRSZ %d", size), err)
	}
	d.Format = vnet.Format{Size: size, BigEndian: bigEndian}
	want := o.Offloads
	if size < vnet.Tunnel.Size {
		want &^= tunnel
	}
	// Older kernels refuse the whole set for one bit that they do not know.
	for _, without := range []Offloads{0, tunnel, tunnel | USO} {
		err := d.SetOffloads(want &^ without)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return d.SetOffloads(want &^ (tunnel | USO | TSOECN))
}

// setHeaderSize chooses the length of the virtio header, of the whole device.
func (d *Device) setHeaderSize(n int) error {
	return unix.IoctlSetPointerInt(d.Queues[0].fd, unix.TUNSETVNETHDRSZ, n)
}

// SetOffloads asks for offloads, for a device that exists. Those that the host
// had turned off are on again.
func (d *Device) SetOffloads(o Offloads) error {
	if err := unix.IoctlSetInt(d.Queues[0].fd, unix.TUNSETOFFLOAD, int(o)); err != nil {
		return d.fail(fmt.Sprintf("TUNSETOFFLOAD %#x", uint(o)), err)
	}
	d.Offloads = o
	return nil
}

// Close closes the queues, and the device with them.
func (d *Device) Close() error {
	var errs []error
	for _, q := range d.Queues {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}

// bigEndian is the byte order of virtio headers without TUNSETVNETLE: the
// machine's.
var bigEndian = *(*byte)(unsafe.Pointer(&[]uint16{1}[0])) == 0

// A Queue is one pair of queues of a device. One goroutine reads, writes and
// waits; any may call Wake.
type Queue struct {
	fd, wake int
	iov      []unix.Iovec
	poll     [2]unix.PollFd
	timeout  unix.Timespec // here, since what system calls point to escapes
}

func newQueue(fd int) (*Queue, error) {
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &Queue{fd: fd, wake: wake, iov: make([]unix.Iovec, maxParts)}, nil
}

// maxParts is IOV_MAX: what one writev takes.
const maxParts = 1024

// Read takes the next packet, virtio header first. A packet longer than p is
// cut off.
func (q *Queue) Read(p []byte) (int, error) {
	return q.call(unix.SYS_READ, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// Write hands a packet to the host. The parts, in order, are virtio header and
// frame; there may be as many as IOV_MAX.
func (q *Queue) Write(parts [][]byte) error {
	if len(parts) == 1 {
		_, err := q.call(unix.SYS_WRITE, unsafe.Pointer(unsafe.SliceData(parts[0])), len(parts[0]))
		return err
	}
	if len(parts) > maxParts {
		return ErrRefused
	}
	for i, p := range parts {
		q.iov[i].Base = unsafe.SliceData(p)
		q.iov[i].SetLen(len(p))
	}
	_, err := q.call(unix.SYS_WRITEV, unsafe.Pointer(unsafe.SliceData(q.iov)), len(parts))
	return err
}

// call makes a system call on the descriptor, which does not block.
func (q *Queue) call(trap uintptr, arg unsafe.Pointer, n int) (int, error) {
	for {
		r, _, e := unix.RawSyscall(trap, uintptr(q.fd), uintptr(arg), uintptr(n))
		if e == 0 {
			return int(r), nil
		}
		if e != unix.EINTR {
			return 0, fromErrno(e)
		}
	}
}

// sharp is the wait below which 50 µs matter.
const sharp = 2 * time.Millisecond

// Wait returns when there is something to read, unless idle is set; when Wake
// is called, or has been since the last Wait; or after d. A negative d is no
// bound.
func (q *Queue) Wait(d time.Duration, idle bool) error {
	q.poll[0] = unix.PollFd{Fd: int32(q.wake), Events: unix.POLLIN}
	q.poll[1] = unix.PollFd{Fd: int32(q.fd), Events: unix.POLLIN}
	fds := q.poll[:2]
	if idle {
		fds = q.poll[:1]
	}
	var ts *unix.Timespec
	if d >= 0 {
		q.timeout = unix.NsecToTimespec(int64(d))
		ts = &q.timeout
		if d < sharp {
			// The kernel may be 50 µs late otherwise. It is a property of the
			// thread; that the goroutine is moved before the next call is rare
			// and costs those 50 µs.
			_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, 1, 0)
		}
	}
	_, err := unix.Ppoll(fds, ts, nil)
	switch {
	case err == unix.EINTR:
		return nil
	case err != nil:
		return os.NewSyscallError("ppoll", err)
	}
	if q.poll[0].Revents != 0 {
		var b [8]byte
		_, _ = unix.Read(q.wake, b[:]) // EAGAIN: drained already
	}
	return nil
}

// Wake ends the present or the next Wait.
func (q *Queue) Wake() {
	_, _ = unix.Write(q.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // EAGAIN: it is awake
}

// Close closes the queue. Nobody may use it any more.
func (q *Queue) Close() error {
	return os.NewSyscallError("close", errors.Join(unix.Close(q.fd), unix.Close(q.wake)))
}
