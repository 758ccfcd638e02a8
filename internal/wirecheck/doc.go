// Package wirecheck looks at each frame on a wire, in one direction and in
// order, and says what is wrong with it.
//
// A [Checker] is told frames and keeps, for each [Kind] of thing that can be
// wrong, how often it was seen, and the first frame with a sentence about it.
// What one frame says is checked on every frame: its length against the MTU and
// against its headers, its checksums, what lies behind the packet. What takes
// more than one frame is checked for TCP, by flow: tags, order, sizes, IDs and
// flags from one data segment to the next.
//
// # What is not an error
//
// A wire is seen behind the card: a loss before it leaves a gap, and what was
// lost comes again later. Both are counted ([Gap], [Late], [Again]) and are no
// violation by themselves. Segments are out of order only if the one that comes
// late cannot have been sent again: by its IPv4 ID, or by the time.
//
// Checks from one segment to the next are made only where the second continues
// the first, byte for byte: a segment of an old connection that comes again when
// the path has changed is none.
//
// # Limits
//
// Flows are in a table of fixed size; a flow that pushes another out of it is
// looked at afresh, and of the other what takes two frames is not noticed.
// Checksums of IP fragments, of ICMP, and behind IPv6 extension headers are not
// looked at. Nothing is allocated but for the first offender of each kind.
package wirecheck
