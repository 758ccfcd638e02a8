package softnic

import "fmt"

// A Station is a place where packets, frames or events are counted. Its name is
// the same on every model.
type Station uint8

// The stations, in the order in which a packet meets them. Those of the wire
// and of transmission belong to the sending port.
const (
	TXPackets   Station = iota // handed down by the host
	TXBytes                    // the same in bytes
	TXSuper                    // those with more than one segment
	TXGarbage                  // dropped: a header or frame that makes no sense
	TXFault                    // packets that a hook before segmentation ended
	TXNoRoom                   // dropped: needs more descriptors than are free
	TXAgain                    // packets that a hook before segmentation doubled
	TXTaken                    // packets that were put on the ring
	TXStuck                    // frames whose descriptors never come back
	TXFrames                   // frames made of the rest
	TXExtra                    // frames that a hook after segmentation added
	TXLost                     // frames that one ended
	TXCopied                   // bytes copied for the sake of alignment
	TXStops                    // the queue was stopped
	TXWakes                    // and went on
	TXPending                  // now in the ring
	WireFrames                 // left the ring
	WireBytes                  // the same in bytes
	WireLost                   // lost on the wire
	WireTooLong                // dropped: longer than the wire's MTU
	WireFull                   // dropped: too many frames on the wire
	WireFault                  // ended by a hook
	WireExtra                  // duplicates
	WireCorrupt                // with a changed bit
	WireReorder                // overtaken by the next
	WireFlight                 // now on the wire
	RXFrames                   // arrived
	RXBytes                    // the same in bytes
	RXNoBuffer                 // dropped: the RX ring was full
	RXPending                  // now in the ring
	RXInterrupt                // the host was interrupted
	RXPolls                    // polls of the ring
	RXFault                    // ended by a hook
	RXExtra                    // added by one
	RXGood                     // checksums found right
	RXBad                      // a checksum found wrong
	RXUnknown                  // nothing the card could verify
	RXHeld                     // now held for aggregation
	RXMerged                   // frames that are part of an aggregate
	RXSuper                    // aggregates
	RXPackets                  // handed up to the host
	RXUp                       // frames in them
	RXUpBytes                  // bytes in them
	RXRefused                  // frames in packets that the host refused
	RXDown                     // frames in packets while the host's device was down
	RXNoMemory                 // frames in packets that the host had no memory for

	stations // their number
)

var stationNames = [stations]string{
	TXPackets: "tx_packets", TXBytes: "tx_bytes", TXSuper: "tx_super", TXGarbage: "tx_garbage",
	TXFault: "tx_fault", TXNoRoom: "tx_no_room", TXAgain: "tx_again",
	TXTaken: "tx_taken", TXStuck: "tx_stuck", TXFrames: "tx_frames",
	TXExtra: "tx_extra", TXLost: "tx_lost", TXCopied: "tx_copied_bytes", TXStops: "tx_stops",
	TXWakes: "tx_wakes", TXPending: "tx_pending",
	WireFrames: "wire_frames", WireBytes: "wire_bytes", WireLost: "wire_lost",
	WireTooLong: "wire_too_long", WireFull: "wire_full", WireFault: "wire_fault",
	WireExtra: "wire_extra", WireCorrupt: "wire_corrupt", WireReorder: "wire_reorder",
	WireFlight: "wire_flight",
	RXFrames:   "rx_frames", RXBytes: "rx_bytes", RXNoBuffer: "rx_no_buffer", RXPending: "rx_pending",
	RXInterrupt: "rx_interrupts", RXPolls: "rx_polls", RXFault: "rx_fault", RXExtra: "rx_extra",
	RXGood: "rx_csum_good", RXBad: "rx_csum_bad", RXUnknown: "rx_csum_unknown", RXHeld: "rx_held",
	RXMerged: "rx_merged", RXSuper: "rx_super", RXPackets: "rx_packets", RXUp: "rx_up_frames",
	RXUpBytes: "rx_up_bytes", RXRefused: "rx_refused", RXDown: "rx_down",
	RXNoMemory: "rx_no_memory",
}

// String returns the name in lower case, words joined by underscores.
func (s Station) String() string {
	if s < stations {
		return stationNames[s]
	}
	return "unknown"
}

// Stations returns all stations in order.
func Stations() []Station {
	all := make([]Station, stations)
	for i := range all {
		all[i] = Station(i)
	}
	return all
}

// Gauge reports whether the number goes down as well: what is somewhere now.
func (s Station) Gauge() bool {
	return s == TXPending || s == WireFlight || s == RXPending || s == RXHeld
}

// Counts are the counts of one port, or of one direction of a pair.
type Counts [stations]uint64

// A law is an equation between stations: what goes in comes out, is lost with a
// reason, or is still there.
type law struct {
	name    string
	in, out []Station
}

// The laws of one direction: the transmission stations of one port and the
// receive stations of the other. Each holds after every step of a lane.
var laws = []law{
	{"transmit", []Station{TXPackets, TXAgain}, []Station{TXGarbage, TXFault, TXNoRoom, TXTaken}},
	{"ring", []Station{TXFrames, TXExtra}, []Station{TXLost, TXStuck, TXPending, WireFrames}},
	{
		"wire",
		[]Station{WireFrames, WireExtra},
		[]Station{WireLost, WireTooLong, WireFull, WireFault, WireFlight, RXFrames, RXNoBuffer},
	},
	{"receive", []Station{RXFrames, RXExtra}, []Station{RXPending, RXFault, RXGood, RXBad, RXUnknown}},
	{"hand-up", []Station{RXGood, RXBad, RXUnknown}, []Station{RXHeld, RXUp, RXRefused, RXDown, RXNoMemory}},
}

// A BalanceError says that frames were lost without a counter, or counted
// twice.
type BalanceError struct {
	Law     string
	In, Out uint64
}

// Error returns the complaint in words.
func (e *BalanceError) Error() string {
	return fmt.Sprintf("softnic: %s does not balance: %d in, %d out", e.Law, e.In, e.Out)
}

// Balance checks that of one direction nothing was lost without a counter:
// the transmission and wire counts of sent, the receive counts of received.
func Balance(sent, received Counts) error {
	for s := RXFrames; s < stations; s++ {
		sent[s] = received[s]
	}
	for _, l := range laws {
		in, out := sum(&sent, l.in), sum(&sent, l.out)
		if in != out {
			return &BalanceError{l.name, in, out}
		}
	}
	return nil
}

func sum(c *Counts, list []Station) (n uint64) {
	for _, s := range list {
		n += c[s]
	}
	return n
}
