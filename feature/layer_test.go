package feature_test

import (
	"strings"
	"testing"

	"github.com/offlab/offlab/feature"
)

// layer shows a device of a stack as a machine would.
func layer(t *testing.T, s *feature.Stack, name string, below ...*feature.Layer) *feature.Layer {
	t.Helper()
	d, ok := s.Device(name)
	if !ok {
		t.Fatalf("no device %s", name)
	}
	return &feature.Layer{Name: name, Kind: d.Kind, State: d.State(), Below: below}
}

// TestLosses builds stacks that lose something, in one place each.
func TestLosses(t *testing.T) {
	full := "SG|HW_CSUM|TSO|TSO6|TSO_ECN|GSO_UDP_L4|GSO_UDP_TUNNEL|RXCSUM"
	for _, tt := range []struct {
		name, nic, vlan string // features of the card, what it hands to VLAN devices
		ask, off        string // a request: device, features to turn off
		want            []string
	}{
		{name: "all-there", nic: full, vlan: full},
		{
			name: "not-handed-on", nic: full, vlan: "SG|HW_CSUM|TSO|TSO6|TSO_ECN|GSO_UDP_L4",
			want: []string{
				"tx-udp_tnl-segmentation at eth0.10: off here, so what x0 (vxlan) sends",
				"tx-udp_tnl-segmentation at eth0.10: eth0 has it and does not hand it to VLAN devices (vlan_features) (net/8021q/vlan_dev.c, vlan_dev_fix_features)",
			},
		},
		{
			name: "off-below", nic: full, vlan: full, ask: "eth0", off: "TSO6",
			want: []string{"tx-tcp6-segmentation at eth0: off here, so what is segmented for eth0.10"},
		},
		{
			name: "off-above", nic: full, vlan: full, ask: "eth0.10", off: "GSO_UDP_TUNNEL",
			want: []string{
				"tx-udp_tnl-segmentation at eth0.10: off here, so what x0 (vxlan) sends is segmented in software before it: not asked for",
				"tx-udp_tnl-segmentation at eth0.10: turned off here; ethtool -K eth0.10 tx-udp_tnl-segmentation on",
			},
		},
	} {
		var s feature.Stack
		if _, err := s.Add("eth0", nic(tt.nic, tt.vlan, "none")); err != nil {
			t.Fatal(err)
		}
		add(t, &s, "eth0.10", "vlan", "eth0")
		add(t, &s, "x0", "vxlan", "eth0.10")
		if tt.ask != "" {
			if _, err := s.Request(tt.ask, feature.Set{}, parse(tt.off)); err != nil {
				t.Fatal(err)
			}
		}
		top := layer(t, &s, "x0", layer(t, &s, "eth0.10", layer(t, &s, "eth0")))
		var got []string
		for _, l := range top.Losses() {
			got = append(got, l.Feature.String()+" at "+l.Layer.Name+": "+l.Why)
		}
		same := len(got) == len(tt.want)
		for i := range got {
			same = same && strings.HasPrefix(got[i], tt.want[i])
		}
		if !same {
			t.Errorf("%s: losses\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

func TestWhy(t *testing.T) {
	var s feature.Stack
	if _, err := s.Add("eth0", nic("SG|HW_CSUM", "SG|HW_CSUM", "none")); err != nil {
		t.Fatal(err)
	}
	add(t, &s, "eth0.10", "vlan", "eth0")
	add(t, &s, "tap0", "tun")
	add(t, &s, "m0", "macvlan", "eth0")
	eth := layer(t, &s, "eth0")
	eth.State.Wanted = eth.State.Wanted.With(feature.RXHash)
	eth.State.HW = eth.State.HW.With(feature.RXHash)
	for _, tt := range []struct {
		l    *feature.Layer
		f    feature.Feature
		want string
	}{
		{eth, feature.SG, ""},
		{eth, feature.LRO, "not offered by the driver"},
		{eth, feature.GROFragList, "not asked for"},
		{eth, feature.RXHash, "vetoed by the driver"},
		{layer(t, &s, "eth0.10", eth), feature.HighDMA, "off on eth0, below (net/8021q"},
		{layer(t, &s, "tap0"), feature.HWCSum, "the process behind the TAP has not taken it (TUNSETOFFLOAD) (drivers/net/tun.c"},
		{layer(t, &s, "tap0"), feature.TSO, "needs tx-checksum-ip-generic, which is off [requested on]"},
	} {
		if got := tt.l.Why(tt.f); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("why is %v off on %s: %q, want %q", tt.f, tt.l.Name, got, tt.want)
		}
	}
	if got := eth.State.Drags(feature.SG); got != feature.Of(feature.GSO) {
		t.Errorf("turning SG off drags %v", got)
	}
}
