package wirecheck

import (
	"time"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
)

// Config says what a Checker has to know.
type Config struct {
	// MTU is the longest packet in bytes, without Ethernet header and tags; 0
	// means 1500. A host that announces an MSS has an MTU of that and 40 bytes
	// (60 with IPv6), at least.
	MTU int
	// Agreed is what both directions of a wire know of each other; nil is not
	// known, and leaves out what depends on the MSS.
	Agreed *Agreed
	// Fresh leaves out segments of TCP connections whose SYN was not seen: of
	// those that began before.
	Fresh bool
	// Alone looks at each frame by itself, for a Checker that is not told all of
	// them.
	Alone bool
	// VXLANPort and GenevePort are those of a packet.Parser.
	VXLANPort, GenevePort uint16
}

// A Checker looks at the frames of one direction. It is not safe for concurrent
// use.
type Checker struct {
	cfg    Config
	parser packet.Parser
	l      packet.Layout
	mtu    int
	number uint64 // frames so far
	now    time.Duration
	n      [kinds]uint64
	first  [kinds]offender
	worst  int // of Order, in segments
	flows  [flowSlots]flow
}

// An offender is the first frame of its kind.
type offender struct {
	number uint64
	text   string
	length int
	data   []byte
}

// snap is how much of an offender is kept.
const snap = 256

// minFrame is the length up to which Ethernet frames are padded, without FCS.
const minFrame = 60

// New makes a Checker.
func New(c Config) *Checker {
	if c.MTU == 0 {
		c.MTU = 1500
	}
	return &Checker{cfg: c, mtu: c.MTU, parser: packet.Parser{VXLANPort: c.VXLANPort, GenevePort: c.GenevePort}}
}

// Reset forgets everything that was seen.
func (c *Checker) Reset() {
	c.mtu, c.number, c.n, c.first, c.worst = c.cfg.MTU, 0, [kinds]uint64{}, [kinds]offender{}, 0
	clear(c.flows[:])
}

// Frame looks at the next frame, which begins with its Ethernet header and
// entered the wire at a time since any fixed instant. It is only read, and not
// kept.
func (c *Checker) Frame(at time.Duration, b []byte) {
	c.number++
	c.now = at
	err := c.parser.Parse(&c.l, b)
	l := &c.l
	f, ok := c.flow(b)
	if !ok {
		c.n[Stray]++
		return
	}
	c.longer(b)
	if err != nil {
		if c.seen(Header) {
			c.blame(Header, b, err.Error())
		}
		return
	}
	if l.Version == 0 {
		return
	}
	end, ok := c.lengths(b, &l.Stack, len(b))
	if !ok {
		return
	}
	if l.Tunnel == packet.NoTunnel {
		c.sums(b, &l.Stack, end)
	} else if !c.tunnelled(b, end) {
		return
	}
	if f != nil {
		c.tcp(b, l.Innermost(), f)
	}
}

// longer compares the frame with the MTU.
func (c *Checker) longer(b []byte) {
	head := packet.EthernetLen + int(c.l.Tags)*packet.VLANLen
	if len(b)-head > c.mtu && c.longest(b) > c.mtu {
		if c.seen(TooLong) {
			c.blame(TooLong, b, textTooLong(len(b)-head, c.mtu))
		}
	}
}

// longest is the length of what the frame carries by its own header, so that
// bytes behind a packet of full length count as trailer and not as too long.
func (c *Checker) longest(b []byte) int {
	if n := c.l.Length; n > 0 {
		return n
	}
	return len(b) - packet.EthernetLen - int(c.l.Tags)*packet.VLANLen
}

// lengths compares the length in the IP header with what is there, up to room.
// It returns the end of the packet.
func (c *Checker) lengths(b []byte, s *packet.Stack, room int) (end int, ok bool) {
	end = s.Network + s.Length
	switch {
	case end > room:
		if c.seen(Truncated) {
			c.blame(Truncated, b, textTruncated(s.Length, room-s.Network))
		}
		return 0, false
	case s.Payload > end || s.Length == 0:
		if c.seen(Header) {
			c.blame(Header, b, textHeader(s.Length))
		}
		return 0, false
	case end == room:
	case room-s.Link > minFrame:
		if c.seen(Trailer) {
			c.blame(Trailer, b, textTrailer(b[end:room]))
		}
	case !zero(b[end:room]):
		if c.seen(Padding) {
			c.blame(Padding, b, textTrailer(b[end:room]))
		}
	}
	return end, true
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// tunnelled checks both headers of a tunnel, and reports whether the inner one
// makes sense.
func (c *Checker) tunnelled(b []byte, end int) bool {
	l := &c.l
	if !headerSum(b, &l.Stack) && c.seen(SumIP) {
		c.blame(SumIP, b, textHeaderSum(b, &l.Stack))
	}
	if l.Proto == packet.ProtoUDP && l.Payload > 0 && !l.Fragment {
		if sum, ok := segmentSum(b, &l.Stack, end); !ok && c.seen(SumOuter) {
			c.blame(SumOuter, b, textSum(b, &l.Stack, end, sum))
		}
	}
	if l.Inner.Version == 0 {
		return false
	}
	in, ok := c.lengths(b, &l.Inner, end)
	if ok {
		c.sums(b, &l.Inner, in)
	}
	return ok
}

// sums checks the checksums of the innermost headers.
func (c *Checker) sums(b []byte, s *packet.Stack, end int) {
	if !headerSum(b, s) && c.seen(SumIP) {
		c.blame(SumIP, b, textHeaderSum(b, s))
	}
	sum, ok := segmentSum(b, s, end)
	if ok {
		return
	}
	kind := Sum
	if end-s.Link < minFrame {
		kind = SumShort
	}
	if c.seen(kind) {
		c.blame(kind, b, textSum(b, s, end, sum))
	}
}

func headerSum(b []byte, s *packet.Stack) bool {
	return s.Version != 4 || packet.IPv4(b[s.Network:]).ChecksumValid()
}

// segmentSum adds the TCP or UDP segment up, and reports whether its checksum is
// right or not one that can be checked.
func segmentSum(b []byte, s *packet.Stack, end int) (checksum.Partial, bool) {
	if s.Payload == 0 || s.Fragment || s.Version == 6 && packet.IPv6(b[s.Network:]).NextHeader() != s.Proto {
		return 0, true
	}
	seg := b[s.Transport:end]
	switch s.Proto {
	case packet.ProtoTCP:
	case packet.ProtoUDP:
		if packet.UDP(seg).Checksum() == 0 {
			return 0, true
		}
	default:
		return 0, true
	}
	sum := packet.Pseudo(b[s.Network:], s.Proto, len(seg)) + checksum.Sum(seg)
	return sum, sum.Fold() == 0xffff
}

// seen counts, and reports whether it is the first time.
func (c *Checker) seen(k Kind) bool {
	c.n[k]++
	return c.n[k] == 1
}

// blame keeps the frame as the first offender of its kind.
func (c *Checker) blame(k Kind, b []byte, text string) {
	c.first[k] = offender{c.number, text, len(b), append([]byte(nil), b[:min(len(b), snap)]...)}
}
