package feature_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/offlab/offlab/feature"
)

var parse = feature.MustParse

// TestResolve has a row for each rule and for what one might take for a rule.
func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		name, want, got, why string
	}{
		{"mixed-csum", "HW_CSUM|IP_CSUM|IPV6_CSUM|SG", "HW_CSUM|SG", "excluded by tx-checksum-ip-generic"},
		{"tso-without-sg", "HW_CSUM|ALL_TSO", "HW_CSUM", "needs tx-scatter-gather"},
		{"tso-without-csum", "SG|TSO|TSO_ECN|TSO6|IPV6_CSUM", "SG|TSO6|IPV6_CSUM", "needs tx-checksum-ip-generic, or tx-checksum-ipv4"},
		{"tso6-without-csum", "SG|TSO|TSO_ECN|TSO6|IP_CSUM", "SG|TSO|TSO_ECN|IP_CSUM", "needs tx-checksum-ip-generic, or tx-checksum-ipv6"},
		{"mangleid-without-tso", "SG|HW_CSUM|TSO_MANGLEID|TSO6", "SG|HW_CSUM|TSO6", "needs tx-tcp-segmentation"},
		{"ecn-alone", "SG|HW_CSUM|TSO_ECN", "SG|HW_CSUM", "needs tx-tcp-segmentation, or tx-tcp6-segmentation, or"},
		{"ecn-with-tso6", "SG|HW_CSUM|TSO_ECN|TSO6", "SG|HW_CSUM|TSO_ECN|TSO6", ""},
		{"gso-without-sg", "GSO|GRO", "GRO", "software segments lie in pieces"},
		{"gro-hw-without-rxcsum", "GRO|GRO_HW", "GRO", "needs rx-checksum"},
		{"gro-hw-without-gro", "GRO_HW|RXCSUM", "GRO_HW|RXCSUM", ""},
		{"lro-with-fcs", "LRO|RXFCS", "RXFCS", "excluded by rx-fcs"},
		{"gro-hw-with-fcs", "GRO_HW|RXCSUM|RXFCS", "RXCSUM|RXFCS", "excluded by rx-fcs"},
		{"lro-with-gro-hw", "LRO|GRO_HW|RXCSUM", "GRO_HW|RXCSUM", "excluded by rx-gro-hw"},
		{"lro-with-dead-gro-hw", "LRO|GRO_HW", "LRO", "needs rx-checksum"}, // in order: hardware GRO is gone by then
		{"tls-tx-one-family", "HW_TLS_TX|IP_CSUM", "IP_CSUM", "or tx-checksum-ipv4 and tx-checksum-ipv6"},
		{"tls-tx-both", "HW_TLS_TX|IP_CSUM|IPV6_CSUM", "HW_TLS_TX|IP_CSUM|IPV6_CSUM", ""},
		{"tls-rx", "HW_TLS_RX", "none", "needs rx-checksum"},
		{"uso-without-csum", "GSO_UDP_L4|SG", "SG", "needs tx-checksum-ip-generic, or"},
		{"uso-mixed", "GSO_UDP_L4|HW_CSUM|IP_CSUM", "GSO_UDP_L4|HW_CSUM", "excluded by"},
		{"sg-without-csum", "SG", "SG", ""},
		{"accecn-alone", "GSO_ACCECN", "GSO_ACCECN", ""},
	} {
		got, why := feature.Resolve(parse(tt.want))
		if got != parse(tt.got) {
			t.Errorf("%s: Resolve(%s) = %v, want %s", tt.name, tt.want, got, tt.got)
		}
		if tt.why == "" && len(why) > 0 || tt.why != "" && (len(why) != 1 || !strings.Contains(why[0].String(), tt.why)) {
			t.Errorf("%s: why %v, want %q", tt.name, why, tt.why)
		}
	}
	got, why := feature.Resolve(parse("TSO|TSO6|TSO_ECN|GSO|GSO_UDP_L4|SG"))
	if got != parse("GSO|SG") || len(why) != 3 {
		t.Errorf("several rules: %v, %v", got, why)
	}
	for _, r := range feature.Rules() {
		if !r.Partial && !r.Broken(r.Of.Union(r.Without)) {
			t.Errorf("rule %+v cannot be broken", r)
		}
	}
}

// TestRegister is about what a driver gets for its flags.
func TestRegister(t *testing.T) {
	for _, tt := range []struct {
		name                                   string
		features, hw, vlan, enc, mpls, partial string
		active, canChange, vlanAfter, encAfter string
	}{
		{
			name:     "bgmac", // features = SG|IP_CSUM|IPV6_CSUM; features &= GRO; hw_features = vlan_features = features
			features: "none", hw: "none", vlan: "none",
			active: "GRO", canChange: "GSO|GRO|GRO_FRAGLIST|GRO_UDP_FWD|NOCACHE_COPY", vlanAfter: "HIGHDMA", encAfter: "SG|GSO_PARTIAL",
		},
		{
			name:     "tso",
			features: "SG|HW_CSUM|TSO", hw: "SG|HW_CSUM|TSO", vlan: "SG|TSO", enc: "TSO", mpls: "TSO",
			active: "SG|HW_CSUM|TSO|GSO|GRO", canChange: "SG|HW_CSUM|TSO|TSO_MANGLEID|GSO|GRO|GRO_FRAGLIST|GRO_UDP_FWD|NOCACHE_COPY",
			vlanAfter: "SG|TSO|TSO_MANGLEID|HIGHDMA", encAfter: "SG|TSO|TSO_MANGLEID|GSO_PARTIAL",
		},
		{
			name:     "on-and-fixed", // not in hw_features
			features: "SG|HIGHDMA|RXCSUM|LRO|RXFCS", hw: "SG",
			active: "SG|HIGHDMA|RXCSUM|RXFCS|GSO|GRO", canChange: "SG|GSO|GRO|GRO_FRAGLIST|GRO_UDP_FWD|NOCACHE_COPY",
			vlanAfter: "HIGHDMA", encAfter: "SG|GSO_PARTIAL",
		},
		{
			name:     "partial",
			features: "SG|HW_CSUM|GSO_GRE_CSUM", hw: "SG|HW_CSUM|GSO_GRE_CSUM|GSO_PARTIAL", partial: "GSO_GRE_CSUM",
			active: "SG|HW_CSUM|GSO|GRO", canChange: "SG|HW_CSUM|GSO_GRE_CSUM|GSO_PARTIAL|GSO|GRO|GRO_FRAGLIST|GRO_UDP_FWD|NOCACHE_COPY",
			vlanAfter: "HIGHDMA", encAfter: "SG|GSO_PARTIAL",
		},
	} {
		var d feature.Device
		for f, text := range map[feature.Field]string{
			feature.Features: tt.features, feature.HWFeatures: tt.hw, feature.VLANSet: tt.vlan,
			feature.HWEncSet: tt.enc, feature.MPLSSet: tt.mpls, feature.PartialSet: tt.partial,
		} {
			d.Sets[f] = parse(text)
		}
		got, why := d.Register()
		for f, text := range map[feature.Field]string{
			feature.Features: tt.active, feature.HWFeatures: tt.canChange, feature.VLANSet: tt.vlanAfter, feature.HWEncSet: tt.encAfter,
		} {
			if got.Get(f) != parse(text) {
				t.Errorf("%s: %v is %v, want %s", tt.name, f, got.Get(f), text)
			}
		}
		if want := parse(tt.features).Union(feature.SoftFeatures).Intersect(got.Get(feature.HWFeatures).Without(feature.NoCacheCopy)); got.Get(feature.Wanted) != want {
			t.Errorf("%s: wanted %v, want %v", tt.name, got.Get(feature.Wanted), want)
		}
		if len(why) == 0 {
			t.Errorf("%s: nothing said", tt.name)
		}
	}
	d, _ := feature.Device{TunnelPorts: true, Loopback: true}.Register()
	if !d.Get(feature.Features).Has(feature.RXUDPTunnelPort) || d.Get(feature.HWFeatures).Has(feature.NoCacheCopy) {
		t.Errorf("ports or loopback: %v", d)
	}
}

// TestRequest: a wish that the rules do not fulfil stays a wish.
func TestRequest(t *testing.T) {
	d := feature.Device{}
	d.Sets[feature.Features], d.Sets[feature.HWFeatures] = parse("SG|HW_CSUM|TSO|TSO6"), parse("SG|HW_CSUM|TSO|TSO6")
	d, _ = d.Register()
	start := d
	d, why := d.Request(feature.Set{}, parse("SG"))
	if d.Get(feature.Features).Meets(parse("SG|TSO|TSO6|GSO")) || len(why) != 2 {
		t.Errorf("sg off: %v, %v", d, why)
	}
	if got := d.State().Show(feature.TSO); got != "off [requested on]" {
		t.Errorf("tso is %s", got)
	}
	if got := d.State().Show(feature.LRO); got != "off [fixed]" {
		t.Errorf("lro is %s", got)
	}
	if got := d.State().Explain(feature.TSO); !strings.Contains(got, "needs tx-scatter-gather, which is off (net/core/dev.c") {
		t.Errorf("why is tso off: %s", got)
	}
	if d, _ = d.Request(parse("SG"), parse("SG")); d != start {
		t.Errorf("sg on again: %v, want %v", d, start)
	}
	if _, why = d.Request(parse("TSO"), parse("TSO")); why != nil {
		t.Errorf("a wish that is no news: %v", why)
	}
}

// TestExplain: whatever Resolve drops, Explain has a reason for, and for
// nothing that is on.
func TestExplain(t *testing.T) {
	const seed = 9
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		want := feature.Set{rng.Uint64() | rng.Uint64()}.Intersect(feature.All)
		got, _ := feature.Resolve(want)
		s := feature.State{HW: feature.All, Wanted: want, Active: got}
		for f := range want.All() {
			why := s.Explain(f)
			if got.Has(f) && why != "" || !got.Has(f) && why == "" {
				t.Fatalf("seed %d: of %v, %v is %s: %q", seed, want, f, s.Show(f), why)
			}
		}
	}
}
