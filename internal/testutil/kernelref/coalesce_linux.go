package kernelref

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/offlab/offlab/vnet"
)

// MaxBurst is the most frames that a burst may have: one NAPI poll. A longer
// one is two polls, and the first that uses its whole budget flushes.
const MaxBurst = 64

// A Frame is what the kernel's GRO delivered, with the virtio_net_hdr of a
// packet socket, which shows nothing of a tunnel.
type Frame struct {
	Data   []byte
	Header vnet.Header
}

// A Coalescer merges bursts with the running kernel.
//
// Frames are written to a TAP whose NAPI runs in a kernel thread (IFF_NAPI,
// threaded). Writer and kernel thread share one CPU, and while it queues the
// writer has SCHED_FIFO: the kernel thread cannot run before the burst is
// complete, so a burst is one poll and the result does not depend on timing.
type Coalescer struct {
	tap, out, ether int
	format          vnet.Format // of what is read; size 0 is no header
	kthread         int
	buf             []byte
}

// NewCoalescer reads what comes out through a packet socket: every frame as it
// is, with a header that knows of no tunnel. It must run inside WithThread.
func NewCoalescer() (*Coalescer, error) {
	c, name, err := newCoalescer()
	if err != nil {
		return c, err
	}
	// A packet socket bound to the type of the unknown frames: else the one
	// for all types would be their last handler, which gets them late.
	if c.ether, err = PacketSocket(name, 0x88b5); err != nil {
		return c, err
	}
	c.format = vnet.Legacy
	c.out, err = PacketSocket(name, unix.ETH_P_ALL)
	return c, err
}

// NewForwarder redirects what comes out to another TAP. With offloads that
// takes super-packets behind a header of 24 bytes, which describes a tunnel;
// what virtio_net_hdr cannot describe, and without offloads everything, the
// kernel segments on the way. It must run inside WithThread.
func NewForwarder(offloads bool) (*Coalescer, error) {
	c, name, err := newCoalescer()
	if err != nil {
		return c, err
	}
	o := TAPOptions{}
	if offloads {
		o = TAPOptions{VnetSize: vnet.Tunnel.Size, Offloads: unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 |
			unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6 | tunUDPTunnelGSO | tunUDPTunnelCsum}
		c.format = vnet.Tunnel
	}
	to := "to" + name
	if c.out, err = OpenTAP(to, o); err != nil {
		return c, err
	}
	for _, s := range [][]string{
		{"ip", "link", "set", to, "mtu", "9500", "txqueuelen", "4000", "up"},
		{"tc", "qdisc", "add", "dev", name, "clsact"},
		{"tc", "filter", "add", "dev", name, "ingress", "protocol", "all", "u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", to},
	} {
		if err := Run(s...); err != nil {
			return c, err
		}
	}
	return c, nil
}

// TUN_F_UDP_TUNNEL_GSO and _CSUM, since Linux 6.17; x/sys has no names yet.
const (
	tunUDPTunnelGSO  = 0x080
	tunUDPTunnelCsum = 0x100
)

func newCoalescer() (c *Coalescer, name string, err error) {
	name = "gro" + strconv.Itoa(os.Getpid()%10000)
	c = &Coalescer{tap: -1, out: -1, ether: -1, buf: make([]byte, 1<<17)}
	if c.tap, err = OpenTAP(name, TAPOptions{NAPI: true}); err != nil {
		return c, name, err
	}
	for _, s := range [][]string{
		{"ip", "link", "set", name, "mtu", "9500", "up"},
		{"ethtool", "-K", name, "gro", "on", "rx-udp-gro-forwarding", "on"},
		// Local tunnels: without a socket on its port VXLAN is plain UDP.
		{"ip", "link", "add", "vx0", "type", "vxlan", "dstport", "4789", "external"},
		{"ip", "link", "set", "vx0", "up"},
	} {
		if err := Run(s...); err != nil {
			return c, name, err
		}
	}
	if err := os.WriteFile("/sys/class/net/"+name+"/threaded", []byte("1"), 0); err != nil {
		return c, name, err
	}
	return c, name, c.pin(name)
}

// pin puts this thread and the NAPI thread of the device on one CPU.
func (c *Coalescer) pin(name string) error {
	for range 200 {
		if c.kthread = findThread("napi/" + name); c.kthread != 0 {
			break
		}
		nap(5 * time.Millisecond)
	}
	if c.kthread == 0 {
		return fmt.Errorf("kernelref: no NAPI thread for %s", name)
	}
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	for i := range 1024 {
		if all.IsSet(i) {
			one.Set(i)
			break
		}
	}
	for _, pid := range []int{0, c.kthread} {
		if err := unix.SchedSetaffinity(pid, &one); err != nil {
			return os.NewSyscallError("sched_setaffinity", err)
		}
	}
	return nil
}

// Close removes the devices.
func (c *Coalescer) Close() {
	for _, fd := range []int{c.tap, c.out, c.ether} {
		if fd >= 0 {
			unix.Close(fd) //nolint:errcheck // a descriptor of this process
		}
	}
}

// Burst writes the frames, at most MaxBurst, as one poll and returns what the
// kernel delivers, in order. segments tells how many frames of the burst an
// output holds; reading ends when all are there, or with an error when nothing
// comes for two seconds. What an earlier burst left behind is thrown away.
func (c *Coalescer) Burst(frames [][]byte, segments func(Frame) int) ([]Frame, error) {
	for {
		if _, err := c.read(0); err != nil {
			break
		}
	}
	if err := setScheduler(0, unix.SCHED_FIFO, 50); err != nil {
		return nil, err
	}
	var werr error
	for _, f := range frames {
		// A plain Syscall may lose its P on return and park this thread in the
		// middle of the burst.
		if _, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.tap), uintptr(unsafe.Pointer(&f[0])), uintptr(len(f))); e != 0 {
			werr = os.NewSyscallError("write", e)
			break
		}
	}
	if err := setScheduler(0, 0, 0); err != nil {
		return nil, err
	}
	if werr != nil {
		return nil, werr
	}
	var out []Frame
	for n := 0; n < len(frames); {
		f, err := c.read(2000)
		if err != nil {
			return out, fmt.Errorf("kernelref: %d of %d segments came back: %w", n, len(frames), err)
		}
		n += segments(f)
		out = append(out, f)
	}
	return out, nil
}

// read returns the next frame, waiting at most so many milliseconds for it.
func (c *Coalescer) read(timeout int) (f Frame, err error) {
	for {
		p := []unix.PollFd{{Fd: int32(c.out), Events: unix.POLLIN}}
		n, err := unix.Poll(p, timeout)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return f, os.NewSyscallError("poll", err)
		}
		if n == 0 {
			return f, os.ErrDeadlineExceeded
		}
		break
	}
	k, err := unix.Read(c.out, c.buf)
	if err != nil {
		return f, os.NewSyscallError("read", err)
	}
	if c.format.Size > 0 {
		if f.Header, err = c.format.Get(c.buf[:k]); err != nil {
			return f, err
		}
	}
	f.Data = append([]byte{}, c.buf[c.format.Size:k]...)
	return f, nil
}

// WithThread runs f on an operating system thread of its own in a new network
// and mount namespace with a matching /sys; the thread and the namespaces end
// with f. Collection is off while f runs, since stopping the world may park the
// thread within a burst; f should call runtime.GC between bursts.
func WithThread(tb testing.TB, f func() error) {
	tb.Helper()
	old := debug.SetGCPercent(-1)
	defer debug.SetGCPercent(old)
	errc := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the leader cannot end; see netnstest
			defer runtime.UnlockOSThread()
			done := make(chan struct{})
			go func() {
				defer close(done)
				run()
			}()
			<-done
			return
		}
		err := errEnded
		defer func() { errc <- err }() // also when f ends the goroutine with t.Fatal
		err = isolated(f)
	}
	go run()
	if err := <-errc; err != nil {
		tb.Fatal(err)
	}
}

// errEnded is what WithThread reports if f did not return.
var errEnded = errors.New("kernelref: the test ended its thread")

func isolated(f func() error) error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return os.NewSyscallError("mount /sys", err)
	}
	return f()
}

func findThread(prefix string) int {
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0
	}
	for _, c := range comms {
		b, err := os.ReadFile(c)
		if err != nil || !strings.HasPrefix(string(b), prefix) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(c, "/")[2])
		if err == nil {
			return pid
		}
	}
	return 0
}

func setScheduler(pid, policy int, priority int32) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), uintptr(policy), uintptr(unsafe.Pointer(&priority))); e != 0 {
		return os.NewSyscallError("sched_setscheduler", e)
	}
	return nil
}

// nap waits for the kernel, which has no event for what is waited for.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&ts, nil)
}
