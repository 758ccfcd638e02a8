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
	tap, sock, ether int
	kthread          int
	buf              []byte
}

// NewCoalescer makes the devices. It must run inside WithThread.
func NewCoalescer() (*Coalescer, error) {
	name := "gro" + strconv.Itoa(os.Getpid()%10000)
	c := &Coalescer{tap: -1, sock: -1, ether: -1, buf: make([]byte, 1<<17)}
	var err error
	if c.tap, err = OpenTAP(name, TAPOptions{NAPI: true}); err != nil {
		return nil, err
	}
	steps := [][]string{
		{"ip", "link", "set", name, "mtu", "9500", "up"},
		{"ethtool", "-K", name, "gro", "on", "rx-udp-gro-forwarding", "on"},
		// Local tunnels: without a socket on its port VXLAN is plain UDP.
		{"ip", "link", "add", "vx0", "type", "vxlan", "dstport", "4789", "external"},
		{"ip", "link", "set", "vx0", "up"},
	}
	for _, s := range steps {
		if err := Run(s...); err != nil {
			return c, err
		}
	}
	// A packet socket bound to the type of the unknown frames: else the one
	// for all types would be their last handler, which gets them late.
	if c.ether, err = PacketSocket(name, 0x88b5); err != nil {
		return c, err
	}
	if c.sock, err = PacketSocket(name, unix.ETH_P_ALL); err != nil {
		return c, err
	}
	tv := unix.Timeval{Usec: 300000}
	if err := unix.SetsockoptTimeval(c.sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return c, os.NewSyscallError("setsockopt", err)
	}
	if err := os.WriteFile("/sys/class/net/"+name+"/threaded", []byte("1"), 0); err != nil {
		return c, err
	}
	return c, c.pin(name)
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
	for _, fd := range []int{c.tap, c.sock, c.ether} {
		if fd >= 0 {
			unix.Close(fd) //nolint:errcheck // a descriptor of this process
		}
	}
}

// Burst writes the frames, at most MaxBurst, as one poll and returns what the
// kernel delivers, in order. segments tells how many frames of the burst an
// output holds; reading ends when all are there, or with an error when nothing
// comes for 300 ms.
func (c *Coalescer) Burst(frames [][]byte, segments func(Frame) int) ([]Frame, error) {
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
		k, err := unix.Read(c.sock, c.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("kernelref: %d of %d segments came back: %w", n, len(frames), err)
		}
		h, err := vnet.Legacy.Get(c.buf)
		if err != nil {
			return out, err
		}
		f := Frame{append([]byte{}, c.buf[vnet.Legacy.Size:k]...), h}
		n += segments(f)
		out = append(out, f)
	}
	return out, nil
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
