package sysctl_test

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/offlab/offlab/internal/sys/sysctl"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

// TestKernelReadWrite writes in a namespace; another and sysctl(8)'s view stay
// as they are.
func TestKernelReadWrite(t *testing.T) {
	need.Root(t)
	const name = "net.ipv4.tcp_rmem"
	outside, err := sysctl.Read(name)
	if err != nil || len(strings.Fields(outside)) != 3 || strings.Contains(outside, "\t") {
		t.Fatalf("Read(%s) = %q, %v", name, outside, err)
	}
	err = netnstest.New(t).Do(func() error {
		const want = "4096 100000 200000"
		if err := sysctl.Write(name, want); err != nil {
			return err
		}
		if got, err := sysctl.Read(name); got != want || err != nil {
			t.Errorf("Read = %q, %v, want %q", got, err, want)
		}
		if out, err := exec.Command("cat", "/proc/sys/net/ipv4/tcp_rmem").Output(); strings.Join(strings.Fields(string(out)), " ") != want {
			t.Errorf("cat: %q, %v", out, err)
		}
		if err := sysctl.Write("net.ipv4.tcp_congestion_control", "nonsense"); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("a value that the kernel refuses: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := sysctl.Read(name); after != outside {
		t.Errorf("outside it went from %q to %q", outside, after)
	}
}
