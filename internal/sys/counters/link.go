package counters

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Link reads the standard statistics of a device, as "link.rx_packets" and so
// on; the names are those of ip -s -s link and of
// Documentation/networking/statistics.rst.
func Link(device string) (Set, error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("counters: %s: %w", device, err)
	}
	s := l.Attrs().Statistics
	if s == nil {
		return Set{}, nil
	}
	return Set{
		"link.rx_packets": s.RxPackets, "link.tx_packets": s.TxPackets,
		"link.rx_bytes": s.RxBytes, "link.tx_bytes": s.TxBytes,
		"link.rx_errors": s.RxErrors, "link.tx_errors": s.TxErrors,
		"link.rx_dropped": s.RxDropped, "link.tx_dropped": s.TxDropped,
		"link.rx_crc_errors": s.RxCrcErrors, "link.rx_frame_errors": s.RxFrameErrors,
		"link.rx_length_errors": s.RxLengthErrors, "link.rx_over_errors": s.RxOverErrors,
		"link.rx_fifo_errors": s.RxFifoErrors, "link.rx_missed_errors": s.RxMissedErrors,
		"link.tx_aborted_errors": s.TxAbortedErrors, "link.tx_carrier_errors": s.TxCarrierErrors,
		"link.tx_fifo_errors": s.TxFifoErrors,
	}, nil
}
