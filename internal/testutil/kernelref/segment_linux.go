package kernelref

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/offlab/offlab/vnet"
)

// ErrRefused is EINVAL of the write of a super-packet.
var ErrRefused = errors.New("kernelref: the kernel refuses the virtio header")

// A Segmenter cuts super-packets with the running kernel.
//
// A frame that is sent to a TAP without offloads is segmented in software
// before it reaches the reader, within the system call that sends it: what can
// be read right afterwards is the whole result, and nothing depends on timing.
type Segmenter struct {
	in, out int
	format  vnet.Format
	buf     []byte
	msg     []byte
}

// NewSegmenter sends through a packet socket, whose header of 10 bytes knows of
// no tunnel. It must run in a network namespace of its own.
func NewSegmenter() (*Segmenter, error) {
	name := "gso" + strconv.Itoa(os.Getpid()%10000)
	s := &Segmenter{in: -1, out: -1, format: vnet.Legacy, buf: make([]byte, 1<<17)}
	var err error
	if s.out, err = OpenTAP(name, TAPOptions{}); err != nil {
		return s, err
	}
	if err = Run("ip", "link", "set", name, "mtu", "9000", "txqueuelen", "4000", "up"); err != nil {
		return s, err
	}
	s.in, err = PacketSocket(name, 0)
	return s, err
}

// NewTunnelSegmenter writes to a TAP with the header of 24 bytes, which
// describes a UDP tunnel, from which every frame is redirected to a TAP without
// offloads. It must run in a network namespace of its own.
func NewTunnelSegmenter() (*Segmenter, error) {
	id := strconv.Itoa(os.Getpid() % 10000)
	from, to := "gta"+id, "gtb"+id
	s := &Segmenter{in: -1, out: -1, format: vnet.Tunnel, buf: make([]byte, 1<<17)}
	var err error
	if s.in, err = OpenTAP(from, TAPOptions{VnetSize: vnet.Tunnel.Size}); err != nil {
		return s, err
	}
	if s.out, err = OpenTAP(to, TAPOptions{}); err != nil {
		return s, err
	}
	for _, c := range [][]string{
		{"ip", "link", "set", from, "mtu", "9000", "up"},
		{"ip", "link", "set", to, "mtu", "9000", "txqueuelen", "4000", "up"},
		{"tc", "qdisc", "add", "dev", from, "clsact"},
		{"tc", "filter", "add", "dev", from, "ingress", "protocol", "all", "u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", to},
	} {
		if err := Run(c...); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Close removes the devices.
func (s *Segmenter) Close() {
	for _, fd := range []int{s.in, s.out} {
		if fd >= 0 {
			unix.Close(fd) //nolint:errcheck // a descriptor of this process
		}
	}
}

// Segment hands the frame to the kernel and returns what it made of it, which
// is nothing if it dropped the frame. If the kernel refuses the virtio header
// the error is ErrRefused.
func (s *Segmenter) Segment(frame []byte, h vnet.Header) ([][]byte, error) {
	s.msg = append(s.msg[:0], make([]byte, s.format.Size)...)
	s.msg = append(s.msg, frame...)
	if err := s.format.Put(s.msg, h); err != nil {
		return nil, err
	}
	if _, err := unix.Write(s.in, s.msg); errors.Is(err, unix.EINVAL) {
		return nil, ErrRefused
	} else if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	var out [][]byte
	for {
		n, err := unix.Read(s.out, s.buf)
		if errors.Is(err, unix.EAGAIN) {
			return out, nil
		}
		if err != nil {
			return out, os.NewSyscallError("read", err)
		}
		out = append(out, append([]byte{}, s.buf[:n]...))
	}
}
