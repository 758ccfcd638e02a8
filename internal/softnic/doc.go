// Package softnic is a network card in user space: real TCP stacks on both
// sides, and between them a card whose every part can be looked at, limited and
// broken on purpose.
//
// A [NIC] joins ports in pairs: the frames that the host of one port sends
// reach the host of the other. What lies between is described by data:
//
//	host ─ TX ring ─ segmentation ─ wire ─ RX ring ─ aggregation ─ host
//
// A [Model] is a card and its driver: which offloads it offers, how its rings
// count descriptors, how it merges what it receives. A [Wire] has a rate, a
// delay and faults with a seed. A [Fault] breaks one thing at one station, on
// any model.
//
// # Truth
//
// A super-packet is cut into frames before it enters the wire, each with its
// headers, lengths and checksums, whether or not anybody looks: what a
// [Config.Tap] sees is what would be on a cable. Only [Wire.PassThrough] gives
// that up, for speed, and only where nobody could tell the difference.
//
// # Stations
//
// Each packet is counted at each [Station] it passes, and what is lost is
// counted where it is lost: see [NIC.Counters] and [Balance]. A driver shows
// the same numbers by its own names: [Model.Counters].
//
// # Memory and time
//
// After a warm-up nothing is allocated. A lane, which is one queue in one
// direction, is one goroutine: it reads a batch of packets, carries them
// through all stations and writes what comes out, so there are no locks between
// stations, and time (rate, delay, interrupt moderation) is computed, not slept.
// Where a wait is due the lane waits for the host and the next instant at once.
package softnic
