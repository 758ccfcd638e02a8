package wirecheck

import (
	"time"

	"github.com/offlab/offlab/packet"
)

// flowSlots bounds the flows that are followed at once.
const flowSlots = 2048

// A key names one direction of a connection.
type key struct {
	src, dst [16]byte
	ports    uint32
	version  uint8
}

// hash is FNV-1a over what differs between connections.
func (k *key) hash() uint32 {
	h := uint32(2166136261)
	for i := 12; i < 16; i++ {
		h = (h ^ uint32(k.src[i])) * 16777619
		h = (h ^ uint32(k.dst[i])) * 16777619
	}
	for p := k.ports; p > 0; p >>= 8 {
		h = (h ^ p&0xff) * 16777619
	}
	return h ^ h>>15
}

// reverse returns the other direction.
func (k *key) reverse() key { return key{k.dst, k.src, k.ports<<16 | k.ports>>16, k.version} }

// keyOf reads the addresses and ports of a packet.
func keyOf(k *key, b []byte, s *packet.Stack, t packet.TCP) {
	*k = key{version: s.Version, ports: uint32(t.SourcePort())<<16 | uint32(t.DestinationPort())}
	if s.Version == 4 { // at the end, where hash looks
		copy(k.src[12:], b[s.Network+12:s.Network+16])
		copy(k.dst[12:], b[s.Network+16:s.Network+20])
		return
	}
	copy(k.src[:], b[s.Network+8:])
	copy(k.dst[:], b[s.Network+24:])
}

// A flow is one direction of a connection.
type flow struct {
	key     key
	frames  uint32 // data segments so far
	next    uint32 // behind the highest byte so far
	fin     uint32 // behind the FIN
	holes   [4]hole
	own     int // the MSS that this end announced; 0: not seen
	mss     int // that it has to obey; 0: not known
	last    segment
	same    int // segments in a row of the size of the last, below the MSS
	sameID  int // segments in a row with the ID of the last
	begun   bool
	ended   bool // a FIN was seen
	asked   bool // for the MSS
	classic bool // ECN of RFC 3168 was asked for, rather than AccECN
}

// A hole is data that is missing.
type hole struct {
	from, to uint32
	frame    uint32 // of the flow, when it opened
	at       time.Duration
}

// A segment that comes behind one that follows it has changed places with it,
// or was lost before the wire and is sent again. Of IPv4, which counts its IDs
// up in the order in which packets are made, the ID tells: one that is sent
// again has a new one. Otherwise it is the time, as long as no sender could know
// of a loss; frames that leave a card in one go are told that way only.
const (
	swiftFrames = 64
	swiftTime   = 50 * time.Microsecond
)

// A segment is what the next one is compared with.
type segment struct {
	size   int
	id     uint16
	tags   uint8
	ttl    uint8
	dscp   uint8
	psh    bool
	cwr    bool
	header int
}

// flow returns that of a TCP segment, nil for what is none, and false if the
// segment is not to be looked at.
func (c *Checker) flow(b []byte) (*flow, bool) {
	s := c.l.Innermost()
	if s.Proto != packet.ProtoTCP || s.Payload == 0 || s.Fragment {
		return nil, true
	}
	t := packet.TCP(b[s.Transport:])
	var k key
	keyOf(&k, b, s, t)
	f := &c.flows[k.hash()%flowSlots]
	syn := t.Flags()&packet.SYN != 0
	switch {
	case syn:
		*f = flow{key: k}
	case f.key == k:
	case c.cfg.Fresh:
		return nil, false
	default:
		*f = flow{key: k}
	}
	return f, true
}

// tcp follows the flow of a TCP segment.
func (c *Checker) tcp(b []byte, s *packet.Stack, f *flow) {
	t := packet.TCP(b[s.Transport:])
	size := s.Network + s.Length - s.Payload
	flags := t.Flags()
	if flags&packet.SYN != 0 {
		c.syn(f, s, t)
		return
	}
	if c.cfg.Alone {
		return
	}
	seq := t.Seq()
	if size > 0 {
		c.data(b, s, f, seq)
	}
	if flags&packet.FIN != 0 && !f.ended {
		f.ended, f.fin = true, seq+uint32(size) //nolint:gosec // of a packet
	}
}

// syn notes what the end of a flow announces of itself.
func (c *Checker) syn(f *flow, s *packet.Stack, t packet.TCP) {
	head, least := 40, 536 // RFC 9293 section 3.7.1
	if s.Version == 6 {
		head, least = 60, 1220
	}
	f.own = least
	if n := announced(t.Options()); n > 0 {
		f.own = n
		if c.l.Tunnel == packet.NoTunnel {
			c.mtu = max(c.mtu, n+head)
		}
	}
	other := f.key.reverse()
	c.cfg.Agreed.put(&other, f.own)
	f.begun, f.next = true, t.Seq()+1
	// AE, CWR and ECE: 011 asks for classic ECN and 111 for AccECN; 001 accepts
	// the classic one (RFC 3168 section 6.1.1).
	ae, ecn := t[12]&1, t.Flags()&(packet.CWR|packet.ECE)
	f.classic = ae == 0 && (t.Flags()&packet.ACK == 0 && ecn == packet.CWR|packet.ECE || t.Flags()&packet.ACK != 0 && ecn == packet.ECE)
}

// announced returns the MSS option, or 0.
func announced(opts []byte) int {
	for len(opts) > 0 && opts[0] != 0 {
		if opts[0] == 1 {
			opts = opts[1:]
			continue
		}
		if len(opts) < 2 || opts[1] < 2 || int(opts[1]) > len(opts) {
			return 0
		}
		if opts[0] == 2 && opts[1] == 4 {
			return int(opts[2])<<8 | int(opts[3])
		}
		opts = opts[opts[1]:]
	}
	return 0
}

// data compares a data segment with what came before it in its flow.
func (c *Checker) data(b []byte, s *packet.Stack, f *flow, seq uint32) {
	c.n[Data]++
	f.frames++
	this := read(b, s)
	if this.psh {
		c.n[Psh]++
	}
	c.sizes(b, f, &this)
	end := seq + uint32(this.size) //nolint:gosec // of a packet
	if f.ended && ahead(end, f.fin) > 0 && c.seen(Fin) {
		c.blame(Fin, b, textFin(ahead(end, f.fin)))
	}
	if !f.begun {
		f.begun, f.next, f.last = true, end, this
		return
	}
	switch d := ahead(seq, f.next); {
	case d == 0:
		c.follows(b, f, &this)
		f.next, f.last = end, this
	case d > 0:
		c.n[Gap]++
		f.open(hole{f.next, seq, f.frames, c.now})
		f.next, f.last, f.same, f.sameID = end, this, 0, 0
	case ahead(end, f.next) > 0:
		if c.seen(Overlap) {
			c.blame(Overlap, b, textOverlap(-d))
		}
		f.next, f.last, f.same, f.sameID = end, this, 0, 0
	default:
		c.behind(b, f, &this, seq)
	}
}

// ahead is how far a is ahead of b, modulo 2^32.
func ahead(a, b uint32) int { return int(int32(a - b)) } //nolint:gosec // the circle of sequence numbers

func read(b []byte, s *packet.Stack) segment {
	t := packet.TCP(b[s.Transport:])
	flags := t.Flags()
	this := segment{
		size: s.Network + s.Length - s.Payload, tags: s.Tags, header: t.HeaderLen(),
		psh: flags&packet.PSH != 0, cwr: flags&packet.CWR != 0,
	}
	if s.Version == 4 {
		ip := packet.IPv4(b[s.Network:])
		this.id, this.ttl, this.dscp = ip.ID(), ip.TTL(), ip.TOS()>>2
	} else {
		ip := packet.IPv6(b[s.Network:])
		this.ttl, this.dscp = ip.HopLimit(), ip.TrafficClass()>>2
	}
	return this
}

// sizes compares the segment with the MSS that the other end has announced,
// which counts the options as well (RFC 6691).
func (c *Checker) sizes(b []byte, f *flow, this *segment) {
	if !f.asked {
		f.asked, f.mss = true, c.cfg.Agreed.get(&f.key)
	}
	n := this.size + this.header - packet.TCPMinLen
	if f.mss > 0 && n > f.mss && this.size <= c.mtu && c.seen(Big) { // a longer one is TooLong
		c.blame(Big, b, textBig(this.size, f.mss-n+this.size))
	}
}

// follows compares a segment with the one that it continues.
func (c *Checker) follows(b []byte, f *flow, this *segment) {
	last := &f.last
	if last.size == 0 { // the first behind the SYN
		return
	}
	if this.tags < last.tags && c.seen(Tag) {
		c.blame(Tag, b, textTags(last.tags, this.tags))
	}
	if this.ttl != last.ttl && c.seen(TTL) {
		c.blame(TTL, b, textChange(last.ttl, this.ttl))
	}
	if this.dscp != last.dscp && c.seen(DSCP) {
		c.blame(DSCP, b, textChange(last.dscp, this.dscp))
	}
	if f.classic && this.cwr && last.cwr && c.seen(Cwr) {
		c.blame(Cwr, b, "CWR, as on the segment before")
	}
	f.sameID = run(f.sameID, this.id == last.id && this.id != 0)
	if f.sameID >= 2 && c.seen(SameID) {
		c.blame(SameID, b, textID(this.id, f.sameID+1))
	}
	limit := 0
	if f.own > leastMSS {
		limit = min(f.own, f.mss) - this.header + packet.TCPMinLen
	}
	f.same = run(f.same, this.size == last.size && !last.psh && this.size < limit)
	if f.same >= 2 && c.seen(Small) {
		c.blame(Small, b, textSmall(this.size, limit, f.same+1))
	}
	if this.tags < last.tags { // the next is compared with the tagged one again
		this.tags = last.tags
	}
}

// leastMSS is what a host may announce whatever its MTU (RFC 9293 section 3.7.1;
// Linux: 256, net.ipv4.route.min_adv_mss), so that it does not tell of the MTU.
const leastMSS = 536

// run counts how often in a row.
func run(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

// open notes that data is missing, in place of the hole that is oldest.
func (f *flow) open(h hole) {
	copy(f.holes[1:], f.holes[:])
	f.holes[0] = h
}

// behind looks at a segment of which the flow is past: it fills a hole, soon or
// late, or was seen before.
func (c *Checker) behind(b []byte, f *flow, this *segment, seq uint32) {
	end := seq + uint32(this.size) //nolint:gosec // of a packet
	for i := range f.holes {
		h := &f.holes[i]
		if h.from == h.to || ahead(seq, h.from) < 0 || ahead(end, h.to) > 0 {
			continue
		}
		h.from = end
		if !c.swapped(f, h, this) {
			c.n[Late]++
			return
		}
		if h.from == h.to {
			c.n[Gap]--
		}
		past := ahead(f.next, end)
		distance := (past + this.size - 1) / this.size
		c.worst = max(c.worst, distance)
		if c.seen(Order) {
			c.blame(Order, b, textOrder(distance, past))
		}
		return
	}
	c.n[Again]++
}

// swapped reports whether a segment that fills a hole is not one that was sent
// again.
func (c *Checker) swapped(f *flow, h *hole, this *segment) bool {
	if this.id != 0 && this.id != f.last.id {
		return f.frames-h.frame <= swiftFrames && int16(this.id-f.last.id) < 0 //nolint:gosec // a circle
	}
	return c.now-h.at <= swiftTime
}
