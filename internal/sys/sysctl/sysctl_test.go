package sysctl_test

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/offlab/offlab/internal/sys/sysctl"
)

func TestPath(t *testing.T) {
	for name, want := range map[string]string{
		"net.ipv4.tcp_rmem":                 "/proc/sys/net/ipv4/tcp_rmem",
		"net/ipv4/tcp_rmem":                 "/proc/sys/net/ipv4/tcp_rmem",
		"net.ipv4.conf.eth0/100.forwarding": "/proc/sys/net/ipv4/conf/eth0.100/forwarding",
		"net/ipv4/conf/eth0.100/forwarding": "/proc/sys/net/ipv4/conf/eth0.100/forwarding",
		"net.core.rmem_max":                 "/proc/sys/net/core/rmem_max",
	} {
		if got, err := sysctl.Path(name); got != want || err != nil {
			t.Errorf("Path(%q) = %q, %v, want %q", name, got, err, want)
		}
		canon, err := sysctl.Canonical(name)
		if got, _ := sysctl.Path(canon); got != want || err != nil || !strings.HasPrefix(canon, "net.") {
			t.Errorf("Canonical(%q) = %q, %v, which is %q", name, canon, err, got)
		}
	}
	for _, name := range []string{
		"", ".", "/", "net", "net.", "net/", "kernel.panic", "netx.a", "net..", "net/..", "net/../kernel/panic", "net/./core",
		"net//core", "/net/core/x", ".net.core", "net.ipv4./../kernel", "net.//.//.kernel.panic", "net.core.x\x00y", "../net/core",
	} {
		if got, err := sysctl.Path(name); !errors.Is(err, sysctl.ErrOutside) {
			t.Errorf("Path(%q) = %q, %v, want ErrOutside", name, got, err)
		}
	}
}

// FuzzPath checks that no name leads out of /proc/sys/net.
func FuzzPath(f *testing.F) {
	f.Add("net.ipv4.conf.eth0/100.forwarding")
	f.Add("net/../kernel/panic")
	f.Add("net.//./kernel")
	f.Fuzz(func(t *testing.T, name string) {
		got, err := sysctl.Path(name)
		if err == nil && (path.Clean(got) != got || !strings.HasPrefix(got, "/proc/sys/net/")) {
			t.Errorf("Path(%q) = %q", name, got)
		}
		canon, err2 := sysctl.Canonical(name)
		if again, err3 := sysctl.Canonical(canon); (err == nil) != (err2 == nil) || err2 == nil && (again != canon || err3 != nil) {
			t.Errorf("Canonical(%q) = %q, %v, and again %q, %v", name, canon, err2, again, err3)
		}
	})
}

func TestReadMissing(t *testing.T) {
	if _, err := sysctl.Read("net.ipv4.no_such_thing"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no_such_thing") {
		t.Errorf("Read: %v", err)
	}
	if err := sysctl.Write("net.ipv4.no_such_thing", "1"); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Write: %v", err)
	}
	if _, err := sysctl.Read("kernel.panic"); !errors.Is(err, sysctl.ErrOutside) {
		t.Errorf("Read: %v", err)
	}
	if err := sysctl.Write("kernel.panic", "1"); !errors.Is(err, sysctl.ErrOutside) {
		t.Errorf("Write: %v", err)
	}
}
