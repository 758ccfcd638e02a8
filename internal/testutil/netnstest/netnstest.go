//go:build linux

// Package netnstest gives each test a network namespace of its own.
package netnstest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/offlab/offlab/internal/testutil/need"
)

// An NS is a network namespace that lives as long as its test.
type NS struct{ f *os.File }

// New creates a namespace and closes it when the test ends.
func New(tb testing.TB) *NS {
	tb.Helper()
	need.NetNS(tb)
	ns := &NS{}
	if err := onThread(func() (err error) {
		if err = syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		ns.f, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", syscall.Gettid()))
		return err
	}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ns.f.Close() })
	return ns
}

// Do runs f on a thread inside the namespace. The thread ends with f: it is
// never handed back to the scheduler, so no other goroutine can land in the
// namespace by accident. Goroutines that f starts do not inherit it.
func (ns *NS) Do(f func() error) error {
	return onThread(func() error {
		if _, _, e := syscall.RawSyscall(sysSetns, ns.f.Fd(), syscall.CLONE_NEWNET, 0); e != 0 {
			return os.NewSyscallError("setns", e)
		}
		return f()
	})
}

// onThread runs f on a thread of its own, which ends with f.
//
// The leader thread is not used: it cannot end before the process, and
// /proc/self and /proc/net show the namespace of the leader, whoever reads
// them. One helper that changes it changes both for the whole process.
func onThread(f func() error) error {
	errc := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			done := make(chan struct{})
			go func() { // cannot be on the leader: this goroutine holds it
				defer close(done)
				run()
			}()
			<-done
			return
		}
		errc <- f() // still locked: the runtime ends the thread
	}
	go run()
	return <-errc
}

const sysSetns = 308 // SYS_SETNS on amd64; the real package takes it from x/sys/unix
