package kernelref

import (
	"fmt"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TAPOptions configure OpenTAP.
type TAPOptions struct {
	NAPI     bool // IFF_NAPI: what is written goes through GRO
	VnetSize int  // of the virtio_net_hdr; 0 is none
	Offloads int  // TUN_F_* that the reader takes; 0 makes the kernel segment
}

// OpenTAP makes a TAP device in the network namespace of the calling thread and
// returns its descriptor, which does not block. The device is gone with it. It
// has no IPv6, so that the kernel sends nothing by itself.
func OpenTAP(name string, o TAPOptions) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("open /dev/net/tun", err)
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return -1, err
	}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if o.NAPI {
		flags |= unix.IFF_NAPI
	}
	if o.VnetSize > 0 {
		flags |= unix.IFF_VNET_HDR
	}
	req.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return -1, os.NewSyscallError("TUNSETIFF", err)
	}
	if o.VnetSize > 0 {
		if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, o.VnetSize); err != nil {
			return -1, os.NewSyscallError("TUNSETVNETHDRSZ", err)
		}
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, o.Offloads); err != nil {
		return -1, os.NewSyscallError("TUNSETOFFLOAD", err)
	}
	return fd, Run("sysctl", "-qw", "net.ipv6.conf."+name+".disable_ipv6=1")
}

// PacketSocket opens a raw packet socket with virtio_net_hdr on the interface.
// With protocol 0 it only sends.
func PacketSocket(name string, protocol uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return -1, os.NewSyscallError("PACKET_VNET_HDR", err)
	}
	for _, opt := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt, 64<<20); err != nil {
			return -1, os.NewSyscallError("setsockopt", err)
		}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return -1, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req); err != nil {
		return -1, os.NewSyscallError("SIOCGIFINDEX", err)
	}
	be := *(*uint16)(unsafe.Pointer(&[2]byte{byte(protocol >> 8), byte(protocol)}))
	addr := &unix.SockaddrLinklayer{Protocol: be, Ifindex: int(req.Uint32())}
	if err := unix.Bind(fd, addr); err != nil {
		return -1, os.NewSyscallError("bind", err)
	}
	return fd, nil
}

// Run runs a command in the namespaces of the calling thread.
func Run(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput() //nolint:noctx // ends by itself
	if err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, out)
	}
	return nil
}
