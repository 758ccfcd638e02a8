package ethtool

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Causes that callers ask for with [errors.Is]. A refusal for lack of rights
// is [io/fs.ErrPermission].
var (
	// ErrUnsupported says that the driver or the kernel lacks the operation.
	ErrUnsupported = errors.ErrUnsupported
	// ErrNoDevice says that the namespace has no device of that name.
	ErrNoDevice error = unix.ENODEV
)

// An Error is an operation that failed on a device.
type Error struct {
	Op     string // such as "get features"
	Device string // empty for what concerns no device
	Err    error  // the cause
}

func (e *Error) Error() string {
	if e.Device == "" {
		return fmt.Sprintf("ethtool: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("ethtool: %s of %s: %v", e.Op, e.Device, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail wraps a cause. Netlink's wording ("netlink receive: …") is dropped for
// the kernel's own message, where there is one.
func fail(op, dev string, err error) error {
	if err == nil {
		return nil
	}
	if nl, ok := errors.AsType[*netlink.OpError](err); ok {
		err = nl.Err
		if nl.Message != "" {
			err = fmt.Errorf("%s: %w", nl.Message, nl.Err)
		}
	}
	return &Error{Op: op, Device: dev, Err: err}
}
