package gro

// A Reason says why a packet or an aggregate left the engine.
type Reason uint8

// The reasons. The first group is of packets and aggregates that were held, the
// second of packets that were passed on without.
const (
	// Flushed: the caller asked with Flush, or a device's batch ended.
	Flushed Reason = iota
	// Timeout: it was held as long as Options.Hold allows.
	Timeout
	// Evicted: it was the oldest, and a new flow needed its place.
	Evicted
	// SizeLimit: the next segment would have exceeded Options.MaxSize.
	SizeLimit
	// SegmentLimit: it reached the greatest number of segments.
	SegmentLimit
	// Push: the last segment has PSH.
	Push
	// Fin: the last segment has FIN.
	Fin
	// Short: the last segment is shorter than the first.
	Short
	// Larger: the next segment is longer than the first.
	Larger
	// OutOfOrder: the next segment does not begin where this one ends.
	OutOfOrder
	// EmptySegment: the next segment of the flow has no payload.
	EmptySegment
	// AckChanged: the next segment acknowledges something else.
	AckChanged
	// WindowChanged: the next segment has another window.
	WindowChanged
	// FlagsChanged: the next segment differs in the length of the header, a
	// reserved bit or a flag other than FIN and PSH, or it has CWR.
	FlagsChanged
	// OptionsChanged: the TCP options differ, as a timestamp does when it ticks.
	OptionsChanged
	// TTLChanged: the TTL or hop limit differs.
	TTLChanged
	// TOSChanged: the type of service or traffic class differs, ECN included.
	TOSChanged
	// DFChanged: the DF bit differs.
	DFChanged
	// IDJump: the IPv4 ID neither stays nor counts up.
	IDJump
	// BadFollower: the next packet of the flow cannot be merged: its length
	// does not match its headers, or it is an aggregate of another shape.
	BadFollower

	// Unknown: not a protocol that merges.
	Unknown
	// Truncated: the packet ends inside a header.
	Truncated
	// IPOptions: the IPv4 header has options.
	IPOptions
	// Fragmented: the packet is a fragment.
	Fragmented
	// BadHeaderChecksum: the IPv4 header checksum is wrong.
	BadHeaderChecksum
	// BadChecksum: the checksum of TCP, UDP or GRE is wrong.
	BadChecksum
	// BadLength: the lengths in the headers and the bytes present differ, as
	// with Ethernet padding.
	BadLength
	// NoChecksum: a UDP datagram without checksum.
	NoChecksum
	// Nested: a tunnel inside a tunnel.
	Nested
	// TunnelHeader: a tunnel header with a version or flag that does not merge.
	TunnelHeader
	// LongHeader: more than MaxHeader bytes of headers.
	LongHeader
	// NoPayload: a segment without payload, such as a pure acknowledgment.
	NoPayload
	// Control: a segment with SYN, RST or URG.
	Control
	// LoneEnd: a segment with PSH or FIN that could not join another.
	LoneEnd
	// AlreadyMerged: an aggregate that must not be merged further.
	AlreadyMerged
	// NotEligible: the policy does not take such packets.
	NotEligible
	// NoRoom: all aggregations are in use, and the policy evicts none.
	NoRoom

	reasons // their number
)

var reasonNames = [reasons]string{
	Flushed: "flushed", Timeout: "timeout", Evicted: "evicted", SizeLimit: "size-limit",
	SegmentLimit: "segment-limit", Push: "push", Fin: "fin", Short: "short", Larger: "larger",
	OutOfOrder: "out-of-order", EmptySegment: "empty-segment", AckChanged: "ack-changed",
	WindowChanged: "window-changed", FlagsChanged: "flags-changed", OptionsChanged: "options-changed",
	TTLChanged: "ttl-changed", TOSChanged: "tos-changed", DFChanged: "df-changed", IDJump: "id-jump",
	BadFollower: "bad-follower",
	Unknown:     "unknown", Truncated: "truncated", IPOptions: "ip-options", Fragmented: "fragmented",
	BadHeaderChecksum: "bad-header-checksum", BadChecksum: "bad-checksum", BadLength: "bad-length",
	NoChecksum: "no-checksum", Nested: "nested", TunnelHeader: "tunnel-header",
	LongHeader: "long-header", NoPayload: "no-payload", Control: "control", LoneEnd: "lone-end",
	AlreadyMerged: "already-merged", NotEligible: "not-eligible", NoRoom: "no-room",
}

// String returns the name in lower case, words joined by hyphens.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return "unknown-reason"
}

// Held reports whether it is a reason of what was held, as opposed to passed.
func (r Reason) Held() bool { return r < Unknown }

// Reasons returns all reasons, in order.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}
