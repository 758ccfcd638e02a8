//go:build linux

package netnstest_test

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/offlab/offlab/internal/testutil/netnstest"
)

func current() string {
	s, err := os.Readlink(fmt.Sprintf("/proc/self/task/%d/ns/net", syscall.Gettid()))
	if err != nil {
		return err.Error()
	}
	return s
}

func TestDo(t *testing.T) {
	ns := netnstest.New(t)
	outside := current()
	if err := ns.Do(func() error {
		if current() == outside {
			t.Error("Do ran outside the namespace")
		}
		ifs, err := net.Interfaces()
		if err != nil {
			return err
		}
		if len(ifs) != 1 || ifs[0].Name != "lo" {
			t.Errorf("a fresh namespace has %v, want lo only", ifs)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestNoPoison checks that no thread of the process stays in the namespace.
func TestNoPoison(t *testing.T) {
	outside := current()
	for range 20 {
		ns := netnstest.New(t)
		if err := ns.Do(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	c := make(chan string)
	for range 4000 {
		go func() { c <- current() }()
	}
	for range 4000 {
		if got := <-c; got != outside {
			t.Fatalf("a goroutine ran in %s, want %s", got, outside)
		}
	}
}

// TestLeaderStays checks that the leader thread, whose namespace /proc/self and
// /proc/net show, never moves.
func TestLeaderStays(t *testing.T) {
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		ns := netnstest.New(t)
		if err := ns.Do(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.Readlink("/proc/self/ns/net"); got != want {
			t.Fatalf("the leader moved to %s", got)
		}
	}
}

func BenchmarkDo(b *testing.B) {
	ns := netnstest.New(b)
	for b.Loop() {
		if err := ns.Do(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
