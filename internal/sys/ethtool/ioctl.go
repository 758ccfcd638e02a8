package ethtool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stringLen is ETH_GSTRING_LEN: a name in a string set, padded with NULs.
const stringLen = 32

// String sets of the kernel (enum ethtool_stringset, linux/ethtool.h).
const (
	ssStats    = 1 // ETH_SS_STATS
	ssFeatures = 4 // ETH_SS_FEATURES
)

// ifreq is struct ifreq with its pointer arm, padded to the size of the union.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// ioctl passes buf, whose first word is the command, to the driver of a
// device, which may write its answer over it.
func (h *Handle) ioctl(dev string, buf []byte) error {
	var req ifreq
	if len(dev) >= len(req.name) || dev == "" {
		return unix.ENODEV // no device can have such a name
	}
	copy(req.name[:], dev)
	req.data = unsafe.Pointer(&buf[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(h.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	runtime.KeepAlive(buf)
	if errno != 0 {
		return errno
	}
	return nil
}

// words makes a buffer of n 32-bit words that starts with those given.
func words(n int, first ...uint32) []byte {
	buf := make([]byte, 4*n)
	for i, w := range first {
		put(buf, i, w)
	}
	return buf
}

func word(buf []byte, i int) uint32     { return binary.NativeEndian.Uint32(buf[4*i:]) }
func put(buf []byte, i int, val uint32) { binary.NativeEndian.PutUint32(buf[4*i:], val) }

// ioctlStrings reads a string set of a device.
func (h *Handle) ioctlStrings(dev string, set uint32) ([]string, error) {
	// struct ethtool_sset_info: cmd, reserved, a 64-bit mask, then one count
	// for each bit that stayed set.
	info := words(5, unix.ETHTOOL_GSSET_INFO)
	binary.NativeEndian.PutUint64(info[8:], 1<<set)
	if err := h.ioctl(dev, info); err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint64(info[8:]) == 0 {
		return nil, unix.EOPNOTSUPP // the device has no such set
	}
	n := word(info, 4)
	const most = 1 << 16 // drivers with many queues have some thousand
	if n > most {
		return nil, fmt.Errorf("string set of %d names", n)
	}
	// struct ethtool_gstrings: cmd, string_set, len, names.
	buf := append(words(3, unix.ETHTOOL_GSTRINGS, set, n), make([]byte, n*stringLen)...)
	if err := h.ioctl(dev, buf); err != nil {
		return nil, err
	}
	names := make([]string, 0, n)
	for i := range int(min(n, word(buf, 2))) {
		names = append(names, text(buf[12+i*stringLen:][:stringLen]))
	}
	return names, nil
}

// text is a C string in a field of fixed size.
func text(field []byte) string {
	b, _, _ := bytes.Cut(field, []byte{0})
	return string(bytes.TrimSpace(b))
}
