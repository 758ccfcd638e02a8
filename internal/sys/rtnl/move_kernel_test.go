package rtnl_test

import (
	"errors"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

// TestKernelMove puts one end of a veth into the namespace of a process.
func TestKernelMove(t *testing.T) {
	here, there := netnstest.New(t), netnstest.New(t)
	h, far := open(t, here), open(t, there)
	cat := exec.Command("cat") // ends with its stdin
	stdin, err := cat.StdinPipe()
	check(t, err)
	check(t, there.Do(cat.Start))
	t.Cleanup(func() { check(t, errors.Join(stdin.Close(), cat.Wait())) })

	check(t, h.AddVeth("v0", "v1", 0))
	check(t, h.SetUp("v1", true))
	check(t, h.Move("v1", cat.Process.Pid))
	if _, err := h.Link("v1"); !errors.Is(err, rtnl.ErrNoDevice) {
		t.Errorf("v1 is still here: %v", err)
	}
	if l, err := far.Link("v1"); err != nil || l.Up {
		t.Errorf("v1 = %+v, %v, want it there and down", l, err)
	}
	if err := h.Move("v1", cat.Process.Pid); !errors.Is(err, rtnl.ErrNoDevice) {
		t.Errorf("a device that is gone: %v", err)
	}
	if err := h.Move("v0", 1<<22+1); !errors.Is(err, unix.ESRCH) {
		t.Errorf("a process that is gone: %v", err)
	}
}
