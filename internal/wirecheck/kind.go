package wirecheck

import "fmt"

// A Kind is what a frame, or one frame after another, can show.
type Kind uint8

// The kinds.
const (
	// Header: the headers end early, or claim impossible lengths.
	Header Kind = iota
	// TooLong: the packet is longer than the MTU.
	TooLong
	// Truncated: the IP header claims more bytes than there are.
	Truncated
	// Trailer: bytes behind the packet that no minimum length explains.
	Trailer
	// Padding: bytes that fill up to the minimum length and are not 0. Nothing
	// forbids them, so that they are no violation, but they may be a leak.
	Padding
	// SumIP: the checksum of an IPv4 header is wrong.
	SumIP
	// Sum: the checksum of TCP or UDP is wrong.
	Sum
	// SumShort: the same in a packet that had to be padded.
	SumShort
	// SumOuter: the checksum of the UDP header of a tunnel is wrong.
	SumOuter
	// Tag: a data segment lacks a VLAN tag that the one before it has.
	Tag
	// TTL: the TTL or hop limit changes from one data segment to the next.
	TTL
	// DSCP: the same of the six bits of the DSCP.
	DSCP
	// Order: a segment comes behind one that follows it.
	Order
	// Overlap: a segment has data of before and data that is new.
	Overlap
	// Big: a segment is larger than the MSS that the other end announced.
	Big
	// Small: three segments in a row of one size below the MSS, and no PSH.
	Small
	// SameID: three data segments in a row with one IPv4 ID.
	SameID
	// Fin: data behind a FIN.
	Fin
	// Cwr: CWR on a segment right behind one that had it (RFC 3168).
	Cwr
	// Gap: data that the wire did not see, or not yet.
	Gap
	// Late: a segment that fills a gap when its sender has noticed the loss.
	Late
	// Again: a segment that was seen before.
	Again
	// Data: a TCP segment with data.
	Data
	// Psh: such a segment with PSH.
	Psh
	// Stray: a TCP segment of a connection that is not looked at.
	Stray

	kinds // their number
)

// table describes the kinds.
var table = [kinds]struct {
	name  string
	title string
	wrong bool
}{
	Header:    {"header", "headers that make no sense", true},
	TooLong:   {"too_long", "frames longer than the MTU", true},
	Truncated: {"truncated", "packets longer than their frame", true},
	Trailer:   {"trailer", "trailer bytes after the packet", true},
	Padding:   {"padding", "padding that is not zero", false},
	SumIP:     {"csum_ip", "IPv4 header checksum bad", true},
	Sum:       {"csum", "checksum bad", true},
	SumShort:  {"csum_short", "checksum bad below 60 bytes", true},
	SumOuter:  {"csum_outer", "outer UDP checksum bad", true},
	Tag:       {"tag", "tag missing on segments 2...n", true},
	TTL:       {"ttl", "TTL changes inside a flow", true},
	DSCP:      {"dscp", "DSCP changes inside a flow", true},
	Order:     {"order", "segments out of order", true},
	Overlap:   {"overlap", "segments overlap", true},
	Big:       {"big", "segments larger than the MSS", true},
	Small:     {"small", "segments smaller than the MSS", true},
	SameID:    {"same_id", "IPv4 ID constant", true},
	Fin:       {"fin", "data behind a FIN", true},
	Cwr:       {"cwr", "CWR repeated", true},
	Gap:       {"gap", "gaps", false},
	Late:      {"late", "gaps filled late", false},
	Again:     {"again", "segments sent again", false},
	Data:      {"data", "data segments", false},
	Psh:       {"psh", "data segments with PSH", false},
	Stray:     {"stray", "segments of other connections", false},
}

// String returns the short name, in lower case with underscores.
func (k Kind) String() string {
	if k < kinds {
		return table[k].name
	}
	return "unknown"
}

// Title says what is wrong, in words that the count and an example can follow.
func (k Kind) Title() string {
	if k < kinds {
		return table[k].title
	}
	return "unknown"
}

// Wrong reports whether a sound card never shows it. The others are counts,
// which say something beside others only.
func (k Kind) Wrong() bool { return k < kinds && table[k].wrong }

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// MarshalText returns the short name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the short name.
func (k *Kind) UnmarshalText(b []byte) error {
	for i := range table {
		if table[i].name == string(b) {
			*k = Kind(i) //nolint:gosec // a place in the table
			return nil
		}
	}
	return fmt.Errorf("wirecheck: no kind is called %q", b)
}
