package gro_test

import (
	"fmt"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// TestTunnelIdentity says which differences between the outer headers of two
// packets keep the inner ones from merging, also where the running kernel cannot
// tell: Geneve and VLAN need modules that it may lack. (Geneve, VLAN and QinQ
// were compared with 6.18.12 and 7.2.13 in virtual machines, 2026-11.)
func TestTunnelIdentity(t *testing.T) {
	type pair struct {
		name  string
		a, b  []pkttest.Layer // before the inner IP header
		merge bool
	}
	eth, ip, ip6 := pkttest.Eth{}, pkttest.IP4{DF: true, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}, pkttest.IP6{}
	same := func(name string, l ...pkttest.Layer) pair { return pair{name, l, l, true} }
	opts := []byte{1, 2, 3, 0, 9, 9, 9, 9}
	pairs := []pair{
		same("tag", eth, pkttest.Tag{TCI: 5}),
		same("qinq", eth, pkttest.Tag{Type: 0x88a8, TCI: 7}, pkttest.Tag{TCI: 5}),
		{"tag-tci", []pkttest.Layer{eth, pkttest.Tag{TCI: 5}}, []pkttest.Layer{eth, pkttest.Tag{TCI: 6}}, false},
		{"tag-priority", []pkttest.Layer{eth, pkttest.Tag{TCI: 5}}, []pkttest.Layer{eth, pkttest.Tag{TCI: 5 | 1<<13}}, false},
		{"tag-type", []pkttest.Layer{eth, pkttest.Tag{TCI: 5}}, []pkttest.Layer{eth, pkttest.Tag{Type: 0x88a8, TCI: 5}}, false},
		same("vxlan", eth, ip, pkttest.VXLAN{VNI: 7}, eth),
		same("vxlan-checksum", eth, ip6, pkttest.VXLAN{VNI: 7, Checksum: true}, eth),
		same("vxlan-inner-tag", eth, ip, pkttest.VXLAN{VNI: 7}, eth, pkttest.Tag{TCI: 5}),
		{"vxlan-vni", []pkttest.Layer{eth, ip, pkttest.VXLAN{VNI: 7}, eth}, []pkttest.Layer{eth, ip, pkttest.VXLAN{VNI: 8}, eth}, false},
		{"vxlan-inner-mac", []pkttest.Layer{eth, ip, pkttest.VXLAN{VNI: 7}, eth}, []pkttest.Layer{eth, ip, pkttest.VXLAN{VNI: 7}, pkttest.Eth{Last: 1}}, false},
		{"vxlan-checksum-or-not", []pkttest.Layer{eth, ip, pkttest.VXLAN{VNI: 7}, eth}, []pkttest.Layer{eth, ip, pkttest.VXLAN{VNI: 7, Checksum: true}, eth}, false},
		{"vxlan-outer-address", []pkttest.Layer{eth, ip, pkttest.VXLAN{}, eth}, []pkttest.Layer{eth, pkttest.IP4{DF: true}, pkttest.VXLAN{}, eth}, false},
		same("geneve", eth, ip, pkttest.Geneve{VNI: 7, Options: opts}, eth),
		same("geneve-checksum", eth, ip6, pkttest.Geneve{VNI: 7, Checksum: true}, eth),
		{"geneve-option", []pkttest.Layer{eth, ip, pkttest.Geneve{Options: opts}, eth}, []pkttest.Layer{eth, ip, pkttest.Geneve{Options: append([]byte{8}, opts[1:]...)}, eth}, false},
		{"geneve-option-length", []pkttest.Layer{eth, ip, pkttest.Geneve{Options: opts}, eth}, []pkttest.Layer{eth, ip, pkttest.Geneve{Options: opts[:4]}, eth}, false},
		{"geneve-vni", []pkttest.Layer{eth, ip, pkttest.Geneve{VNI: 1}, eth}, []pkttest.Layer{eth, ip, pkttest.Geneve{VNI: 2}, eth}, false},
		same("gre", eth, ip, pkttest.GRE{}),
		same("gre-checksum", eth, ip, pkttest.GRE{Checksum: true}),
		same("gre-key", eth, ip6, pkttest.GRE{HasKey: true, Key: 7}),
		same("gre-ethernet", eth, ip, pkttest.GRE{}, eth),
		{"gre-other-key", []pkttest.Layer{eth, ip, pkttest.GRE{HasKey: true, Key: 7}}, []pkttest.Layer{eth, ip, pkttest.GRE{HasKey: true, Key: 8}}, false},
		{"gre-key-or-not", []pkttest.Layer{eth, ip, pkttest.GRE{HasKey: true}}, []pkttest.Layer{eth, ip, pkttest.GRE{}}, false},
		same("gre-key-and-checksum", eth, ip, pkttest.GRE{Checksum: true, HasKey: true, Key: 7}),
		{"gre-sequence", []pkttest.Layer{eth, ip, pkttest.GRE{HasSeq: true}}, []pkttest.Layer{eth, ip, pkttest.GRE{HasSeq: true}}, false},
		same("ipip", eth, ip),
		same("4in6", eth, ip6),
		{"nested", []pkttest.Layer{eth, ip, ip}, []pkttest.Layer{eth, ip, ip}, false},
		{"nested-vxlan", []pkttest.Layer{eth, ip, pkttest.VXLAN{}, eth, ip, pkttest.VXLAN{}, eth}, []pkttest.Layer{eth, ip, pkttest.VXLAN{}, eth, ip, pkttest.VXLAN{}, eth}, false},
	}
	for _, p := range pairs {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/v6=%v", p.name, v6), func(t *testing.T) {
				opt := gro.Options{VXLANPort: packet.PortVXLAN, GenevePort: packet.PortGeneve}
				inner := func(outer []pkttest.Layer, seq int) []byte {
					l := append([]pkttest.Layer{}, outer...)
					if v6 {
						l = append(l, pkttest.IP6{})
					} else {
						l = append(l, pkttest.IP4{DF: true})
					}
					return pkttest.Build(append(l, pkttest.TCP{Seq: uint32(seq)}, pkttest.Payload(fmt.Sprintf("%0*d", 100, seq)))...)
				}
				got := runBurst(newEngine(t, opt), [][]byte{inner(p.a, 0), inner(p.b, 100)})
				if merged := len(got) == 1; merged != p.merge {
					t.Errorf("%d outputs, the first because of %v; merge %v, want %v", len(got), got[0].Reason, merged, p.merge)
				}
			})
		}
	}
}

// TestTunnelHeaderFlags: what must not merge because of the tunnel's own header.
func TestTunnelHeaderFlags(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(g []byte)
		want  gro.Reason
	}{
		{"geneve-oam", func(g []byte) { g[1] |= 0x80 }, gro.TunnelHeader},
		{"geneve-version", func(g []byte) { g[0] |= 0x40 }, gro.TunnelHeader},
		{"geneve-protocol", func(g []byte) { g[3] = 1 }, gro.Unknown},
		{"geneve-length", func(g []byte) { g[0] = 0x3f }, gro.Truncated},
	} {
		f := pkttest.Build(pkttest.Eth{}, pkttest.IP4{}, pkttest.Geneve{}, pkttest.Eth{}, pkttest.IP4{}, pkttest.TCP{}, pkttest.Payload("x"))
		c.spoil(f[42:])
		got := runBurst(newEngine(t, gro.Options{GenevePort: packet.PortGeneve}), [][]byte{f})
		if len(got) != 1 || got[0].Reason != c.want || got[0].Header.Flags != vnet.DataValid {
			t.Errorf("%s: %+v, want %v", c.name, got[0].Reason, c.want)
		}
	}
}

// TestTunnelPorts: a port that is none of the options' is plain UDP, as in Linux
// without a tunnel device.
func TestTunnelPorts(t *testing.T) {
	f := pkttest.Build(pkttest.Eth{}, pkttest.IP4{}, pkttest.VXLAN{Checksum: true}, pkttest.Eth{}, pkttest.IP4{}, pkttest.TCP{}, pkttest.Payload("x"))
	g := append([]byte{}, f...)
	for _, c := range []struct {
		opt  gro.Options
		want vnet.GSOType
	}{
		{gro.Options{UDP: true}, vnet.GSOUDPL4},
		{gro.Options{UDP: true, VXLANPort: 4789}, vnet.GSONone}, // the inner sequence number does not grow
	} {
		got := runBurst(newEngine(t, c.opt), [][]byte{f, g})
		if got[0].Header.GSOType != c.want {
			t.Errorf("VXLANPort %d: %v, want %v", c.opt.VXLANPort, got[0].Header.GSOType, c.want)
		}
	}
}

// TestTunnelChecksumOption is the rule that Linux had until March 2021.
func TestTunnelChecksumOption(t *testing.T) {
	for _, sum := range []bool{false, true} {
		var fs [][]byte
		for i := range 2 {
			fs = append(fs, pkttest.Build(pkttest.Eth{}, pkttest.IP4{ID: uint16(i)}, pkttest.VXLAN{Checksum: sum}, pkttest.Eth{},
				pkttest.IP4{ID: uint16(i)}, pkttest.TCP{Seq: uint32(i)}, pkttest.Payload("x")))
		}
		got := runBurst(newEngine(t, gro.Options{VXLANPort: 4789, TunnelChecksum: true}), fs)
		if merged := len(got) == 1; merged != sum {
			t.Errorf("checksum %v: %d outputs, the first because of %v", sum, len(got), got[0].Reason)
		}
	}
}

// TestGREKeyUnderEqualChecksums: the key grows by what the hop limit shrinks, so
// that the two checksums agree. Linux takes the packets for one flow (K6).
func TestGREKeyUnderEqualChecksums(t *testing.T) {
	var fs [][]byte
	for i := range 2 {
		fs = append(fs, pkttest.Build(pkttest.Eth{}, pkttest.IP4{DF: true}, pkttest.GRE{Checksum: true, HasKey: true, Key: uint32(7 + i)},
			pkttest.IP6{Hops: byte(64 - i)}, pkttest.TCP{Seq: uint32(i)}, pkttest.Payload("x")))
	}
	if a, b := fs[0][38:40], fs[1][38:40]; string(a) != string(b) {
		t.Fatalf("checksums %x and %x, want equal", a, b)
	}
	if got := outcomes(t, runBurst(newEngine(t, gro.Options{}), fs)); fmt.Sprint(got) != "[1/1 flushed 1/1 flushed]" {
		t.Errorf("outputs %v, want two flows", got)
	}
}
