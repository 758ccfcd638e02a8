package rtnl

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Causes that callers ask for with [errors.Is]. A refusal for lack of rights
// is [io/fs.ErrPermission].
var (
	// ErrUnsupported says that the driver or the kernel lacks the operation.
	ErrUnsupported = errors.ErrUnsupported
	// ErrNoDevice says that the namespace has no device of that name.
	ErrNoDevice error = unix.ENODEV
	// ErrNoRoute says that no route leads to an address.
	ErrNoRoute error = unix.ENETUNREACH
)

// An Error is an operation that failed on a device or an address.
type Error struct {
	Op     string // such as "set mtu"
	Device string // the device or address; empty for what concerns none
	Err    error  // the cause
}

func (e *Error) Error() string {
	if e.Device == "" {
		return fmt.Sprintf("link: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("link: %s of %s: %v", e.Op, e.Device, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func fail(op, dev string, err error) error {
	if err == nil {
		return nil
	}
	// The kernel answers ERANGE and EINVAL for names that no device can have.
	_, missing := errors.AsType[netlink.LinkNotFoundError](err)
	if missing {
		err = unix.ENODEV
	}
	return &Error{Op: op, Device: dev, Err: err}
}
