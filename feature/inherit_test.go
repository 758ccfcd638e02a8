package feature_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/offlab/offlab/feature"
)

// nic is a driver with its sets.
func nic(features, vlan, enc string) feature.Device {
	var d feature.Device
	d.Sets[feature.Features], d.Sets[feature.HWFeatures] = parse(features), parse(features)
	d.Sets[feature.VLANSet], d.Sets[feature.HWEncSet] = parse(vlan), parse(enc)
	return d
}

func add(t *testing.T, s *feature.Stack, name, kind string, below ...string) {
	t.Helper()
	k, ok := feature.FindKind(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	if _, err := s.Add(name, k.New(), below...); err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, s *feature.Stack, name string) feature.State {
	t.Helper()
	d, ok := s.Device(name)
	if !ok {
		t.Fatalf("no device %s", name)
	}
	return d.State()
}

// TestVLAN follows vlan_dev_fix_features by hand, since a kernel may be without
// VLAN devices. Software segmentation stays on with nothing of it below.
func TestVLAN(t *testing.T) {
	soft := "GSO|GRO|ALL_TSO|GSO_SCTP|GSO_UDP_L4|GSO_FRAGLIST|GSO_ACCECN"
	for _, tt := range []struct{ name, features, vlan, on, off string }{
		{"nothing-offered", "SG|HW_CSUM|TSO|RXCSUM", "none", "none", "SG|HW_CSUM|GSO|ALL_TSO|RXCSUM|HIGHDMA"},
		{"all-offered", "SG|HW_CSUM|TSO|TSO6|HIGHDMA", "SG|HW_CSUM|TSO|TSO6", "SG|HW_CSUM|HIGHDMA|" + soft, "FRAGLIST|SCTP_CRC"},
		{"one-family-each", "SG|IP_CSUM|IPV6_CSUM", "SG|IP_CSUM|IPV6_CSUM", "SG|HW_CSUM|" + soft, "HIGHDMA"},
		{"csum-not-offered", "SG|HW_CSUM|TSO", "SG|TSO", "SG|GSO|GRO|GSO_ACCECN", "HW_CSUM|ALL_TSO|GSO_UDP_L4"},
		{"offered-and-off", "SG|HW_CSUM", "SG|HW_CSUM|GSO_UDP_TUNNEL", "SG|HW_CSUM", "GSO_UDP_TUNNEL"},
	} {
		var s feature.Stack
		if _, err := s.Add("eth0", nic(tt.features, tt.vlan, "none")); err != nil {
			t.Fatal(err)
		}
		add(t, &s, "eth0.10", "vlan", "eth0")
		got := state(t, &s, "eth0.10")
		if !got.Active.Contains(parse(tt.on)) || got.Active.Meets(parse(tt.off)) {
			t.Errorf("%s: active %v, want %s and not %s", tt.name, got.Active, tt.on, tt.off)
		}
	}
}

// TestBondVLANTunnel is the fault that "bonding: fix vlan_features" (Fixes
// a9b3ace44c7d) repaired: ports and bond segment tunnels, the VLAN on the bond
// did not, "off [requested on]". Since then a bond hands tunnel segmentation to
// its VLANs whatever its ports hand on: the stack cuts what a port cannot.
func TestBondVLANTunnel(t *testing.T) {
	for _, vlan := range []string{"SG|HW_CSUM|TSO|TSO6|GSO_UDP_TUNNEL", "SG|HW_CSUM|TSO|TSO6"} {
		var s feature.Stack
		for _, name := range []string{"eth0", "eth1"} {
			if _, err := s.Add(name, nic("SG|HW_CSUM|TSO|TSO6|GSO_UDP_TUNNEL", vlan, "SG|HW_CSUM|TSO|GSO_UDP_TUNNEL")); err != nil {
				t.Fatal(err)
			}
		}
		add(t, &s, "bond0", "bond")
		for _, name := range []string{"eth0", "eth1"} {
			if _, err := s.Enslave(name, "bond0"); err != nil {
				t.Fatal(err)
			}
		}
		add(t, &s, "bond0.100", "vlan", "bond0")
		add(t, &s, "eth0.100", "vlan", "eth0")
		bond, direct := state(t, &s, "bond0.100").Show(feature.GSOUDPTunnel), state(t, &s, "eth0.100").Show(feature.GSOUDPTunnel)
		want := "off [requested on]"
		if parse(vlan).Has(feature.GSOUDPTunnel) {
			want = "on"
		}
		if bond != "on" || direct != want {
			t.Errorf("vlan_features %s: on the bond %s, want on; on the port %s, want %s", vlan, bond, direct, want)
		}
	}
}

// TestLRO: what is off above is off below.
func TestLRO(t *testing.T) {
	var s feature.Stack
	if _, err := s.Add("eth0", nic("SG|HW_CSUM|LRO|RXCSUM", "none", "none")); err != nil {
		t.Fatal(err)
	}
	if !state(t, &s, "eth0").Active.Has(feature.LRO) {
		t.Fatal("no LRO to begin with")
	}
	add(t, &s, "br0", "bridge")
	if _, err := s.Enslave("eth0", "br0"); err != nil {
		t.Fatal(err)
	}
	if got := state(t, &s, "eth0").Show(feature.LRO); got != "off" {
		t.Errorf("a port of a bridge: %s", got)
	}
	why, err := s.Request("eth0", parse("LRO"), parse("LRO"))
	if got := state(t, &s, "eth0").Show(feature.LRO); err != nil || got != "off [requested on]" || len(why) != 1 || !strings.Contains(why[0].String(), "off on br0") {
		t.Errorf("asked for: %s, %v, %v", got, why, err)
	}
}

func TestIncrement(t *testing.T) {
	for _, tt := range []struct{ name, all, one, mask, want string }{
		{"one-for-all", "none", "SG|TSO|RXCSUM", "SG|TSO|RXCSUM", "SG|TSO"},
		{"mask", "none", "SG|TSO", "SG", "SG"},
		{"all-for-all", "NOCACHE_COPY|FSO", "NOCACHE_COPY", "none", "NOCACHE_COPY"},
		{"hw-csum-wins", "IP_CSUM", "HW_CSUM", "HW_CSUM", "HW_CSUM"},
		{"one-family", "none", "IP_CSUM", "HW_CSUM", "IP_CSUM"},
		{"challenged", "none", "VLAN_CHALLENGED", "none", "VLAN_CHALLENGED"},
	} {
		if got := feature.Increment(parse(tt.all), parse(tt.one), parse(tt.mask)); got != parse(tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

func TestIntersectFeatures(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"HW_CSUM|SG", "IP_CSUM|SG", "IP_CSUM|SG"},
		{"IP_CSUM", "HW_CSUM", "IP_CSUM"},
		{"HW_CSUM", "HW_CSUM", "HW_CSUM"},
		{"IP_CSUM", "IPV6_CSUM", "none"},
	} {
		if got := feature.IntersectFeatures(parse(tt.a), parse(tt.b)); got != parse(tt.want) {
			t.Errorf("%s and %s: %v, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestForPacket(t *testing.T) {
	d, _ := nic("SG|HW_CSUM|TSO|TSO6|GSO_UDP_TUNNEL|HW_VLAN_CTAG_TX", "SG|HW_CSUM", "HW_CSUM|TSO").Register()
	v4only, _ := nic("SG|IP_CSUM|TSO", "none", "none").Register()
	v6, _ := nic("SG|IPV6_CSUM|TSO6", "none", "none").Register()
	partial := d
	partial.Sets[feature.PartialSet] = parse("GSO_UDP_TUNNEL")
	for _, tt := range []struct {
		name    string
		d       feature.Device
		p       feature.Packet
		has, no string
	}{
		{"plain", d, feature.Packet{IPv4: true, Checksum: true, Segment: true}, "SG|HW_CSUM|TSO", "none"},
		{"tagged", d, feature.Packet{IPv4: true, Checksum: true, Tags: 1}, "SG|HW_CSUM|HW_VLAN_CTAG_TX", "TSO|TSO6"},
		{"twice-tagged", d, feature.Packet{IPv4: true, Checksum: true, Tags: 2}, "SG|HW_CSUM", "TSO|GSO"},
		{"tunnel", d, feature.Packet{Encapsulated: true, IPv4: true, Checksum: true, Segment: true}, "HW_CSUM|TSO|SG", "TSO6|GSO_UDP_TUNNEL"},
		{"other-family", v4only, feature.Packet{IPv6: true, Checksum: true}, "SG", "TSO|IP_CSUM"},
		{"not-checksummed", v4only, feature.Packet{IPv6: true}, "TSO|IP_CSUM", "none"},
		{"extension-headers", v6, feature.Packet{IPv6: true, Segment: true, Extended: true}, "SG", "TSO6|IPV6_CSUM"},
		{"before-partial", partial, feature.Packet{Segment: true}, "TSO", "GSO_UDP_TUNNEL"},
		{"after-partial", partial, feature.Packet{Segment: true, Partial: true}, "TSO|GSO_UDP_TUNNEL", "none"},
	} {
		if got := tt.d.ForPacket(tt.p); !got.Contains(parse(tt.has)) || got.Meets(parse(tt.no)) {
			t.Errorf("%s: %v, want %s and not %s", tt.name, got, tt.has, tt.no)
		}
	}
}

func TestStackErrors(t *testing.T) {
	var s feature.Stack
	add(t, &s, "br0", "bridge")
	add(t, &s, "br1", "bridge")
	if _, err := s.Enslave("br1", "br0"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"dup":     second(s.Add("br0", feature.Device{})),
		"below":   second(s.Add("x", feature.Device{}, "y")),
		"port":    second(s.Enslave("x", "br0")),
		"self":    second(s.Enslave("br0", "br0")),
		"loop":    second(s.Enslave("br0", "br1")),
		"request": second(s.Request("x", feature.All, feature.All)),
		"accept":  second(s.Accept("x", feature.All)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestTAPAccept: the process behind a TAP decides.
func TestTAPAccept(t *testing.T) {
	var s feature.Stack
	add(t, &s, "tap0", "tun")
	if got := state(t, &s, "tap0").Show(feature.TSO); got != "off [requested on]" {
		t.Errorf("before: %s", got)
	}
	if _, err := s.Accept("tap0", parse("HW_CSUM|TSO")); err != nil {
		t.Fatal(err)
	}
	if got := state(t, &s, "tap0"); got.Show(feature.TSO) != "on" || got.Show(feature.TSO6) != "off" {
		t.Errorf("after: %v", got.Active)
	}
}

// TestStackLaws: on random stacks, a device that has requests put back is as it
// was, and every kind settles: updating again changes nothing.
func TestStackLaws(t *testing.T) {
	const seed = 10
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var s feature.Stack
		hw := feature.Set{rng.Uint64()}.Intersect(feature.All).Diff(feature.NeverChange)
		if _, err := s.Add("eth0", nic(hw.String(), (feature.Set{rng.Uint64()}).Intersect(hw).String(), "none")); err != nil {
			t.Fatal(err)
		}
		top := "eth0"
		for i, kind := range []string{"bond", "vlan", "macvlan", "bridge", "team", "vlan", "ipvlan", "vxlan"} {
			name := kind + string(rune('0'+i))
			switch kind {
			case "bond", "bridge", "team":
				add(t, &s, name, kind)
				if _, err := s.Enslave(top, name); err != nil {
					t.Fatal(err)
				}
			default:
				add(t, &s, name, kind, top)
			}
			top = name
		}
		before := map[string]feature.Device{}
		for _, name := range s.Names() {
			before[name], _ = s.Device(name)
		}
		mask := feature.Set{rng.Uint64()}.Intersect(feature.All).Without(feature.LRO) // which stays off below
		mask = mask.Intersect(before["eth0"].Get(feature.HWFeatures))
		for _, value := range []feature.Set{{}, before["eth0"].Get(feature.Wanted)} {
			if _, err := s.Request("eth0", value, mask); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range s.Names() {
			if got, _ := s.Device(name); got != before[name] {
				t.Fatalf("seed %d: %s is not as it was: %v, want %v", seed, name, got, before[name])
			}
		}
	}
}
