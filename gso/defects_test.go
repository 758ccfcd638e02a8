package gso_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// The tests of this file are faults that other engines and drivers had.

// TestZeroUDPChecksumIsOnes: wireguard-go and its forks write a checksum that
// comes out as 0 as 0, which says that there is none; with IPv6 the receiver
// drops the packet.
func TestZeroUDPChecksumIsOnes(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		p := tcp4(400, 100)
		p.udp, p.v6 = true, v6
		pkt, h, o := p.packet()
		frames, err := split(pkt, h, o)
		if err != nil {
			t.Fatal(err)
		}
		// Make the second segment sum to zero by its last two bytes.
		at := int(h.CsumStart)
		f := frames[1]
		f[len(f)-2], f[len(f)-1], f[at+6], f[at+7] = 0, 0, 0, 0
		ip := f[14:]
		c := ^pkttest.Sum(f[at:], uint32(pkttest.Pseudo(ip, 17, len(f)-at)))
		binary.BigEndian.PutUint16(p.payload[198:], c)
		pkt, h, o = p.packet()
		for name, cut := range map[string]func([]byte, vnet.Header, gso.Options) ([][]byte, error){"Split": split, "Scatter": scatter} {
			frames, err = cut(pkt, h, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := binary.BigEndian.Uint16(frames[1][at+6:]); got != 0xffff {
				t.Errorf("v6=%v %s: checksum %#04x, want 0xffff", v6, name, got)
			}
		}
	}
}

// TestECNBitIsNotUDP: with the ECN bit the type is 0x81, which wireguard-go
// takes for UDP: it overwrites part of the sequence number, and leaves CWR on
// every segment.
func TestECNBitIsNotUDP(t *testing.T) {
	p := tcp4(300, 100)
	p.ecnBit, p.tcp.Flags = true, packet.ACK|packet.CWR
	pkt, h, o := p.packet()
	got, err := split(pkt, h, o)
	if d := diff(got, p.segments()); d != "" || err != nil {
		t.Fatal(err, d)
	}
	for i, f := range got {
		if cwr := packet.TCP(f[34:]).Flags()&packet.CWR != 0; cwr != (i == 0) {
			t.Errorf("segment %d: CWR is %v", i, cwr)
		}
	}
}

// TestNo16BitArithmetic: wireguard-go multiplies segment number and size in 16
// bits, which holds up to 65535 bytes; a BIG TCP packet has more.
func TestNo16BitArithmetic(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		p := tcp4(500_000, 60_000)
		p.v6 = v6
		p.tcp.Seq = 0xffff0000
		pkt, h, o := p.packet()
		got, err := split(pkt, h, o)
		if d := diff(got, p.segments()); d != "" || err != nil {
			t.Errorf("v6=%v: %v %s", v6, err, d)
		}
		if seq := packet.TCP(got[8][h.CsumStart:]).Seq(); seq != p.tcp.Seq+480_000 {
			t.Errorf("v6=%v: sequence number %#x, want %#x", v6, seq, p.tcp.Seq+480_000)
		}
	}
}

// TestSegmentLongerThanAnIPPacket cannot be made: its length would wrap.
func TestSegmentLongerThanAnIPPacket(t *testing.T) {
	for size, want := range map[int]error{65495: nil, 65496: gso.ErrTooLong, 65534: gso.ErrTooLong} {
		p := tcp4(70_000, size)
		pkt, h, o := p.packet()
		if _, err := split(pkt, h, o); !errors.Is(err, want) {
			t.Errorf("size %d: %v, want %v", size, err, want)
		}
	}
}

// TestOneShortFrameOfALargeSize is not too long, whatever the size says.
func TestOneShortFrameOfALargeSize(t *testing.T) {
	p := tcp4(300, 65534)
	p.tunnel, p.csum = packet.VXLAN, true
	pkt, h, o := p.packet()
	got, err := split(pkt, h, o)
	if d := diff(got, p.segments()); d != "" || err != nil {
		t.Error(err, d)
	}
}

// TestBigTCP: IPv4 with a total length of 0, IPv6 with a payload length of 0,
// and with the jumbo payload option that Linux put there up to 6.x and takes
// out of each segment.
func TestBigTCP(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		p := tcp4(300_000, 1448)
		p.v6 = v6
		pkt, h, o := p.packet()
		if v6 {
			packet.IPv6(pkt[14:]).SetPayloadLen(0)
		} else {
			packet.IPv4(pkt[14:]).SetTotalLen(0)
		}
		got, err := split(pkt, h, o)
		if d := diff(got, p.segments()); d != "" || err != nil {
			t.Errorf("v6=%v: %v %s", v6, err, d)
		}
	}
	p := tcp4(300_000, 1448)
	p.v6 = true
	pkt, h, o := p.packet()
	jumbo := append(bytes.Clone(pkt[:54]), packet.ProtoTCP, 0, 0xc2, 4, 0, 4, 0x94, 0)
	jumbo = append(jumbo, pkt[54:]...)
	jumbo[14+6] = packet.ProtoHopByHop
	packet.IPv6(jumbo[14:]).SetPayloadLen(0)
	h.CsumStart += 8
	for name, cut := range map[string]func([]byte, vnet.Header, gso.Options) ([][]byte, error){"Split": split, "Scatter": scatter} {
		got, err := cut(jumbo, h, o)
		if d := diff(got, p.segments()); d != "" || err != nil {
			t.Errorf("%s, jumbo option: %v %s", name, err, d)
		}
	}
}

// TestTrailingPadding: a frame padded to the minimum of Ethernet. Linux sums
// padding with the rest, which is right for zeros; TrimPadding leaves it out.
func TestTrailingPadding(t *testing.T) {
	p := tcp4(4, 1448)
	pkt, h, o := p.packet()
	want := p.segments()
	padded := append(bytes.Clone(pkt), make([]byte, 60-len(pkt))...)
	got, err := split(padded, h, o)
	if err != nil || len(got) != 1 || !bytes.Equal(got[0], append(bytes.Clone(want[0]), 0, 0)) {
		t.Errorf("padded with zeros: %v %x, want %x", err, got, want[0])
	}
	for i := len(pkt); i < len(padded); i++ {
		padded[i] = 0xee
	}
	o.TrimPadding = true
	got, err = split(padded, h, o)
	if d := diff(got, want); d != "" || err != nil {
		t.Errorf("TrimPadding: %v %s", err, d)
	}
	p = tcp4(350, 100)
	pkt, h, o = p.packet()
	o.TrimPadding = true
	got, err = split(append(bytes.Clone(pkt), 1, 2, 3), h, o)
	if d := diff(got, p.segments()); d != "" || err != nil {
		t.Errorf("TrimPadding of a super-packet: %v %s", err, d)
	}
}

// TestGSOSetButNothingToCut must not be dropped: one frame comes out, with its
// checksum finished, with no payload at all too.
func TestGSOSetButNothingToCut(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100} {
		p := tcp4(n, 100)
		pkt, h, o := p.packet()
		got, err := split(pkt, h, o)
		want := [][]byte{p.frame(0, 0, n, false)}
		if d := diff(got, want); d != "" || err != nil {
			t.Errorf("%d bytes: %v %s", n, err, d)
		}
	}
}

// TestSmallSegments has the sizes that a peer can force with its MSS, down to
// the 48 of 8139cp's and i40e's limits and the 8 of Linux.
func TestSmallSegments(t *testing.T) {
	for size := 1; size <= 88; size++ {
		p := tcp4(1000, size)
		pkt, h, o := p.packet()
		got, err := split(pkt, h, o)
		if d := diff(got, p.segments()); d != "" || err != nil {
			t.Errorf("size %d: %v %s", size, err, d)
		}
	}
}

// TestImpossibleTypes: a gso_type with undefined or contradictory bits, as in
// the reports of skb_warn_bad_offload.
func TestImpossibleTypes(t *testing.T) {
	p := tcp4(300, 100)
	pkt, h, o := p.packet()
	for typ := range 256 {
		h.GSOType = vnet.GSOType(typ)
		if _, err := split(pkt, h, o); !h.GSOType.Valid() && !errors.Is(err, gso.ErrType) {
			t.Errorf("type %#x: %v, want %v", typ, err, gso.ErrType)
		}
	}
}

// TestInnerAlreadyAggregated: datagrams of a tunnel are cut as UDP, whatever is
// in them; and a tunnel in a tunnel is not cut by guessing.
func TestInnerAlreadyAggregated(t *testing.T) {
	inner := pkttest.Build(pkttest.Eth{}, pkttest.IP4{}, pkttest.TCP{}, pkttest.Payload(make([]byte, 1000)))
	one := append([]byte{8, 0, 0, 0, 0, 0, 42, 0}, inner...)
	payload := append(bytes.Clone(one), one...)
	pkt := pkttest.Build(pkttest.Eth{}, pkttest.IP4{ID: 7}, pkttest.UDP{Dst: 4789, Partial: true}, pkttest.Payload(payload))
	h := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOUDPL4, GSOSize: uint16(len(one)), CsumStart: 34, CsumOffset: 6}
	got, err := split(pkt, h, gso.Options{})
	want := [][]byte{
		pkttest.Build(pkttest.Eth{}, pkttest.IP4{ID: 7}, pkttest.UDP{Dst: 4789}, pkttest.Payload(one)),
		pkttest.Build(pkttest.Eth{}, pkttest.IP4{ID: 8}, pkttest.UDP{Dst: 4789}, pkttest.Payload(one)),
	}
	if d := diff(got, want); d != "" || err != nil {
		t.Errorf("two VXLAN datagrams: %v %s", err, d)
	}
	nested := pkttest.Build(pkttest.IP4{}, pkttest.IP4{}, pkttest.IP4{}, pkttest.TCP{}, pkttest.Payload(make([]byte, 1000)))
	if _, err := split(nested, vnet.Header{GSOType: vnet.GSOTCPv4, GSOSize: 100}, gso.Options{Start: packet.StartIP}); !errors.Is(err, gso.ErrProtocol) {
		t.Errorf("IP in IP in IP: %v, want %v", err, gso.ErrProtocol)
	}
}

// TestHeadersInTwoParts: whatever is split over buffers must be put together
// first; a super-packet that ends inside its headers is an error and not read
// beyond its end.
func TestHeadersInTwoParts(t *testing.T) {
	p := tcp4(300, 100)
	p.tunnel, p.csum = packet.Geneve, true
	pkt, h, o := p.packet()
	for n := range len(pkt) - 300 {
		b := bytes.Clone(pkt[:n:n])
		if got, err := split(b, h, o); err == nil {
			t.Errorf("%d bytes of headers: %d frames", n, len(got))
		}
	}
}

func TestTunnelErrors(t *testing.T) {
	base := func() ([]byte, vnet.Header, gso.Options) {
		p := tcp4(300, 100)
		p.tunnel = packet.VXLAN
		return p.packet()
	}
	for _, tt := range []struct {
		name string
		edit func(h *vnet.Header)
		want error
	}{
		{"outer-offset", func(h *vnet.Header) { h.OuterTransport += 2 }, gso.ErrTunnel},
		{"inner-before-outer", func(h *vnet.Header) { h.InnerNetwork = 20 }, gso.ErrTunnel},
		{"inner-beyond-frame", func(h *vnet.Header) { h.InnerNetwork = 60000 }, gso.ErrTunnel},
		{"inner-odd", func(h *vnet.Header) { h.InnerNetwork++ }, gso.ErrTunnel},
		{"outer-version", func(h *vnet.Header) { h.GSOType ^= vnet.GSOUDPTunnel4 | vnet.GSOUDPTunnel6 }, gso.ErrTunnel},
		{"inner-version", func(h *vnet.Header) { h.GSOType ^= vnet.GSOTCPv4 | vnet.GSOTCPv6 }, gso.ErrProtocol},
		{"csum-at-outer", func(h *vnet.Header) { h.CsumStart = 34 }, gso.ErrChecksum},
		{"inner-not-ip", func(h *vnet.Header) { h.InnerNetwork -= 4 }, gso.ErrHeader},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pkt, h, o := base()
			tt.edit(&h)
			if _, err := split(pkt, h, o); !errors.Is(err, tt.want) {
				t.Errorf("Split: %v, want %v", err, tt.want)
			}
		})
	}
	gre := pkttest.Build(pkttest.Eth{}, pkttest.IP4{}, pkttest.GRE{HasSeq: true, Seq: 9}, pkttest.IP4{}, pkttest.TCP{}, pkttest.Payload(make([]byte, 300)))
	if _, err := split(gre, vnet.Header{GSOType: vnet.GSOTCPv4, GSOSize: 100}, gso.Options{}); !errors.Is(err, gso.ErrTunnel) {
		t.Errorf("GRE with sequence number: %v, want %v", err, gso.ErrTunnel)
	}
}

func TestErrorTexts(t *testing.T) {
	seen := map[string]bool{}
	for e := gso.ErrType; e <= gso.ErrRoom; e++ {
		if s := e.Error(); s == gso.Error(0).Error() || seen[s] {
			t.Errorf("error %d has no text of its own: %q", e, s)
		} else {
			seen[s] = true
		}
	}
}

func TestNoAllocs(t *testing.T) {
	p := tcp4(45*1448, 1448)
	p.tunnel, p.csum = packet.VXLAN, true
	pkt, h, o := p.packet()
	bufs, sizes := buffers(45, 2048)
	segs, scratch := make([]gso.Segment, 45), make([]byte, 45*128)
	bad := h
	bad.GSOSize = 0
	var s gso.Splitter
	if n := testing.AllocsPerRun(20, func() {
		if _, err := gso.Split(bufs, sizes, pkt, h, o); err != nil {
			t.Error(err)
		}
		if _, err := gso.Scatter(segs, scratch, pkt, h, o); err != nil {
			t.Error(err)
		}
		_, _ = gso.Split(bufs[:3], sizes, pkt, h, o)
		_, _ = gso.Split(bufs, sizes, pkt, bad, o)
		_ = s.Reset(pkt, h, o)
		_, _ = s.Frame(bufs[0], 3)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
