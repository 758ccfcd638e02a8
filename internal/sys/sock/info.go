package sock

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TCPInfo is struct tcp_info of include/uapi/linux/tcp.h, field by field, as
// of Linux 6.18. Times are in microseconds unless the kernel says otherwise
// (Last*: milliseconds). A kernel that knows fewer fields leaves the rest
// zero; [TCPInfo.Has] tells the two apart.
type TCPInfo struct {
	State, CAState, Retransmits, Probes, Backoff, Options uint8
	WScale                                                uint8 // snd_wscale and rcv_wscale, 4 bits each
	AppLimited                                            uint8 // bit 0: delivery_rate_app_limited

	RTO, ATO, SndMSS, RcvMSS                                 uint32
	Unacked, Sacked, Lost, Retrans, Fackets                  uint32
	LastDataSent, LastAckSent, LastDataRecv, LastAckRecv     uint32
	PMTU, RcvSSThresh, RTT, RTTVar                           uint32
	SndSSThresh, SndCwnd, AdvMSS, Reordering                 uint32
	RcvRTT, RcvSpace, TotalRetrans                           uint32
	PacingRate, MaxPacingRate, BytesAcked, BytesReceived     uint64
	SegsOut, SegsIn, NotsentBytes, MinRTT                    uint32
	DataSegsIn, DataSegsOut                                  uint32
	DeliveryRate, BusyTime, RwndLimited, SndbufLimited       uint64
	Delivered, DeliveredCE                                   uint32
	BytesSent, BytesRetrans                                  uint64
	DSACKDups, ReordSeen, RcvOOOPack, SndWnd, RcvWnd, Rehash uint32
	TotalRTO, TotalRTORecoveries                             uint16
	TotalRTOTime, ReceivedCE                                 uint32
	DeliveredE1Bytes, DeliveredE0Bytes, DeliveredCEBytes     uint32
	ReceivedE1Bytes, ReceivedE0Bytes, ReceivedCEBytes        uint32

	size uintptr // what the kernel has filled
}

// infoSize is the size of the kernel's part of TCPInfo.
const infoSize = unsafe.Offsetof(TCPInfo{}.size)

// Has reports whether the kernel filled the struct up to and with the field
// that ends at byte end, as in Has(unsafe.Offsetof(i.BytesSent)+8).
func (i *TCPInfo) Has(end uintptr) bool { return i.size >= end }

// Info fills i with the state of the connection (TCP_INFO). It takes the lock
// of the socket for about a microsecond.
func (s Socket) Info(i *TCPInfo) error {
	*i = TCPInfo{}
	n := uint32(infoSize)
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(i)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 {
		return os.NewSyscallError("getsockopt TCP_INFO", e)
	}
	i.size = uintptr(n)
	return nil
}
