// Package load holds the traffic that a study measures.
//
// The bulk load moves bytes over TCP as fast as they go, in one direction. A
// [Receiver] listens, a [Sender] dials, and whoever controls both decides which
// host is which; the two share nothing but a [Spec]. Both count all the time
// and never stop the traffic to be read: a measurement is the difference of two
// snapshots, [Delta].
//
//	r, err := load.Listen(ctx, spec, addr)   // ready when it returns
//	s, err := load.Dial(ctx, spec, r.Addr()) // all streams stand, data flows
//	a := r.Snapshot(); …; b := r.Snapshot()
//	w := load.Delta(a, b)
//	s.Stop(); r.Stop()                       // take b at both ends first
//
// # What is on the wire
//
// The sender writes from user memory with plain send(2), as applications do:
// no sendfile, no MSG_ZEROCOPY, whose figures would be those of other programs.
// With Spec.Verify every byte of the payload is compared by the receiver. It
// depends on the position in the stream: each cache line of 64 bytes carries
// its own number, so that data which is lost, doubled or swapped is seen
// whatever the size of the piece (see pattern.go), counted, and located. Without
// Verify the receiver takes the data off the stream without a copy (MSG_TRUNC):
// that is the most the path can do, not what an application gets.
//
// # Surprises
//
// One worker serves all streams of an end on a machine with one CPU to give; see
// [Spec.Workers]. A worker does not block: it polls, and reads or writes a few
// times for each stream that is ready.
//
// The distribution of call sizes shows the speed of the reader and its buffer
// as much as the aggregation of packets. It supports a proof and is none.
//
// Who stops first resets the connections, and the other end then reports dead
// streams. That is why the last snapshot of a measurement is taken before any
// Stop, and why [Window.Void] speaks of nothing later.
package load
