package softnic_test

import (
	"bytes"
	"testing"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// TestFrame asks a frame of each kind what it is. That TTL and hop limit tell a
// forwarded packet is a guess with the values that hosts begin with.
func TestFrame(t *testing.T) {
	inner := []pkttest.Layer{pkttest.Eth{}, pkttest.IP4{}, pkttest.TCP{}, pkttest.Payload("x")}
	for _, tt := range []struct {
		name      string
		layers    []pkttest.Layer
		forwarded bool
		tagged    bool
		tunnel    packet.Tunnel
		tcp, udp  bool
	}{
		{"tcp4", inner, false, false, packet.NoTunnel, true, false},
		{"udp6", []pkttest.Layer{pkttest.Eth{}, pkttest.IP6{}, pkttest.UDP{}, pkttest.Payload("x")}, false, false, packet.NoTunnel, false, true},
		{"forwarded4", []pkttest.Layer{pkttest.Eth{}, pkttest.IP4{TTL: 63}, pkttest.TCP{}}, true, false, packet.NoTunnel, true, false},
		{"forwarded6", []pkttest.Layer{pkttest.Eth{}, pkttest.IP6{Hops: 126}, pkttest.TCP{}}, true, false, packet.NoTunnel, true, false},
		{"ttl-255", []pkttest.Layer{pkttest.Eth{}, pkttest.IP4{TTL: 255}, pkttest.TCP{}}, false, false, packet.NoTunnel, true, false},
		{"qinq", append([]pkttest.Layer{pkttest.Eth{}, pkttest.Tag{Type: packet.EtherTypeQinQ, TCI: 7}, pkttest.Tag{TCI: 5}}, inner[1:]...), false, true, packet.NoTunnel, true, false},
		{"vxlan", append([]pkttest.Layer{pkttest.Eth{}, pkttest.IP4{}, pkttest.VXLAN{Checksum: true}}, inner...), false, false, packet.VXLAN, true, false},
		{"gre", append([]pkttest.Layer{pkttest.Eth{}, pkttest.IP6{}, pkttest.GRE{}}, inner[1:]...), false, false, packet.GRE, true, false},
	} {
		b := pkttest.Build(tt.layers...)
		f := softnic.Frame{Data: bytes.Clone(b), Count: 1}
		if f.Forwarded() != tt.forwarded || f.Tagged() != tt.tagged || f.Tunnel() != tt.tunnel || (f.TCP() != nil) != tt.tcp || (f.UDP() != nil) != tt.udp {
			t.Errorf("%s: forwarded %v, tagged %v, tunnel %v, TCP %v, UDP %v",
				tt.name, f.Forwarded(), f.Tagged(), f.Tunnel(), f.TCP() != nil, f.UDP() != nil)
		}
		f.Finish() // of what is right changes nothing
		if !bytes.Equal(f.Data, b) {
			t.Errorf("%s: Finish changed\n% x to\n% x", tt.name, b, f.Data)
		}
		for i := range f.Data { // and each part of it can be handled
			g := softnic.Frame{Data: bytes.Clone(b[:i])}
			g.Finish()
			g.Forwarded()
			g.Tagged()
			g.TCP()
			g.UDP()
		}
	}
}

// TestFinish makes a changed frame right, inside and outside of a tunnel.
func TestFinish(t *testing.T) {
	build := func(ttl byte, text string) []byte {
		return pkttest.Build(pkttest.Eth{}, pkttest.IP6{}, pkttest.VXLAN{Checksum: true},
			pkttest.Eth{}, pkttest.IP4{TTL: ttl}, pkttest.UDP{}, pkttest.Payload(text))
	}
	want := build(9, "after")
	f := softnic.Frame{Data: build(64, "first")}
	l := f.Layout()
	f.Data[l.Inner.Network+8] = 9
	copy(f.Data[l.Inner.Payload:], "after")
	f.Changed()
	f.Finish()
	if !bytes.Equal(f.Data, want) {
		t.Errorf("got\n% x, want\n% x", f.Data, want)
	}
}

// TestFourPorts joins ports in pairs, and no others.
func TestFourPorts(t *testing.T) {
	var q [4]*fakeQueue
	var ports []softnic.Port
	for i := range q {
		q[i] = newFake()
		ports = append(ports, softnic.Port{Name: string(rune('a' + i)), Format: vnet.V1, Queues: []softnic.Queue{q[i]}})
	}
	n, err := softnic.New(cfg(healthy(), softnic.Wire{}), ports)
	if err != nil {
		t.Fatal(err)
	}
	for i := range q {
		q[i].down <- append(make([]byte, 12), segment(uint32(i), numbers(100))...)
	}
	if _, err := n.Step(); err != nil {
		t.Fatal(err)
	}
	for i := range q {
		up := q[i].take()
		if len(up) != 1 || up[0][12+41] != byte(i^1) { // the last byte of the sequence number
			t.Errorf("port %d got %d packets", i, len(up))
		}
	}
}
