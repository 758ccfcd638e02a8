package knob_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/catalog"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/sys/sysctl"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

// A bench is a namespace with a veth pair v0, v1 and a TAP t0, watched over
// sockets of its own.
type bench struct {
	testing.TB
	ns  *netnstest.NS
	et  *ethtool.Handle
	rt  *rtnl.Handle
	dir string
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	need.Root(tb)
	need.TUN(tb)
	need.Tool(tb, "ip")
	b := &bench{TB: tb, ns: netnstest.New(tb), dir: filepath.Join(tb.TempDir(), "state")}
	b.in(func() (err error) {
		if b.et, err = ethtool.Open(); err != nil {
			return err
		}
		if b.rt, err = rtnl.Open(); err != nil {
			return err
		}
		return errors.Join(b.rt.AddVeth("v0", "v1", 0), exec.Command("ip", "tuntap", "add", "t0", "mode", "tap").Run())
	})
	tb.Cleanup(func() { b.ok(errors.Join(b.et.Close(), b.rt.Close())) })
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// in runs f in the namespace.
func (b *bench) in(f func() error) {
	b.Helper()
	b.ok(b.ns.Do(f))
}

// A look is all of a device that a session may change.
type look struct {
	Features ethtool.Features
	Link     map[string]int
	Coalesce map[string]uint32
	Sack     string
}

func (b *bench) look(dev string) (l look) {
	b.Helper()
	b.in(func() error {
		link, err := b.rt.Link(dev)
		b.ok(err)
		l.Link = link.Values
		l.Features, err = b.et.Features(dev)
		b.ok(err)
		l.Coalesce, err = b.et.Coalesce(dev)
		if err != nil && !errors.Is(err, ethtool.ErrUnsupported) {
			return err
		}
		l.Sack, err = sysctl.Read("net.ipv4.tcp_sack")
		return err
	})
	return l
}

// same fails unless the device is as it was.
func (b *bench) same(dev string, was look) {
	b.Helper()
	if diff := cmp.Diff(was, b.look(dev)); diff != "" {
		b.Errorf("%s is not as it was:\n%s", dev, diff)
	}
}

func (b *bench) claim(dev string) (s *knob.Session) {
	b.Helper()
	b.in(func() (err error) { s, err = knob.Claim(dev, b.dir); return err })
	b.Cleanup(func() { b.in(s.Restore) })
	return s
}

// set makes a setting of NAME=VALUE, or of a command factor.
func set(tb testing.TB, text string) knob.Setting {
	tb.Helper()
	name, value, _ := strings.Cut(text, "=")
	arg := name
	if f, err := knob.Parse([]string{name}); err != nil || len(f) != 1 {
		arg = name + "=" + value + ",77777" // a value needs another to be compared with
	}
	f, err := knob.Parse([]string{arg})
	if err != nil {
		tb.Fatal(err)
	}
	return knob.Setting{Factor: f[0], Value: value}
}

func (b *bench) apply(s *knob.Session, settings ...string) (r knob.Report) {
	b.Helper()
	var list []knob.Setting
	for _, text := range settings {
		list = append(list, set(b, text))
	}
	b.in(func() (err error) { r, err = s.Apply(list); return err })
	return r
}

func (b *bench) current(s *knob.Session, name string) (v string) {
	b.Helper()
	b.in(func() (err error) { v, err = s.Current(set(b, name+"=1").Factor); return err })
	return v
}

// active reads one feature, past the session.
func (b *bench) active(name string) bool {
	b.Helper()
	f, err := b.et.Features("v0")
	b.ok(err)
	return f.Bits[name].Active
}

func TestKernelNames(t *testing.T) {
	b := newBench(t)
	names, err := b.et.FeatureNames("v0")
	b.ok(err)
	for _, name := range names {
		if !slices.Contains(knob.KernelFeatures, name) {
			t.Errorf("this kernel's %s is not in the table", name)
		}
	}
}

func TestKernelToggle(t *testing.T) {
	b := newBench(t)
	was := b.look("v0")
	s := b.claim("v0")
	if got := b.current(s, "tso"); got != "on" {
		t.Errorf("Current(tso) = %s, want on", got)
	}
	r := b.apply(s, "tso=off")
	if m := r.Settings[0]; !m.Moved || m.Asked != "off" || m.Got != "off" || m.Was != "on" || m.Knob != "tso" || m.Reason != "" || len(m.Bits) < 4 || len(r.Dragged) != 0 {
		t.Errorf("tso off: %+v", r)
	}
	if b.active("tx-tcp-segmentation") || b.active("tx-tcp6-segmentation") || !b.active("tx-generic-segmentation") {
		t.Error("the kernel has not what was reported")
	}
	if got := b.current(s, "tso"); got != "off" {
		t.Errorf("Current(tso) = %s, want off", got)
	}
	// Another arm: tso is back, since it is not asked for.
	if r = b.apply(s, "gro=on"); !r.Settings[0].Moved || !b.active("tx-tcp-segmentation") || !b.active("rx-gro") {
		t.Errorf("gro on: %+v", r)
	}
	if r = b.apply(s); len(r.Dragged)+len(r.Settings) != 0 {
		t.Errorf("no settings: %+v", r)
	}
	b.same("v0", was)
	if r = b.apply(s, "tso=on"); !r.Settings[0].Moved || len(r.Settings[0].Bits) != 0 {
		t.Errorf("tso on, as it is: %+v", r)
	}
	b.in(s.Restore)
	b.same("v0", was)
	b.in(s.Restore) // a second time does nothing
	if _, err := s.Apply(nil); !errors.Is(err, knob.ErrClosed) {
		t.Errorf("Apply after Restore: %v", err)
	}
	if left, _ := os.ReadDir(b.dir); len(left) != 0 {
		t.Errorf("left in the state directory: %v", left)
	}
}

// TestKernelDrag is about changes nobody asked for, and a group that holds them
// together.
func TestKernelDrag(t *testing.T) {
	b := newBench(t)
	s := b.claim("v0")
	r := b.apply(s, "sg=off")
	for _, want := range []study.Change{
		{Name: "tx-tcp-segmentation", From: "on", To: "off [requested on]"}, {Name: "tx-generic-segmentation", From: "on", To: "off [requested on]"},
	} {
		if !slices.Contains(r.Dragged, want) {
			t.Errorf("sg off dragged %v, without %v", r.Dragged, want)
		}
	}
	for _, c := range r.Dragged {
		if strings.HasPrefix(c.Name, "tx-scatter") {
			t.Errorf("%v was asked for", c)
		}
	}
	r = b.apply(s, "sg+tso=off")
	if slices.ContainsFunc(r.Dragged, func(c study.Change) bool { return strings.HasPrefix(c.Name, "tx-tcp") }) || !r.Settings[0].Moved {
		t.Errorf("sg+tso off: %+v", r)
	}
	if r = b.apply(s, "sg+tso=on"); len(r.Dragged) != 0 || !r.Settings[0].Moved {
		t.Errorf("sg+tso on: %+v", r)
	}
}

// TestKernelReasons is about knobs that do not move.
func TestKernelReasons(t *testing.T) {
	b := newBench(t)
	v0, t0, lo := b.claim("v0"), b.claim("t0"), b.claim("lo")
	for _, tt := range []struct {
		s        *knob.Session
		settings []string
		got      string
		want     string
	}{
		{v0, []string{"lro=on"}, "off", "fixed"},
		{v0, []string{"ufo=on"}, "off", "this kernel has no such feature"},
		{v0, []string{"tx-tcp6-segmentation=on", "sg=off"}, "off", "off [requested on]: needs tx-scatter-gather, which is off (net/core/dev.c, netdev_fix_features)"},
		{v0, []string{"gso=on", "sg=off"}, "off", "off [requested on]: needs tx-scatter-gather, which is off (net/core/dev.c, netdev_fix_features)"},
		{v0, []string{"tx-tcp-segmentation=on", "tx=off"}, "off", "off [requested on]: needs tx-checksum-ip-generic, which is off (net/core/dev.c, netdev_fix_features)"},
		{v0, []string{"tx-tcp-mangleid-segmentation=on", "tx-tcp-segmentation=off"}, "off", "off [requested on]: needs tx-tcp-segmentation, which is off (net/core/dev.c, netdev_fix_features)"},
		{v0, []string{"uso=on", "tx=off"}, "off", "off [requested on]: needs tx-checksum-ip-generic, which is off (net/core/dev.c, netdev_fix_features)"},
		{v0, []string{"tso=off", "sg+tso=on"}, "on", "another setting asks otherwise"},
		{v0, []string{"rx-usecs=5"}, "", "the driver has no such parameter"},
		{v0, []string{"mtu=77"}, "77", ""}, // no lower limit but 68 on a veth
		{v0, []string{"mtu=1000000"}, "1500", "link: set mtu of v0: invalid argument"},
		{t0, []string{"tx=on"}, "off", "off [requested on]: vetoed by the driver, or by a device stacked on it"},
		{t0, []string{"rx-frames=1000"}, "64", "the driver made it 64"},
		{lo, []string{"tx=off"}, "on", "fixed"},
		{lo, []string{"loopback=on"}, "on", ""},
		{t0, []string{"ring-rx=5"}, "", "the driver has no such parameter"},
	} {
		m := b.apply(tt.s, tt.settings...).Settings[0]
		if m.Got != tt.got || m.Reason != tt.want || m.Moved != (tt.want == "" || tt.got == "64") {
			t.Errorf("%v: %+v, want %q, %q", tt.settings, m, tt.got, tt.want)
		}
	}
	// tx-tcp-accecn-segmentation stays on without the others.
	if m := b.apply(v0, "tso=on", "sg=off").Settings[0]; m.Moved || m.Got == "on" ||
		m.Reason != "off [requested on]: needs tx-scatter-gather, which is off (net/core/dev.c, netdev_fix_features)" {
		t.Errorf("tso without scatter-gather: %+v", m)
	}
	if r := b.apply(v0, "tso=on", "tx=off"); !strings.Contains(r.Settings[0].Reason, "tx-tcp6-segmentation off [requested on]: needs tx-checksum") || r.Settings[0].Moved {
		t.Errorf("tso without checksums: %+v", r.Settings[0])
	}
}

func TestKernelValues(t *testing.T) {
	b := newBench(t)
	was := b.look("v0")
	s := b.claim("v0")
	if got := b.current(s, "mtu"); got != "1500" {
		t.Errorf("Current(mtu) = %s", got)
	}
	small := study.Change{Name: "gso_ipv4_max_size", From: "65536", To: "16000"}
	for range 2 { // the result does not depend on what was applied before
		r := b.apply(s, "mtu=9000", "gso_max_size=16000", "txqueuelen=0")
		for _, m := range r.Settings {
			if !m.Moved || m.Got != m.Asked || m.Was == m.Got {
				t.Errorf("%+v", m)
			}
		}
		if !cmp.Equal(r.Dragged, []study.Change{small}) {
			t.Errorf("dragged %v, want %v", r.Dragged, small)
		}
		b.apply(s, "gso_max_size=16000", "gso_ipv4_max_size=20000")
		if got := b.look("v0").Link; got["gso_ipv4_max_size"] != 20000 || got["mtu"] != 1500 || got["txqueuelen"] != was.Link["txqueuelen"] {
			t.Errorf("values: %v", got)
		}
	}
	b.in(func() error {
		if _, err := s.Current(set(t, "rx-usecs=1").Factor); !errors.Is(err, knob.ErrUnsupported) {
			t.Errorf("Current(rx-usecs) of a veth: %v", err)
		}
		return nil
	})
	b.in(s.Restore)
	b.same("v0", was)
}

func TestKernelSysctl(t *testing.T) {
	b := newBench(t)
	was := b.look("v0")
	s := b.claim("v0")
	if m := b.apply(s, "net.ipv4.tcp_sack=0").Settings[0]; !m.Moved || m.Was != "1" || m.Got != "0" || b.look("v0").Sack != "0" {
		t.Errorf("tcp_sack=0: %+v", m)
	}
	if m := b.apply(s, "net.ipv4.tcp_congestion_control=nonsense").Settings[0]; m.Moved || !strings.Contains(m.Reason, "no such file") {
		t.Errorf("an unknown algorithm: %+v", m)
	}
	if got := b.look("v0").Sack; got != "1" {
		t.Errorf("tcp_sack = %s in an arm without it", got)
	}
	b.in(func() error {
		if _, err := s.Apply([]knob.Setting{set(t, "net.ipv4.no_such_thing=1")}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an unknown sysctl: %v", err)
		}
		return nil
	})
	b.apply(s, "net.ipv4.tcp_sack=0")
	b.in(s.Restore)
	b.same("v0", was)
}

func TestKernelCommands(t *testing.T) {
	b := newBench(t)
	was := b.look("v0")
	file := filepath.Join(t.TempDir(), "log")
	f, err := knob.Parse([]string{
		fmt.Sprintf("cmd:x='echo on >>%s; ip link set v0 mtu 1500','echo off >>%s; ip link set v0 mtu 1400'", file, file),
		"cmd:bad='true','echo no luck >&2; false'",
	})
	b.ok(err)
	s := b.claim("v0")
	b.in(func() error { return s.Adopt(f) })
	b.in(func() error {
		if v, err := s.Current(f[0]); v != "on" || err != nil {
			t.Errorf("Current(cmd:x) = %q, %v", v, err)
		}
		r, err := s.Apply([]knob.Setting{{Factor: f[0], Value: "off"}, {Factor: f[1], Value: "off"}})
		if m := r.Settings[1]; m.Moved || m.Reason != "exit status 1: no luck" {
			t.Errorf("a command that fails: %+v", m)
		}
		// The session puts the MTU back as it would anything not asked for.
		if m := r.Settings[0]; !m.Moved || m.Got != "off" || m.Was != "on" {
			t.Errorf("cmd:x off: %+v", m)
		}
		return err
	})
	b.in(func() error { _, err := s.Apply([]knob.Setting{{Factor: f[0], Value: "off"}}); return err })
	b.in(s.Restore)
	b.same("v0", was)
	if log, _ := os.ReadFile(file); string(log) != "on\noff\non\n" {
		t.Errorf("ran %q, want on, off once, on", log)
	}
	if s, err := knob.Claim("lo", b.dir); err == nil {
		if err := s.Adopt([]knob.Factor{{Name: "cmd:y", Kind: knob.KindCommand, Members: []string{"false", "true"}}}); err == nil {
			t.Error("a first command that fails is adopted")
		}
		if err := s.Restore(); err == nil || !strings.Contains(err.Error(), "cmd:y") {
			t.Errorf("its restore: %v", err)
		}
	}
}

func TestKernelBadInput(t *testing.T) {
	b := newBench(t)
	b.in(func() error {
		_, err := knob.Claim("nope", b.dir)
		if e, ok := errors.AsType[*catalog.UnknownError](err); !ok || !slices.Equal(e.Known, []string{"lo", "v1", "v0", "t0"}) {
			t.Errorf("unknown device: %v", err)
		}
		if _, err := knob.Claim("v0", "/proc/no/such"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no state directory: %v", err)
		}
		return nil
	})
	s := b.claim("v0")
	for _, bad := range []knob.Setting{
		{},
		{Factor: set(t, "tso=on").Factor, Value: "maybe"},
		{Factor: set(t, "mtu=1500").Factor, Value: "-1"},
		{Factor: knob.Factor{Name: "mtu", Kind: knob.KindRing}, Value: "5"},
		{Factor: knob.Factor{Name: "kernel", Kind: knob.KindSysctl}, Value: "5"},
		{Factor: knob.Factor{Name: "cmd:x", Kind: knob.KindCommand}, Value: "on"},
		{Factor: knob.Factor{Name: "net/ipv4/tcp_sack", Kind: knob.KindSysctl}, Value: "1"},
	} {
		b.in(func() error {
			if _, err := s.Apply([]knob.Setting{bad}); err == nil {
				t.Errorf("%+v was applied", bad)
			}
			return nil
		})
	}
}

// TestKernelIoctl is the session without netlink.
func TestKernelIoctl(t *testing.T) {
	b := newBench(t)
	var reports [2]knob.Report
	for i, o := range []knob.Options{{}, {Ioctl: true}} {
		was := b.look("v0")
		b.in(func() error {
			s, err := o.Claim("v0", b.dir)
			b.ok(err)
			reports[i], err = s.Apply([]knob.Setting{set(t, "sg+tso=off"), set(t, "lro=on"), set(t, "mtu=1400")})
			return errors.Join(err, s.Restore())
		})
		b.same("v0", was)
	}
	if diff := cmp.Diff(reports[0], reports[1]); diff != "" {
		t.Errorf("netlink and ioctl differ:\n%s", diff)
	}
}

// BenchmarkApply is the cost of an arm that differs from the one before.
func BenchmarkApply(b *testing.B) {
	bench := newBench(b)
	s := bench.claim("v0")
	arms := [][]knob.Setting{{set(b, "sg+tso=off")}, nil}
	bench.in(func() error {
		for i := 0; b.Loop(); i++ {
			if _, err := s.Apply(arms[i%2]); err != nil {
				return err
			}
		}
		return nil
	})
}
