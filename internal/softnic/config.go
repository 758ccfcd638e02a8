package softnic

import (
	"fmt"
	"time"

	"github.com/offlab/offlab/internal/sys/tap"
	"github.com/offlab/offlab/internal/unit"
	"github.com/offlab/offlab/vnet"
)

// Config describes a NIC: all that is not the hosts'.
type Config struct {
	// Cards are those of the ports, in order. The last one stands for all
	// further ports.
	Cards []Card
	// Wire is what the ports of each pair are joined by.
	Wire Wire
	// Tap gets each frame that enters a wire, in the order of its queue; nil is
	// nobody. It is called by several goroutines, one for each queue and
	// direction, must not keep the frame, and slows the card down by its time.
	Tap func(Tapped)
	// Seed is what Wire and hooks draw from.
	Seed uint64
	// Now is the time since any fixed instant, by a clock that does not go
	// back; nil is the machine's.
	Now func() time.Duration
}

// A Card is one port's.
type Card struct {
	Model  Model
	Faults []Fault
	// MTU is that of the device, in bytes; 0 means 1500. Models whose
	// aggregation depends on it take it from here.
	MTU int
}

// A Wire is what joins two ports. The zero value is a perfect one.
type Wire struct {
	// Rate is that of a line, in both directions each: a frame takes its bytes,
	// at least 60, and 24 more for preamble, gap and FCS. 0 is no limit.
	Rate unit.Rate
	// Delay is the time from one end to the other.
	Delay time.Duration
	// Loss, Dup, Reorder and Corrupt are the shares of frames, from 0 to 1,
	// that do not arrive, arrive twice, arrive behind the frame sent after
	// them, or arrive with one bit changed behind the Ethernet header.
	Loss, Dup, Reorder, Corrupt float64
	// MTU is the longest packet, in bytes without Ethernet header and VLAN
	// tags, that passes; a longer one is dropped and counted. 0 is no limit.
	MTU int
	// PassThrough hands super-packets on as they are where the receiving model
	// merges anyway and nothing between the two needs single frames: no tap, no
	// hook behind Super, none of the properties above.
	PassThrough bool
}

// A Tapped is a frame on the wire.
type Tapped struct {
	Time  time.Duration // when it entered the wire, by Config.Now
	Port  int           // which sent it
	Queue int
	Data  []byte // valid during the call
}

// A Queue is one pair of queues between a host and its port: what the host
// sends is read, what it receives is written. One goroutine uses it, except for
// Wake.
type Queue interface {
	// Read takes the next packet: virtio header and frame. It does not block:
	// ErrAgain says that there is none. A packet longer than p is cut off at
	// its end.
	Read(p []byte) (int, error)
	// Write hands one packet up; its parts, in order, are virtio header and
	// frame. The parts are free again when it returns.
	Write(parts [][]byte) error
	// Wait returns when Read may find something, unless idle is set; when
	// Wake was or has been called; or after d. A negative d is no bound.
	Wait(d time.Duration, idle bool) error
	// Wake ends the present or the next Wait.
	Wake()
}

// A Port is the host's side of a port.
type Port struct {
	Name   string      // unlike the others'
	Format vnet.Format // of the virtio headers, in both directions
	Queues []Queue     // as many as the other port of the pair has
}

// What a Queue answers with: the errors of package tap, which a fake returns as
// well.
const (
	ErrAgain    = tap.ErrAgain    // nothing to read now
	ErrDown     = tap.ErrDown     // the host's device is down
	ErrRefused  = tap.ErrRefused  // the host finds the packet's headers wrong
	ErrNoMemory = tap.ErrNoMemory // the host has no room for it
	ErrGone     = tap.ErrGone     // the host's device is gone
)

// A ConfigError names a field of the Config that is not possible.
type ConfigError struct {
	Field string
	Value any
	Want  string
}

// Error returns the complaint in words.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("softnic: %s is %v, want %s", e.Field, e.Value, e.Want)
}
