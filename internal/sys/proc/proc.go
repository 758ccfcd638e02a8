// Package proc is what one process needs of another: locks that a death
// releases, children that outlive a terminal, and the identity of the boot and
// the namespace that a file was written in.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// BootID returns the identity of this boot of the kernel.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(id)), err
}

// NetNS returns the inode of the network namespace of the calling thread. No
// two namespaces that exist at one time share one.
func NetNS() (uint64, error) {
	// Not /proc/self: that is the leader's namespace, whoever asks.
	link, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return 0, err
	}
	inode, ok := strings.CutPrefix(strings.TrimSuffix(link, "]"), "net:[")
	if !ok {
		return 0, fmt.Errorf("namespace link %q", link)
	}
	return strconv.ParseUint(inode, 10, 64)
}

// A HeldError says that a lock is held by another process.
type HeldError struct {
	Path string
	PID  int // 0 where the file does not tell
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return e.Path + " is locked by another process"
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Lock takes the lock of a path without waiting, and writes this process's
// number into the file. The lock lives as long as the file is open, here or in
// a child that inherits it: a death releases it. A lock that is held fails
// with a [*HeldError].
func Lock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			holder := held(path, f)
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, holder
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !current(path, f) { // the holder removed it as we opened it
			f.Close()
			continue
		}
		if err := sign(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
}

// Unlock removes the file of a lock that this process holds, and closes it.
func Unlock(f *os.File) error {
	var err error
	if current(f.Name(), f) {
		err = os.Remove(f.Name())
	}
	return errors.Join(err, f.Close())
}

// LockOpen locks an open file for as long as it is open. It does not wait: a
// file that another process has locked fails with a *HeldError.
func LockOpen(f *os.File) error {
	err := flock(f)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &HeldError{Path: f.Name()}
	}
	return err
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// current reports whether a path still leads to an open file.
func current(path string, f *os.File) bool {
	there, err1 := os.Stat(path)
	here, err2 := f.Stat()
	return err1 == nil && err2 == nil && os.SameFile(there, here)
}

func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func held(path string, f *os.File) *HeldError {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return &HeldError{Path: path}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil { // the holder has not signed yet
		return &HeldError{Path: path}
	}
	return &HeldError{Path: path, PID: pid}
}

// Detach makes a command, not yet started, a session of its own: signals from
// the terminal, such as Ctrl-C, do not reach it.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Group makes a command, not yet started, the head of a process group, and
// makes its cancellation end the whole group.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		if errors.Is(err, unix.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
