package knob

import (
	"path"
	"strings"

	"github.com/offlab/offlab/internal/sys/ethtool"
)

// A rule is a dependency that the kernel enforces on every device, whatever the
// driver offers.
type rule struct {
	feature string     // name or pattern of the one that is dropped
	needs   [][]string // one of these groups must be active, all of it
	without string     // must not be active
	since   string     // kernel that brought the rule, where that is news
}

const fixSource = "net/core/dev.c, netdev_fix_features"

// Either of these is transmit checksumming for the protocols that a rule is
// about.
var (
	csumAny  = []string{"tx-checksum-ip-generic"}
	csumBoth = [][]string{csumAny, {"tx-checksum-ipv4", "tx-checksum-ipv6"}}
)

// rules are those of netdev_fix_features, Linux 6.18, in its order: the first
// that is violated is the reason. Scatter-gather itself needs no checksumming:
// veth keeps tx-scatter-gather on with checksumming off (seen on 6.18, 2026-11),
// and hardware GRO needs no software GRO here, though some drivers want it.
var rules = []rule{
	{feature: "tx-checksum-ipv[46]", without: "tx-checksum-ip-generic"},
	// NETIF_F_ALL_TSO, without tx-tcp-accecn-segmentation, which stays on alone.
	{feature: "tx-tcp-segmentation", needs: [][]string{{"tx-scatter-gather"}}},
	{feature: "tx-tcp-ecn-segmentation", needs: [][]string{{"tx-scatter-gather"}}},
	{feature: "tx-tcp-mangleid-segmentation", needs: [][]string{{"tx-scatter-gather"}}},
	{feature: "tx-tcp6-segmentation", needs: [][]string{{"tx-scatter-gather"}}},
	{feature: "tx-tcp-segmentation", needs: [][]string{csumAny, {"tx-checksum-ipv4"}}},
	{feature: "tx-tcp-ecn-segmentation", needs: [][]string{csumAny, {"tx-checksum-ipv4"}}},
	{feature: "tx-tcp6-segmentation", needs: [][]string{csumAny, {"tx-checksum-ipv6"}}},
	{feature: "tx-tcp-mangleid-segmentation", needs: [][]string{{"tx-tcp-segmentation"}}},
	{feature: "tx-generic-segmentation", needs: [][]string{{"tx-scatter-gather"}}},
	{feature: "rx-gro-hw", needs: [][]string{{"rx-checksum"}}},
	{feature: "rx-lro", without: "rx-fcs"},
	{feature: "rx-gro-hw", without: "rx-fcs"},
	{feature: "rx-lro", without: "rx-gro-hw", since: "5.16"},
	{feature: "tls-hw-tx-offload", needs: csumBoth},
	{feature: "tls-hw-rx-offload", needs: [][]string{{"rx-checksum"}}},
	{feature: "tx-udp-segmentation", needs: csumBoth, since: "6.11"},
}

// broken returns why the kernel drops a feature given what is active, or "".
func broken(feature string, now map[string]ethtool.Bits) string {
	for _, r := range rules {
		if ok, _ := path.Match(r.feature, feature); !ok {
			continue
		}
		if r.without != "" && now[r.without].Active {
			return "excluded by " + r.without + ", which is " + now[r.without].String() + " (" + fixSource + ")"
		}
		if len(r.needs) > 0 && !satisfied(r.needs, now) {
			return "needs " + alternatives(r.needs, now) + " (" + fixSource + ")"
		}
	}
	return ""
}

func satisfied(groups [][]string, now map[string]ethtool.Bits) bool {
	for _, group := range groups {
		all := true
		for _, name := range group {
			all = all && now[name].Active
		}
		if all {
			return true
		}
	}
	return false
}

// alternatives names what would do, with its state; what the device cannot turn
// on is left out unless nothing else is left.
func alternatives(groups [][]string, now map[string]ethtool.Bits) string {
	var can, all []string
	for _, group := range groups {
		possible := true
		var parts []string
		for _, name := range group {
			b := now[name]
			possible = possible && (b.Active || !b.Fixed())
			parts = append(parts, name+", which is "+b.String())
		}
		words := strings.Join(parts, ", and ")
		all = append(all, words)
		if possible {
			can = append(can, words)
		}
	}
	if len(can) == 0 {
		can = all
	}
	return strings.Join(can, "; or ")
}

// reason says why a feature is not as asked.
func reason(feature string, asked bool, now map[string]ethtool.Bits) string {
	b, known := now[feature]
	switch {
	case !known:
		return "this kernel has no such feature"
	case b.Fixed():
		return "fixed"
	case b.Wanted != asked:
		return "another setting asks otherwise"
	case !asked:
		return b.String() + ": kept on by the driver"
	}
	if why := broken(feature, now); why != "" {
		return b.String() + ": " + why
	}
	return b.String() + ": vetoed by the driver, or by a device stacked on it"
}
