// Package sysctl reads and writes the net.* settings of the kernel.
//
// /proc/sys/net shows the network namespace of the thread that opens a file in
// it, so a call belongs on a thread of the right namespace: any, in a process
// that lives in one.
package sysctl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const root = "/proc/sys/"

// An Error is an operation that failed on a setting.
type Error struct {
	Op   string // "read" or "write"
	Name string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("sysctl: %s %s: %v", e.Op, e.Name, e.Err) }

// Unwrap returns the cause: [fs.ErrNotExist] for a name that the kernel does
// not have, [fs.ErrPermission] for lack of rights.
func (e *Error) Unwrap() error { return e.Err }

// ErrOutside says that a name leads out of net.
var ErrOutside = errors.New("not a setting below net")

// Read returns a setting, with single spaces between its fields: the kernel
// separates the three numbers of net.ipv4.tcp_rmem by tabs and accepts spaces.
func Read(name string) (string, error) {
	path, err := Path(name)
	if err != nil {
		return "", &Error{"read", name, err}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", &Error{"read", name, cause(err)}
	}
	return string(bytes.Join(bytes.Fields(data), []byte(" "))), nil
}

// Write changes a setting. The file is opened for writing only, never made.
func Write(name, value string) error {
	path, err := Path(name)
	if err != nil {
		return &Error{"write", name, err}
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return &Error{"write", name, cause(err)}
	}
	_, err = f.WriteString(value + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return &Error{"write", name, cause(err)}
	}
	return nil
}

// Path returns the file of a setting, named with dots or slashes. As in
// sysctl(8) the first separator decides, and the other one is then part of a
// name: net.ipv4.conf.eth0/100.forwarding is about the device eth0.100.
func Path(name string) (string, error) {
	path := name
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '.' {
		path = swap(name)
	}
	// fs.ValidPath refuses empty, "." and ".." elements and a leading slash.
	if !fs.ValidPath(path) || !strings.HasPrefix(path, "net/") || strings.ContainsRune(path, 0) {
		return "", ErrOutside
	}
	return root + path, nil
}

// Canonical returns the one spelling of a setting, with dots, as sysctl(8)
// prints it.
func Canonical(name string) (string, error) {
	path, err := Path(name)
	if err != nil {
		return "", err
	}
	return swap(strings.TrimPrefix(path, root)), nil
}

// swap exchanges dots and slashes.
func swap(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
}

// cause drops the path that the os package adds: the name says it already.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
