package softnic

import (
	"math/rand/v2"

	"github.com/offlab/offlab/gro"
)

// Hooks are functions that a card runs at its stations, for one queue of one
// port. Each is called by one goroutine only, so its closure may keep state;
// none may block, allocate per call, or keep a reference to a Frame.
//
// A nil hook is not called. A fault's hook runs behind the model's.
type Hooks struct {
	// Offer changes what the port offers to its host, before the device is made.
	Offer func(Offloads) Offloads
	// Setting changes what a setting really becomes: to return the present
	// value instead of the wanted one is a feature that cannot be turned off.
	Setting func(s Setting, present, wanted int) int
	// Merge changes how received frames are aggregated, of a card that can, before
	// it starts.
	Merge func(gro.Options) gro.Options
	// Super sees each packet that the host hands down, before it is cut:
	// Frame.Header says how, and may be changed.
	Super func(*Frame) Action
	// Segment sees each frame after segmentation, checksums included.
	Segment func(*Frame) Action
	// Wire sees each frame on the wire, in the sending port's direction. What
	// it changes is changed behind a tap's back: the tap has seen the frame.
	Wire func(*Frame) Action
	// Receive sees each frame that comes out of the RX ring, in the receiving
	// port's hooks; Frame.Valid says what the card found of its checksums, and
	// may be changed.
	Receive func(*Frame) Action
}

// Env is where hooks run.
type Env struct {
	Port  int
	Queue int // -1 for those that are asked for Offer, Setting and Merge only
	// Rand is seeded with Wire.Seed, port and queue: equal runs draw equal
	// numbers.
	Rand *rand.Rand
}

// An Action is what becomes of a frame after a hook.
type Action uint8

// The actions.
const (
	// Pass: it goes on.
	Pass Action = iota
	// Drop: it ends here, and is counted.
	Drop
	// Twice: it goes on two times.
	Twice
	// Later: it goes on behind the next frame of its super-packet; the last
	// one cannot, and passes. Only after segmentation.
	Later
	// Stick: it ends here, and its descriptors never become free. Only before
	// and after segmentation.
	Stick
)

// A Fault is one way in which a card or its driver is broken.
type Fault struct {
	Name   string // lower case, words joined by hyphens
	About  string // one line: what goes wrong
	Source string // where it was seen: thread, commit or file
	// Hooks makes what breaks, for one queue of one port. State that several
	// frames share belongs into its closure.
	Hooks func(Env) Hooks
}

// A Setting is what can be changed of a port while it runs, apart from the
// features that its device has in the kernel.
type Setting string

// The settings.
const (
	// SetMerge turns the aggregation of received frames on (1) and off (0):
	// rx-lro or rx-gro-hw.
	SetMerge Setting = "merge"
	// SetChecksum turns the verification of checksums on (1) and off (0):
	// rx-checksum.
	SetChecksum Setting = "rx-checksum"
	// SetUsecs is rx-usecs, in µs.
	SetUsecs Setting = "rx-usecs"
	// SetFrames is rx-frames.
	SetFrames Setting = "rx-frames"
)

// Settings returns all settings.
func Settings() []Setting { return []Setting{SetChecksum, SetFrames, SetMerge, SetUsecs} }
