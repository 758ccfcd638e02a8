package tap_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/sys/tap"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/vnet"
)

func open(t *testing.T, ns *netnstest.NS, name string, o tap.Options) (d *tap.Device) {
	t.Helper()
	need.Root(t)
	need.TUN(t)
	if err := ns.Do(func() (err error) { d, err = tap.Open(name, o); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func run(t *testing.T, ns *netnstest.NS, args ...string) string {
	t.Helper()
	need.Tool(t, args[0])
	var out []byte
	if err := ns.Do(func() (err error) {
		out, err = exec.Command(args[0], args[1:]...).CombinedOutput()
		return err
	}); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestKernelOffloads compares what was asked for with what ethtool shows, and
// shows that ethtool can turn off no more and no less than that.
func TestKernelOffloads(t *testing.T) {
	ns := netnstest.New(t)
	all := tap.Csum | tap.TSO4 | tap.TSO6 | tap.TSOECN | tap.USO | tap.Tunnel | tap.TunnelCsum
	features := map[string]tap.Offloads{
		"tx-checksum-ip-generic": tap.Csum, "tx-tcp-segmentation": tap.TSO4, "tx-tcp6-segmentation": tap.TSO6,
		"tx-tcp-ecn-segmentation": tap.TSOECN, "tx-udp-segmentation": tap.USO,
		"tx-udp_tnl-segmentation": tap.Tunnel, "tx-udp_tnl-csum-segmentation": tap.TunnelCsum,
	}
	for i, want := range []tap.Offloads{0, tap.Csum, tap.Csum | tap.TSO4 | tap.TSO6, all} {
		name := fmt.Sprint("t", i)
		d := open(t, ns, name, tap.Options{Offloads: want})
		if d.Offloads != want {
			t.Logf("asked for %#x, got %#x", want, d.Offloads) // an older kernel
		}
		shown := run(t, ns, "ethtool", "-k", name)
		for feature, bit := range features {
			if got := strings.Contains(shown, feature+": on"); got != (d.Offloads&bit != 0) {
				t.Errorf("offloads %#x: %s on is %v", want, feature, got)
			}
		}
		if d.Offloads&(tap.Tunnel|tap.TunnelCsum) != 0 && d.Format.Size != 24 {
			t.Errorf("tunnels with a header of %d bytes", d.Format.Size)
		}
	}
	run(t, ns, "ethtool", "-K", "t3", "tso", "off")
	if shown := run(t, ns, "ethtool", "-k", "t3"); !strings.Contains(shown, "tcp-segmentation-offload: off") {
		t.Errorf("tso off did not act:\n%s", shown)
	}
}

// TestKernelPackets moves packets both ways, in parts and in one piece, through
// a device that was moved to another namespace, on each header size.
func TestKernelPackets(t *testing.T) {
	for _, size := range []int{10, 12, 24} {
		t.Run(fmt.Sprint("header-", size), func(t *testing.T) { packets(t, size) })
	}
}

func packets(t *testing.T, size int) {
	t.Helper()
	here, there := netnstest.New(t), netnstest.New(t)
	d := open(t, here, "t%d", tap.Options{HeaderSize: size, Queues: 2, NAPI: true, Offloads: tap.Csum})
	if d.Name != "t0" || len(d.Queues) != 2 || d.Format.Size != size {
		t.Fatalf("device %+v", d)
	}
	move(t, here, there, d.Name)
	q := d.Queues[0]
	buf := make([]byte, tap.MaxPacket)
	if err := q.Write([][]byte{make([]byte, size+60)}); err != tap.ErrDown { //nolint:errorlint // a value of the data path
		t.Errorf("write while down: %v", err)
	}
	run(t, there, "sysctl", "-qw", "net.ipv6.conf.t0.disable_ipv6=1")
	run(t, there, "ip", "addr", "add", "192.0.2.1/24", "dev", "t0")
	run(t, there, "ip", "link", "set", "t0", "address", "02:00:00:00:01:00", "up")
	run(t, there, "ip", "neigh", "add", "192.0.2.2", "lladdr", "02:00:00:00:02:00", "dev", "t0")

	if _, err := q.Read(buf); err != tap.ErrAgain { //nolint:errorlint // likewise
		t.Errorf("nothing to read: %v", err)
	}
	// An echo request in parts; the host answers it.
	echo := pkttest.Build(pkttest.Eth{}, pkttest.IP4{Proto: 1, Src: [4]byte{192, 0, 2, 2}, Dst: [4]byte{192, 0, 2, 1}},
		pkttest.Payload("\x08\x00\xf7\xff\x00\x00\x00\x00"))
	copy(echo, []byte{2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 2, 0})
	for i, parts := range [][][]byte{
		{append(make([]byte, size), echo...)},
		{make([]byte, size), echo[:14], echo[14:20], echo[20:]},
	} {
		if err := q.Write(parts); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		n := read(t, d, buf)
		h, err := d.Format.Get(buf[:n])
		if err != nil || h.GSOType != vnet.GSONone {
			t.Errorf("header %+v, %v", h, err)
		}
		got := buf[size:n]
		if !bytes.Equal(got[26:34], []byte{192, 0, 2, 1, 192, 0, 2, 2}) || got[34] != 0 {
			t.Errorf("read % x, want an echo reply", got)
		}
	}
	// A header that asks for what cannot be.
	bad := append([]byte{1, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, make([]byte, size-10+60)...)
	if err := q.Write([][]byte{bad}); err != tap.ErrRefused { //nolint:errorlint // likewise
		t.Errorf("bad header: %v", err)
	}
	run(t, there, "ip", "link", "del", "t0")
	if _, err := q.Read(buf); err != tap.ErrGone { //nolint:errorlint // likewise
		t.Errorf("read of a device that is gone: %v", err)
	}
}

// read waits for a packet on any queue.
func read(t *testing.T, d *tap.Device, buf []byte) int {
	t.Helper()
	for start := time.Now(); time.Since(start) < 5*time.Second; {
		for _, q := range d.Queues {
			if n, err := q.Read(buf); err == nil {
				return n
			}
			if err := q.Wait(time.Millisecond, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("nothing came")
	return 0
}

func move(t *testing.T, from, to *netnstest.NS, dev string) {
	t.Helper()
	cat := exec.Command("cat") // ends with its stdin
	stdin, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Do(cat.Start); err != nil {
		t.Fatal(err)
	}
	if err := from.Do(func() error {
		h, err := rtnl.Open()
		if err != nil {
			return err
		}
		return errors.Join(h.Move(dev, cat.Process.Pid), h.Close())
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stdin.Close(), cat.Wait()); err != nil {
		t.Fatal(err)
	}
}

// TestKernelWait checks the four ways in which a wait ends.
func TestKernelWait(t *testing.T) {
	ns := netnstest.New(t)
	d := open(t, ns, "t0", tap.Options{})
	q := d.Queues[0]
	wait := func(d time.Duration, idle bool) time.Duration {
		t.Helper()
		start := time.Now()
		if err := q.Wait(d, idle); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	if took := wait(300*time.Microsecond, false); took < 300*time.Microsecond {
		t.Errorf("a wait of 300 µs took %v", took)
	}
	q.Wake()
	wait(-1, false)
	q.Wake()
	wait(-1, true)
	go q.Wake()
	wait(-1, true)
	run(t, ns, "ip", "link", "set", "t0", "up") // IPv6 announces itself
	wait(-1, false)
	if took := wait(time.Millisecond, true); took < time.Millisecond {
		t.Errorf("an idle wait of 1 ms ended after %v", took)
	}
}

// TestKernelNoAllocs reads, writes and waits without allocation.
func TestKernelNoAllocs(t *testing.T) {
	ns := netnstest.New(t)
	d := open(t, ns, "t0", tap.Options{})
	run(t, ns, "sysctl", "-qw", "net.ipv6.conf.t0.disable_ipv6=1")
	run(t, ns, "ip", "link", "set", "t0", "up")
	q := d.Queues[0]
	buf := make([]byte, 2048)
	one, many := [][]byte{make([]byte, 74)}, [][]byte{make([]byte, 12), make([]byte, 62)}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = q.Read(buf)
		_ = q.Write(one)
		_ = q.Write(many)
		_ = q.Wait(0, false)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestKernelOpenErrors checks that each refusal says what to do.
func TestKernelOpenErrors(t *testing.T) {
	ns := netnstest.New(t)
	open(t, ns, "t0", tap.Options{})
	for _, tt := range []struct {
		name string
		is   error
		hint string
		o    tap.Options
	}{
		{name: "t0", is: syscall.EBUSY, hint: "choose another"},
		{name: "a-name-that-is-too-long", is: syscall.EINVAL},
		{name: "t1", o: tap.Options{HeaderSize: 4}, is: syscall.EINVAL},
	} {
		err := ns.Do(func() error {
			d, err := tap.Open(tt.name, tt.o)
			if err == nil {
				return d.Close()
			}
			return err
		})
		oe, ok := errors.AsType[*tap.OpenError](err)
		if !ok || !errors.Is(err, tt.is) || !strings.Contains(oe.Hint(), tt.hint) {
			t.Errorf("Open(%s): %v, want %v", tt.name, err, tt.is)
		}
	}
}

// TestHints needs no kernel.
func TestHints(t *testing.T) {
	for _, tt := range []struct {
		op   string
		err  error
		is   error
		want string
	}{
		{"open /dev/net/tun", syscall.ENOENT, fs.ErrNotExist, "modprobe tun"},
		{"open /dev/net/tun", syscall.EACCES, fs.ErrPermission, "CAP_NET_ADMIN"},
		{"TUNSETIFF", syscall.EPERM, fs.ErrPermission, "CAP_NET_ADMIN"},
	} {
		err := error(&tap.OpenError{Device: "t0", Op: tt.op, Err: tt.err})
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: want %v and a hint with %q", err, tt.is, tt.want)
		}
	}
}
