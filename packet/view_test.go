package packet_test

import (
	"testing"

	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
)

// TestViews reads every field of frames that were built from the same values.
func TestViews(t *testing.T) {
	b := pkttest.Build(
		eth{Last: 9}, tag{TCI: 0x6123},
		ip4{TOS: 3, ID: 0xabcd, DF: true, TTL: 7, Options: []byte{1, 1, 1, 0}},
		tcp{Src: 1, Dst: 2, Seq: 0x01020304, Ack: 0x05060708, Flags: packet.PSH | packet.ACK, Window: 99, Urg: 5, Options: []byte{1, 1, 1, 1}}, data)
	l, err := packet.Parse(b, packet.StartEthernet)
	if err != nil {
		t.Fatal(err)
	}
	e, v := packet.Ethernet(b), packet.VLAN(b[14:])
	ip, tc := packet.IPv4(b[l.Network:]), packet.TCP(b[l.Transport:])
	checks := []struct {
		name      string
		got, want any
	}{
		{"Destination", e.Destination(), [6]byte{2, 0, 0, 0, 0, 9}},
		{"Source", e.Source(), [6]byte{2, 0, 0, 0, 1, 9}},
		{"EtherType", e.EtherType(), uint16(packet.EtherTypeVLAN)},
		{"TCI", v.TCI(), uint16(0x6123)},
		{"VLAN.ID", v.ID(), uint16(0x123)},
		{"VLAN.EtherType", v.EtherType(), uint16(packet.EtherTypeIPv4)},
		{"IHL", ip.HeaderLen(), 24},
		{"TOS", ip.TOS(), uint8(3)},
		{"TotalLen", ip.TotalLen(), 24 + 24 + 7},
		{"ID", ip.ID(), uint16(0xabcd)},
		{"FragmentField", ip.FragmentField(), uint16(packet.IPv4DF)},
		{"DF", ip.DF(), true},
		{"TTL", ip.TTL(), uint8(7)},
		{"Proto", ip.Proto(), uint8(packet.ProtoTCP)},
		{"IPv4.Source", ip.Source(), [4]byte{192, 0, 2, 1}},
		{"IPv4.Destination", ip.Destination(), [4]byte{192, 0, 2, 2}},
		{"Options", string(ip.Options()), "\x01\x01\x01\x00"},
		{"ChecksumValid", ip.ChecksumValid(), true},
		{"ComputeChecksum", ip.ComputeChecksum(), ip.Checksum()},
		{"SourcePort", tc.SourcePort(), uint16(1)},
		{"DestinationPort", tc.DestinationPort(), uint16(2)},
		{"Seq", tc.Seq(), uint32(0x01020304)},
		{"Ack", tc.Ack(), uint32(0x05060708)},
		{"TCP.HeaderLen", tc.HeaderLen(), 24},
		{"Flags", tc.Flags(), uint8(packet.PSH | packet.ACK)},
		{"Window", tc.Window(), uint16(99)},
		{"Urgent", tc.Urgent(), uint16(5)},
		{"TCP.Options", string(tc.Options()), "\x01\x01\x01\x01"},
		{"TCP.Checksum", tc.Checksum(), ^pkttest.Sum(zeroed(tc, 16), uint32(ip.Pseudo(6, len(tc))))},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

func zeroed(b []byte, at int) []byte {
	c := append([]byte{}, b...)
	c[at], c[at+1] = 0, 0
	return c
}

func TestViews6(t *testing.T) {
	b := pkttest.Build(ip6{Class: 0xa5, Flow: 0x12345, Hops: 9}, pkttest.Geneve{VNI: 0xabcdef, Options: make([]byte, 4), Checksum: true}, eth{}, ip4{}, gre{Checksum: true, HasKey: true, Key: 77}, ip4{}, udp{Src: 5, Dst: 6}, data)
	l, err := packet.Parse(b, packet.StartIP)
	if err != nil {
		t.Fatal(err)
	}
	ip, u, gn := packet.IPv6(b), packet.UDP(b[l.Transport:]), packet.GeneveHeader(b[l.TunnelAt:])
	g := packet.GREHeader(b[l.Inner.Transport:])
	checks := []struct {
		name      string
		got, want any
	}{
		{"TrafficClass", ip.TrafficClass(), uint8(0xa5)},
		{"FlowLabel", ip.FlowLabel(), uint32(0x12345)},
		{"PayloadLen", ip.PayloadLen(), len(b) - 40},
		{"NextHeader", ip.NextHeader(), uint8(17)},
		{"HopLimit", ip.HopLimit(), uint8(9)},
		{"Source", ip.Source(), [16]byte{0x20, 1, 0xd, 0xb8, 15: 1}},
		{"Destination", ip.Destination(), [16]byte{0x20, 1, 0xd, 0xb8, 15: 2}},
		{"Length", u.Length(), len(b) - 40},
		{"Checksum", packet.Pseudo(ip, 17, len(u)) + 0, ip.Pseudo(17, len(u))},
		{"UDP.Checksum", u.Checksum(), ^pkttest.Sum(zeroed(u, 6), uint32(pkttest.Pseudo(ip, 17, len(u))))},
		{"UDP.Ports", [2]uint16{u.SourcePort(), u.DestinationPort()}, [2]uint16{55555, 6081}},
		{"Geneve.VNI", gn.VNI(), uint32(0xabcdef)},
		{"Geneve.OAM", gn.OAM(), false},
		{"Geneve.HeaderLen", gn.HeaderLen(), 12},
		{"GRE.Key", g.Key(), uint32(77)},
		{"GRE.HeaderLen", g.HeaderLen(), 12},
		{"GRE.HasSequence", g.HasSequence(), false},
		{"GRE.HasKey", g.HasKey(), true},
		{"GRE.Checksum", g.Checksum(), ^pkttest.Sum(zeroed(g, 4), 0)},
		{"Tunnel", l.Tunnel.String(), "geneve"},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestSetters writes each field and reads it back.
func TestSetters(t *testing.T) {
	ip4b, ip6b, tc, u, g := packet.IPv4(make([]byte, 20)), packet.IPv6(make([]byte, 40)), packet.TCP(make([]byte, 20)), packet.UDP(make([]byte, 8)), packet.GREHeader(make([]byte, 8))
	ip4b.SetTotalLen(1500)
	ip4b.SetID(0xfffe)
	ip4b.SetChecksum(0x1234)
	ip6b.SetPayloadLen(1460)
	tc.SetSeq(0xfffffffe)
	tc.SetAck(3)
	tc.SetFlags(packet.FIN)
	tc.SetWindow(512)
	tc.SetChecksum(0x4321)
	u.SetLength(8)
	u.SetChecksum(0xffff)
	g.SetChecksum(0x5678)
	got := []any{ip4b.TotalLen(), ip4b.ID(), ip4b.Checksum(), ip6b.PayloadLen(), tc.Seq(), tc.Ack(), tc.Flags(), tc.Window(), tc.Checksum(), u.Length(), u.Checksum(), g.Checksum()}
	want := []any{1500, uint16(0xfffe), uint16(0x1234), 1460, uint32(0xfffffffe), uint32(3), uint8(1), uint16(512), uint16(0x4321), 8, uint16(0xffff), uint16(0x5678)}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("field %d = %v, want %v", i, got[i], want[i])
		}
	}
}
