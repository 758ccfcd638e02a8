package softnic

import (
	"strings"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/unit"
)

// Offloads are what a card does for the host that sends. On a TAP each is a
// feature that ethtool -K turns off and on again, and only those that are
// offered can be on.
type Offloads uint16

// The offloads, with the features of Linux that they become.
const (
	SG         Offloads = 1 << iota // a frame may lie in pieces: tx-scatter-gather
	Checksum                        // of any protocol: tx-checksum-ip-generic
	TSO4                            // tx-tcp-segmentation
	TSO6                            // tx-tcp6-segmentation
	TSOECN                          // TSO of packets with CWR: tx-tcp-ecn-segmentation
	USO                             // tx-udp-segmentation
	TunnelTSO                       // inside VXLAN and Geneve: tx-udp_tnl-segmentation
	TunnelCsum                      // the same with an outer checksum: tx-udp_tnl-csum-segmentation

	// TSO is what a usual card has of TCP.
	TSO = TSO4 | TSO6 | TSOECN
	// AllOffloads is everything that a TAP can offer.
	AllOffloads = SG | Checksum | TSO | USO | TunnelTSO | TunnelCsum
)

var offloadNames = []string{"sg", "csum", "tso4", "tso6", "ecn", "uso", "tunnel", "tunnel-csum"}

// Has reports whether all of q are in o.
func (o Offloads) Has(q Offloads) bool { return o&q == q }

// String returns the names joined by "+", or "none".
func (o Offloads) String() string {
	var names []string
	for i, name := range offloadNames {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "+")
}

// A Model is a card with its driver: data, and at most three small hooks. The
// zero value of each field is explained where it is not plain zero.
type Model struct {
	Name   string // lower case, words joined by hyphens
	About  string // one line
	Source string // the kernel file and version, or the thread, that it follows

	// Offloads are offered to the host.
	Offloads Offloads
	// VLANOffloads are those that the driver passes on to VLAN devices on top
	// of the port (vlan_features). A TAP passes on all it has; a lab with VLAN
	// devices takes away what is not in here.
	VLANOffloads Offloads

	TX TX
	RX RX

	// Counters are the driver's names for what the stations count, in the
	// order in which ethtool -S prints them.
	Counters []CounterName

	// Hooks makes what data cannot say, for one queue of one port; nil is
	// nothing. A model needs no more than a segment hook, a receive hook and a
	// feature hook; what breaks the card belongs into a Fault.
	Hooks func(Env) Hooks
}

// TX is the sending half of a model.
type TX struct {
	// Ring is the number of descriptors; one stays free, since a full ring
	// would look like an empty one. 0 means DefaultRing.
	Ring int
	// Stop: the queue stops when fewer descriptors are free after a packet. It
	// should be what the largest packet may need. 0 means what a packet of
	// MaxSegs segments needs, a quarter of the ring at most.
	Stop int
	// Wake: the queue goes on when as many are free again; 0 means Stop.
	Wake int

	// SoftwareTSO says that the driver cuts super-packets itself, on the ring
	// (net/core/tso.c): each segment takes descriptors of its own. Otherwise
	// the card cuts, and a super-packet takes those of one packet.
	SoftwareTSO bool
	// PerPacket is the number of descriptors beside those for bytes, such as a
	// context or parsing descriptor.
	PerPacket int
	// PerHeader is the number of descriptors for the headers of a segment or
	// packet. The buffers behind them are allocated once. With 0 headers and
	// payload share descriptors.
	PerHeader int
	// PerData is how many bytes one payload descriptor takes at most; 0 means
	// DefaultPerData. A payload takes as many as it needs.
	PerData int
	// Align is the alignment, in bytes, that the card wants of a payload. What
	// lies before the next multiple is copied and takes a descriptor of its own;
	// the rest is not copied. 0 and 1 mean none.
	Align int

	// MaxSegs and MaxSize, in segments and bytes, bound the super-packets that
	// the host may hand down (tso_max_segs, tso_max_size); 0 leaves the host's
	// default.
	MaxSegs, MaxSize int
	// Bus is the rate at which descriptors and data are fetched from memory; 0
	// is no limit.
	Bus unit.Rate
}

// RX is the receiving half of a model.
type RX struct {
	// Ring is the number of frames that wait for the host at most; a further
	// one is dropped. 0 means DefaultRing.
	Ring int
	// Checksum says that the card verifies checksums, and tells the host of
	// good ones.
	Checksum bool
	// Merge aggregates what was received before the host sees it, by the
	// options that it returns for the MTU of the port: gro.LRO for a driver with
	// inet_lro, gro.Hardware for firmware. nil is a card that cannot.
	Merge func(mtu int) gro.Options
	// MergeOff says that aggregation is off until Setting "merge" turns it on.
	MergeOff bool
	// Moderation is that of a fresh device.
	Moderation Moderation
}

// Moderation says when frames that wait in the RX ring interrupt the host: when
// the oldest has waited for Usecs, or Frames are there, whichever comes first.
// The zero value interrupts at once.
type Moderation struct {
	Usecs  time.Duration //nolint:staticcheck // rx-usecs is the name that everybody knows
	Frames int           // rx-frames; 0: no bound
}

// The defaults of a model.
const (
	DefaultRing    = 512
	DefaultPerData = 16 << 10
	// Budget is how many frames one poll takes from the RX ring at most
	// (NAPI_POLL_WEIGHT).
	Budget = 64
)

// A CounterName is a driver's name for the count of a station, or of several
// together: a MAC counts what its driver never sees.
type CounterName struct {
	Driver  string    // as ethtool -S prints it
	Station Station   // what it counts
	And     []Station // together with these
}
