package gro_test

import (
	"fmt"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/packet"
)

// A forwarder reads bursts, merges what belongs together, and writes fewer and
// larger packets. The time is that of any monotonic clock; here a burst is
// flushed at its end, so it does not matter.
func ExampleEngine() {
	e, err := gro.New(gro.Options{Start: packet.StartIP, UDP: true})
	if err != nil {
		panic(err)
	}
	forward := func(burst []gro.Packet) {
		for _, out := range e.Push(0, burst...) {
			fmt.Println(out.Segments, len(out.Data), out.Header.GSOType, out.Header.GSOSize, out.Reason)
		}
		for _, out := range e.Flush(0) {
			fmt.Println(out.Segments, len(out.Data), out.Header.GSOType, out.Header.GSOSize, out.Reason)
		}
	}

	var burst []gro.Packet
	for _, b := range append(segments(3, 1000), datagrams6(2, 500)...) { // from a socket
		burst = append(burst, gro.Packet{Data: b})
	}
	forward(burst)
	// Output:
	// 3 3040 tcp4 1000 flushed
	// 2 1048 udp 500 flushed
}

// With Gather nothing is copied: the headers are the engine's, the payload that
// of the packets, as writev takes them.
func ExampleOptions_gather() {
	e, err := gro.New(gro.Options{Start: packet.StartIP, Gather: true})
	if err != nil {
		panic(err)
	}
	for _, b := range segments(3, 1000) {
		e.Push(0, gro.Packet{Data: b})
	}
	for _, out := range e.Flush(0) {
		fmt.Println(len(out.Data), "bytes of headers,", len(out.Payload), "payloads,", out.Len(), "bytes")
	}
	// Output:
	// 40 bytes of headers, 3 payloads, 3040 bytes
}
