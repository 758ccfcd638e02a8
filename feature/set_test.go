package feature_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/feature"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in, want string
	}{
		{"", "none"},
		{"none", "none"},
		{"rx-gro", "rx-gro"},
		{"NETIF_F_GRO | GSO", "tx-generic-segmentation,rx-gro"},
		{"SG|IP_CSUM\n\t|IPV6_CSUM", "tx-scatter-gather,tx-checksum-ipv4,tx-checksum-ipv6"},
		{"ALL_TSO", "tx-tcp-segmentation,tx-tcp-ecn-segmentation,tx-tcp-mangleid-segmentation,tx-tcp6-segmentation"},
		{"NETIF_F_SOFT_FEATURES", "tx-generic-segmentation,rx-gro"},
		{"GSO_UDP", "NETIF_F_GSO_UDP"},
		{"NETIF_F_GSO_UDP,bit2,bit127", "bit2,NETIF_F_GSO_UDP,bit127"},
		{"rx-gro,rx-gro", "rx-gro"},
	} {
		got, err := feature.Parse(tt.in)
		if err != nil || got.String() != tt.want {
			t.Errorf("Parse(%q) = %v, %v; want %s", tt.in, got, err, tt.want)
		}
	}
	for _, bad := range []string{"gro", "rx-gro;rx-lro", "netif_f_gro", "NETIF_F_", "bit128", "bit02", "bit-1", "SG&GRO", "tx_gro"} {
		_, err := feature.Parse(bad)
		if word, ok := errors.AsType[*feature.ParseError](err); !ok || !strings.Contains(bad, word.Word) {
			t.Errorf("Parse(%q): %v, want a ParseError", bad, err)
		}
	}
}

func TestMustParsePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("MustParse of nonsense did not panic")
		}
	}()
	feature.MustParse("nonsense")
}

// TestTable checks the table against itself; the kernel test checks it against
// the running kernel.
func TestTable(t *testing.T) {
	if n := feature.All.Len(); n != 61 {
		t.Errorf("%d features, Linux 6.18 has 64 bits, 3 unused", n)
	}
	var grouped feature.Set
	for _, g := range feature.Groups() {
		for _, f := range g.Features {
			if grouped.Has(f) {
				t.Errorf("%v is in two groups", f)
			}
			grouped = grouped.With(f)
			if f.Group() != g.Name {
				t.Errorf("%v: group %q, want %q", f, f.Group(), g.Name)
			}
		}
		if len(g.Features) == 0 {
			t.Errorf("group %q is empty", g.Name)
		}
	}
	if missing := feature.All.Diff(grouped); missing != feature.Of(feature.GSOUDP) {
		t.Errorf("without a group: %v", missing)
	}
	for f := range feature.All.All() {
		for _, name := range []string{f.String(), f.C(), strings.TrimPrefix(f.C(), "NETIF_F_")} {
			if got, ok := feature.Lookup(name); !ok || got != feature.Of(f) {
				t.Errorf("Lookup(%q) = %v, %v; want %v", name, got, ok, f)
			}
		}
	}
	names := make([]string, 0, 20)
	for _, m := range feature.Masks() {
		names = append(names, m.Name)
		if m.Set.IsZero() {
			t.Errorf("%s is empty", m.Name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("masks are not in order: %v", names)
	}
}

// TestMasks compares with the numbers that the compiler made of the macros, as
// read in the compiled functions of Linux 6.18.44 (2026-11).
func TestMasks(t *testing.T) {
	for _, tt := range []struct {
		name string
		got  feature.Set
		want uint64
	}{
		{"NETIF_F_ALL_TSO", feature.AllTSO, 0x1d0000},                                                   // netdev_fix_features
		{"NETIF_F_ONE_FOR_ALL", feature.OneForAll, ^uint64(0xfffffff1bfe0fb9e)},                         // br_features_recompute
		{"NETIF_F_ALL_FOR_ALL", feature.AllForAll, 0x20000200000},                                       // macvlan_fix_features
		{"SOFT_FEATURES(_OFF)", feature.SoftFeatures.Union(feature.SoftFeaturesOff), 0xa00000000004800}, // register_netdevice
		{"CSUM_MASK|GSO_MASK", feature.CSumMask.Union(feature.GSOMask), ^uint64(0xfffffff00000ffe5)},    // netif_skb_features
		{"GSO_ENCAP_ALL and tags", feature.GSOEncapAll.With(feature.HWVLANCTagTX, feature.HWVLANSTagTX), 0x20000fc00080},
		{"base MASTER_UPPER_DEV_VLAN_FEATURES", feature.Base(feature.MasterVLAN), 0x2000fe08008},
		{"base MASTER_UPPER_DEV_ENC_FEATURES", feature.Base(feature.MasterEnc), 0x30010200008},
		{"base MASTER_UPPER_DEV_MPLS_FEATURES", feature.Base(feature.MasterMPLS), 0x20000200008},
	} {
		if want := (feature.Set{tt.want}); tt.got != want {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, want)
		}
	}
}

func TestText(t *testing.T) {
	s := feature.Of(feature.GRO, feature.SG)
	b, err := s.MarshalText()
	var back feature.Set
	if err != nil || back.UnmarshalText(b) != nil || back != s {
		t.Errorf("%s reads as %v", b, back)
	}
	if got := s.C(); got != "NETIF_F_SG | NETIF_F_GRO" {
		t.Errorf("C() = %q", got)
	}
	if got := (feature.Set{}).C(); got != "0" {
		t.Errorf("C() of nothing = %q", got)
	}
	if back.UnmarshalText([]byte("what")) == nil {
		t.Error("UnmarshalText of nonsense succeeds")
	}
	if got := feature.Feature(200).C(); got != "__NETIF_F_BIT(200)" {
		t.Errorf("C() of a bit without a name = %q", got)
	}
}

// slow is a set as a map: the reference for the bit operations.
func slow(s feature.Set) map[feature.Feature]bool {
	m := map[feature.Feature]bool{}
	for f := range feature.Feature(128) {
		if s.Has(f) {
			m[f] = true
		}
	}
	return m
}

// FuzzSet: Parse(String(s)) = s, whatever s; the operations agree with maps;
// resolving twice changes nothing, adds nothing, and says all it did.
func FuzzSet(f *testing.F) {
	f.Add(uint64(0), uint64(0), uint64(0), uint64(0))
	f.Add(^uint64(0), ^uint64(0), uint64(1), uint64(1))
	f.Add(uint64(0x1d0001), uint64(0), uint64(0x12), uint64(1<<63))
	f.Fuzz(func(t *testing.T, a, b, c, d uint64) {
		s, u := feature.Set{a, b}, feature.Set{c, d}
		if got, err := feature.Parse(s.String()); err != nil || got != s {
			t.Fatalf("Parse(%q) = %v, %v", s, got, err)
		}
		union, common, rest := slow(s), map[feature.Feature]bool{}, map[feature.Feature]bool{}
		maps.Copy(union, slow(u))
		for f := range slow(s) {
			if u.Has(f) {
				common[f] = true
			} else {
				rest[f] = true
			}
		}
		for name, pair := range map[string][2]map[feature.Feature]bool{
			"union": {slow(s.Union(u)), union}, "intersect": {slow(s.Intersect(u)), common}, "diff": {slow(s.Diff(u)), rest},
		} {
			if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
				t.Fatalf("%s of %v and %v: %s", name, s, u, diff)
			}
		}
		if all := feature.Of(slices.Collect(s.All())...); all != s || s.Len() != len(slow(s)) || s.Contains(u) != s.Union(u).Diff(s).IsZero() {
			t.Fatalf("All, Len or Contains of %v", s)
		}
		got, why := feature.Resolve(s)
		again, more := feature.Resolve(got)
		var off feature.Set
		for _, ch := range why {
			off = off.Union(ch.Off)
			if ch.Off.IsZero() || !ch.On.IsZero() || ch.Why == "" || ch.Source == "" {
				t.Fatalf("Resolve(%v): change %+v", s, ch)
			}
		}
		if again != got || len(more) > 0 || got != s.Diff(off) {
			t.Fatalf("Resolve(%v) = %v, then %v: %v", s, got, again, more)
		}
	})
}

func TestNoAllocs(t *testing.T) {
	s, buf := feature.All, make([]byte, 0, 4096)
	n := testing.AllocsPerRun(100, func() {
		u := s.With(feature.GRO).Without(feature.LRO, feature.SG).Union(feature.AllTSO).Intersect(feature.GSOMask)
		for f := range u.All() {
			s = s.With(f)
		}
		buf, _ = s.AppendText(buf[:0])
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
