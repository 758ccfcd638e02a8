package tap

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// What the calls of a Queue answer with.
const (
	// ErrAgain: there is nothing to read now.
	ErrAgain Error = iota + 1
	// ErrDown: the device is down, so it takes nothing.
	ErrDown
	// ErrRefused: the kernel does not take this packet, whose headers it finds
	// wrong.
	ErrRefused
	// ErrNoMemory: the kernel has no room for it.
	ErrNoMemory
	// ErrGone: the device is gone, with its namespace for instance.
	ErrGone
	// ErrFailed: anything else.
	ErrFailed
)

// An Error is an answer that a caller has to act upon. It is a number, since it
// is part of the data path.
type Error uint8

var errorTexts = [...]string{
	ErrAgain: "nothing to read", ErrDown: "device is down", ErrRefused: "packet refused",
	ErrNoMemory: "no memory", ErrGone: "device is gone", ErrFailed: "system call failed",
}

// Error returns the answer in words.
func (e Error) Error() string {
	if int(e) < len(errorTexts) && errorTexts[e] != "" {
		return "tap: " + errorTexts[e]
	}
	return "tap: unknown error"
}

// answers classifies what read and write of a TAP fail with
// (drivers/net/tun.c, Linux 6.18), the frequent first.
var answers = []struct {
	errno  unix.Errno
	answer Error
}{
	{unix.EAGAIN, ErrAgain},
	{unix.EIO, ErrDown}, // tun_get_user: not IFF_UP
	{unix.EINVAL, ErrRefused},
	{unix.EFAULT, ErrRefused},
	{unix.EMSGSIZE, ErrRefused},
	{unix.ENOMEM, ErrNoMemory},
	{unix.ENOBUFS, ErrNoMemory},
	{unix.EBADFD, ErrGone},
	{unix.EBADF, ErrGone},
	{unix.ENODEV, ErrGone},
}

func fromErrno(e unix.Errno) Error {
	for _, a := range answers {
		if a.errno == e {
			return a.answer
		}
	}
	return ErrFailed
}

// An OpenError says why a device could not be made, and what to do.
// [errors.Is] answers fs.ErrNotExist where the system has no TUN/TAP,
// fs.ErrPermission where rights are missing.
type OpenError struct {
	Device string
	Op     string // the call that failed
	Err    error
}

// Error returns the failure and the remedy.
func (e *OpenError) Error() string {
	s := fmt.Sprintf("tap: %s: %s: %v", e.Device, e.Op, e.Err)
	if h := e.Hint(); h != "" {
		s += "\n" + h
	}
	return s
}

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// Hint says what to do about it, or nothing.
func (e *OpenError) Hint() string {
	missing := e.Op == openPath && (errors.Is(e.Err, fs.ErrNotExist) || errors.Is(e.Err, unix.ENODEV) || errors.Is(e.Err, unix.ENXIO))
	switch {
	case missing:
		return "This system has no /dev/net/tun. Load the module with 'modprobe tun'; in a container\n" +
			"give it the device, as 'docker run --device /dev/net/tun --cap-add NET_ADMIN' does."
	case errors.Is(e.Err, fs.ErrPermission):
		return "Making a TAP device takes CAP_NET_ADMIN: run it as root, or in a user namespace\n" +
			"with 'unshare -rn'. /dev/net/tun has to be readable and writable, too."
	case errors.Is(e.Err, unix.EBUSY):
		return "There is a device of that name already: choose another with --ports."
	}
	return ""
}
