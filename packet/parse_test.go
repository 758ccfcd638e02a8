package packet_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
)

type (
	eth = pkttest.Eth
	tag = pkttest.Tag
	ip4 = pkttest.IP4
	ip6 = pkttest.IP6
	ext = pkttest.Ext
	tcp = pkttest.TCP
	udp = pkttest.UDP
	gre = pkttest.GRE
)

var data = pkttest.Payload("payload")

type stack = packet.Stack

var layouts = []struct {
	name   string
	start  packet.Start
	layers []pkttest.Layer
	want   packet.Layout
}{
	{
		name:   "ethernet-tcp4",
		layers: []pkttest.Layer{eth{}, ip4{}, tcp{}, data},
		want:   packet.Layout{Stack: stack{Network: 14, Transport: 34, Payload: 54, Length: 47, EtherType: 0x800, Version: 4, Proto: 6}},
	},
	{
		name:   "tun-udp6",
		start:  packet.StartIP,
		layers: []pkttest.Layer{ip6{}, udp{}, data},
		want:   packet.Layout{Stack: stack{Transport: 40, Payload: 48, Length: 55, EtherType: 0x86dd, Version: 6, Proto: 17}},
	},
	{
		name:   "qinq-options-timestamps",
		layers: []pkttest.Layer{eth{}, tag{Type: 0x88a8, TCI: 7}, tag{TCI: 5}, ip4{Options: make([]byte, 8)}, tcp{Options: make([]byte, 12)}, data},
		want:   packet.Layout{Stack: stack{Network: 22, Transport: 50, Payload: 82, Length: 67, EtherType: 0x800, Version: 4, Proto: 6, Tags: 2}},
	},
	{
		name:   "ipv6-extension-headers",
		layers: []pkttest.Layer{eth{}, ip6{}, ext{Words: 2}, ext{Proto: 43}, tcp{}, data},
		want:   packet.Layout{Stack: stack{Network: 14, Transport: 86, Payload: 106, Length: 99, EtherType: 0x86dd, Version: 6, Proto: 6}},
	},
	{
		name:   "ipv6-first-fragment",
		layers: []pkttest.Layer{eth{}, ip6{}, ext{Proto: 44, Fragment: 1}, tcp{}, data},
		want:   packet.Layout{Stack: stack{Network: 14, Transport: 62, Payload: 82, Length: 75, EtherType: 0x86dd, Version: 6, Proto: 6, Fragment: true}},
	},
	{
		name:   "ipv6-later-fragment",
		layers: []pkttest.Layer{eth{}, ip6{}, ext{Proto: 44, Fragment: 8}, tcp{}, data},
		want:   packet.Layout{Stack: stack{Network: 14, Length: 75, EtherType: 0x86dd, Version: 6, Proto: 6, Fragment: true}},
	},
	{
		name:   "ipv4-later-fragment",
		layers: []pkttest.Layer{eth{}, ip4{Offset: 3}, tcp{}, data},
		want:   packet.Layout{Stack: stack{Network: 14, Length: 47, EtherType: 0x800, Version: 4, Proto: 6, Fragment: true}},
	},
	{
		name:   "icmp-is-opaque",
		layers: []pkttest.Layer{eth{}, ip4{Proto: 1}, data},
		want:   packet.Layout{Stack: stack{Network: 14, Transport: 34, Payload: 34, Length: 27, EtherType: 0x800, Version: 4, Proto: 1}},
	},
	{
		name:   "vxlan",
		layers: []pkttest.Layer{eth{}, ip4{}, pkttest.VXLAN{VNI: 42}, eth{}, ip6{}, tcp{}, data},
		want: packet.Layout{
			Stack: stack{Network: 14, Transport: 34, Payload: 42, Length: 117, EtherType: 0x800, Version: 4, Proto: 17},
			Inner: stack{Link: 50, Network: 64, Transport: 104, Payload: 124, Length: 67, EtherType: 0x86dd, Version: 6, Proto: 6}, Tunnel: packet.VXLAN, TunnelAt: 42,
		},
	},
	{
		name:   "geneve-options-inner-ip",
		layers: []pkttest.Layer{eth{}, ip6{}, pkttest.Geneve{Options: make([]byte, 8)}, ip4{}, udp{}, data},
		want: packet.Layout{
			Stack: stack{Network: 14, Transport: 54, Payload: 62, Length: 99, EtherType: 0x86dd, Version: 6, Proto: 17},
			Inner: stack{Link: 78, Network: 78, Transport: 98, Payload: 106, Length: 35, EtherType: 0x800, Version: 4, Proto: 17}, Tunnel: packet.Geneve, TunnelAt: 62,
		},
	},
	{
		name:   "gre-checksum-key-bridged",
		layers: []pkttest.Layer{eth{}, ip4{}, gre{Checksum: true, HasKey: true}, eth{}, ip4{}, tcp{}, data},
		want: packet.Layout{
			Stack: stack{Network: 14, Transport: 34, Payload: 46, Length: 93, EtherType: 0x800, Version: 4, Proto: 47},
			Inner: stack{Link: 46, Network: 60, Transport: 80, Payload: 100, Length: 47, EtherType: 0x800, Version: 4, Proto: 6}, Tunnel: packet.GRE, TunnelAt: 34,
		},
	},
	{
		name:   "sit",
		start:  packet.StartIP,
		layers: []pkttest.Layer{ip4{}, ip6{}, tcp{}, data},
		want: packet.Layout{
			Stack: stack{Transport: 20, Payload: 20, Length: 87, EtherType: 0x800, Version: 4, Proto: 41},
			Inner: stack{Link: 20, Network: 20, Transport: 60, Payload: 80, Length: 67, EtherType: 0x86dd, Version: 6, Proto: 6}, Tunnel: packet.IPInIP, TunnelAt: 20,
		},
	},
	{
		name:   "only-one-level",
		start:  packet.StartIP,
		layers: []pkttest.Layer{ip4{}, ip6{}, ip4{}, tcp{}, data},
		want: packet.Layout{
			Stack: stack{Transport: 20, Payload: 20, Length: 107, EtherType: 0x800, Version: 4, Proto: 41},
			Inner: stack{Link: 20, Network: 20, Transport: 60, Payload: 60, Length: 87, EtherType: 0x86dd, Version: 6, Proto: 4}, Tunnel: packet.IPInIP, TunnelAt: 20,
		},
	},
}

func TestParse(t *testing.T) {
	for _, tt := range layouts {
		t.Run(tt.name, func(t *testing.T) {
			frame := pkttest.Build(tt.layers...)
			got, err := packet.Parse(frame, tt.start)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseTruncated cuts each frame at every length: no panic, an error
// exactly if a header is cut, and the answer of the slow parser.
func TestParseTruncated(t *testing.T) {
	for _, tt := range layouts {
		t.Run(tt.name, func(t *testing.T) {
			frame := pkttest.Build(tt.layers...)
			for n := range len(frame) {
				b := frame[:n:n]
				got, err := packet.Parse(b, tt.start)
				want, bad := slowParse(b, tt.start)
				if got != want || !sameError(err, bad) {
					t.Errorf("Parse(%d bytes) = %+v, %v, want %+v, %v", n, got, err, want, bad)
				}
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	good := func() []byte { return pkttest.Build(eth{}, ip4{}, tcp{}, data) }
	tests := []struct {
		name string
		edit func(b []byte) []byte
		want packet.ParseError
	}{
		{"empty", func(b []byte) []byte { return nil }, packet.ErrTruncated},
		{"ihl-4", func(b []byte) []byte { b[14] = 0x44; return b }, packet.ErrHeaderLength},
		{"ihl-beyond-frame", func(b []byte) []byte { b[14] = 0x4f; return b[:40] }, packet.ErrTruncated},
		{"version-5", func(b []byte) []byte { b[14] = 0x55; return b }, packet.ErrVersion},
		{"version-6-behind-0800", func(b []byte) []byte { b[14] = 0x65; return b }, packet.ErrVersion},
		{"doff-16", func(b []byte) []byte { b[46] = 0x40; return b }, packet.ErrHeaderLength},
		{"doff-beyond-frame", func(b []byte) []byte { b[46] = 0xf0; return b }, packet.ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := packet.Parse(tt.edit(good()), packet.StartEthernet)
			if !errors.Is(err, tt.want) {
				t.Errorf("Parse: %v, want %v", err, tt.want)
			}
			if err.Error() == "" {
				t.Error("no text")
			}
		})
	}
	if _, err := packet.Parse([]byte{0x10}, packet.StartIP); !errors.Is(err, packet.ErrVersion) {
		t.Errorf("Parse of version 1: %v, want %v", err, packet.ErrVersion)
	}
}

// TestParserPorts has a tunnel on a port of its own (8472 is that of flannel).
func TestParserPorts(t *testing.T) {
	frame := pkttest.Build(eth{}, ip4{}, udp{Dst: 8472}, pkttest.Payload(append([]byte{8, 7: 0}, pkttest.Build(eth{}, ip4{}, tcp{}, data)...)))
	var l packet.Layout
	if err := (packet.Parser{VXLANPort: 8472}).Parse(&l, frame); err != nil || l.Tunnel != packet.VXLAN || l.Innermost().Proto != 6 {
		t.Errorf("Parse = %+v, %v, want TCP in VXLAN", l, err)
	}
	if err := (packet.Parser{}).Parse(&l, frame); err != nil || l.Tunnel != packet.NoTunnel || l.Innermost() != &l.Stack {
		t.Errorf("Parse = %+v, %v, want plain UDP", l, err)
	}
}

// TestNotATunnel has datagrams on a tunnel's port that are none.
func TestNotATunnel(t *testing.T) {
	for _, tt := range []struct {
		name string
		port uint16
		body pkttest.Payload
	}{
		{"vxlan-short", 4789, pkttest.Payload{8, 0, 0}},
		{"vxlan-no-vni", 4789, make(pkttest.Payload, 60)},
		{"geneve-version-1", 6081, append(pkttest.Payload{0x40}, make([]byte, 60)...)},
		{"geneve-options-beyond-frame", 6081, append(pkttest.Payload{0x3f}, make([]byte, 60)...)},
		{"geneve-unknown-protocol", 6081, make(pkttest.Payload, 60)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := packet.Parse(pkttest.Build(eth{}, ip4{}, udp{Dst: tt.port}, tt.body), packet.StartEthernet)
			if err != nil || l.Tunnel != packet.NoTunnel || l.Payload != 42 {
				t.Errorf("Parse = %+v, %v, want plain UDP", l, err)
			}
		})
	}
}

func sameError(err error, want packet.ParseError) bool {
	if want == 0 {
		return err == nil
	}
	return errors.Is(err, want)
}

func TestNoAllocs(t *testing.T) {
	frame := pkttest.Build(eth{}, ip4{}, pkttest.VXLAN{}, eth{}, ip6{}, tcp{}, data)
	var l packet.Layout
	if n := testing.AllocsPerRun(100, func() {
		_ = packet.Parser{}.Parse(&l, frame)
		_ = packet.Parser{}.Parse(&l, frame[:70])
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzParse holds three laws: Parse agrees with the slow parser, field by
// field and error by error; offsets never decrease along the frame and stay
// inside it; nothing panics.
func FuzzParse(f *testing.F) {
	for _, tt := range layouts {
		f.Add(pkttest.Build(tt.layers...), tt.start == packet.StartIP)
	}
	f.Add([]byte{0x46, 0, 0, 0}, true)                                         // options announced, frame too short
	f.Add(append(make([]byte, 12), 0x81, 0, 0, 1, 0x81, 0, 0, 2, 8, 0), false) // two tags and nothing
	f.Fuzz(func(t *testing.T, b []byte, ip bool) {
		start := packet.StartEthernet
		if ip {
			start = packet.StartIP
		}
		b = slices.Clip(b)
		got, err := packet.Parse(b, start)
		want, bad := slowParse(b, start)
		if got != want || !sameError(err, bad) {
			t.Fatalf("Parse(%x) =\n%+v, %v, want\n%+v, %v", b, got, err, want, bad)
		}
		last := 0
		for _, s := range []packet.Stack{got.Stack, got.Inner} {
			for _, off := range []int{s.Link, s.Network, s.Transport, s.Payload} {
				if off == 0 {
					continue
				}
				if off < last || off > len(b) {
					t.Fatalf("Parse(%x) = %+v: offset %d after %d, frame %d", b, got, off, last, len(b))
				}
				last = off
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, tt := range layouts {
		b.Run("frame="+tt.name, func(b *testing.B) {
			frame := pkttest.Build(tt.layers...)
			p := packet.Parser{Start: tt.start}
			var l packet.Layout
			for b.Loop() {
				_ = p.Parse(&l, frame)
			}
		})
	}
}
