//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options say which namespaces a process is born in.
type Options struct {
	Net  bool // a network namespace, and a mount namespace for its /sys
	User bool // a user namespace in which the caller is root
}

// Prepare arranges for cmd to start in new namespaces.
func Prepare(cmd *exec.Cmd, o Options) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if o.Net {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET | unix.CLONE_NEWNS
	}
	if o.User {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
}

// Detach keeps the terminal's signals from cmd: the controller decides when an
// agent ends.
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// MountSys gives the calling process, which was started with Options.Net, a
// /sys that shows its own network namespace. A container may forbid it; nothing
// that offlab must have depends on it.
func MountSys() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("netns: make mounts private: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("netns: mount /sys: %w", err)
	}
	return nil
}

// Inode returns the number that names the network namespace of this process.
func Inode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return 0, fmt.Errorf("netns: %w", err)
	}
	return st.Ino, nil
}

// IsRoot reports whether the process may make network namespaces itself.
func IsRoot() bool { return os.Geteuid() == 0 }

// Reexec runs this program again, as root of a user namespace of its own, and
// returns its exit status. An error says that the system refuses the namespace.
func Reexec(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (int, error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := tryUser(ctx, exe); err != nil {
		return 0, err
	}
	return Options{User: true}.Run(ctx, args, in, out, errs)
}

// Run runs this program again, in new namespaces, and returns its exit status.
// An error says that it could not be started.
func (o Options) Run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (int, error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	// The terminal sends Ctrl-C to both; another signal is passed on. The child
	// gets time to put things back and to report.
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = time.Minute
	Prepare(cmd, o)
	err = cmd.Run()
	if p := cmd.ProcessState; p != nil && p.Exited() { // with an error or not, and whoever ended it
		return p.ExitCode(), nil
	}
	return 0, err
}

// tryUser reports why an unprivileged process cannot make a user and a network
// namespace of its own, nil if it can. It tries, in a child.
func tryUser(ctx context.Context, exe string) error {
	cmd := exec.CommandContext(ctx, exe, "version")
	Prepare(cmd, Options{Net: true, User: true})
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil // it was born; what it did is not the question
	}
	return err
}
