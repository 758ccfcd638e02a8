package proc_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/sys/proc"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	f, err := proc.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = proc.Lock(path)
	if held, ok := errors.AsType[*proc.HeldError](err); !ok || held.PID != os.Getpid() {
		t.Errorf("second Lock: %v, want held by %d", err, os.Getpid())
	}
	if err := proc.Unlock(f); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a released lock is left: %v", err)
	}
	if _, err := proc.Lock(filepath.Join(path, "no", "dir")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// TestLockInherited is about a lock whose taker closes it and whose child, a
// guard, lives on.
func TestLockInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	f, err := proc.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd := exec.Command("cat")
	cmd.Stdin, cmd.ExtraFiles = r, []*os.File{f}
	proc.Detach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	f.Close()
	if _, err := proc.Lock(path); err == nil {
		t.Error("the lock was free while the child held it")
	}
	w.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	f, err = proc.Lock(path)
	if err != nil {
		t.Fatalf("the lock outlived the child: %v", err)
	}
	if err := proc.Unlock(f); err != nil {
		t.Error(err)
	}
}

// TestLockRace takes and releases one lock from many goroutines: never two at
// once, though each release removes the file.
func TestLockRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	var inside sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				f, err := proc.Lock(path)
				if _, held := errors.AsType[*proc.HeldError](err); held {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !inside.TryLock() {
					t.Error("two hold the lock")
				} else {
					inside.Unlock()
				}
				if err := proc.Unlock(f); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestGroup(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "sleep 60 & sleep 60")
	proc.Group(cmd)
	out, err := cmd.CombinedOutput() // waits for the grandchild too: it holds the pipe
	if err == nil || ctx.Err() == nil {
		t.Errorf("ended with %v, %q", err, out)
	}
}

func TestKernelIdentity(t *testing.T) {
	boot, err := proc.BootID()
	if err != nil || len(boot) != 36 {
		t.Errorf("BootID() = %q, %v", boot, err)
	}
	outside, err := proc.NetNS()
	if err != nil || outside == 0 {
		t.Fatalf("NetNS() = %d, %v", outside, err)
	}
	if err := netnstest.New(t).Do(func() error {
		inside, err := proc.NetNS()
		if inside == outside {
			t.Errorf("NetNS() = %d inside and outside", inside)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
