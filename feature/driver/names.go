package driver

import (
	"strings"

	"github.com/offlab/offlab/feature"
)

const prefix = "NETIF_F_"

// renamed are names of older kernels for what Linux 6.18 still has.
var renamed = map[string]feature.Set{
	"NETIF_F_HW_VLAN_TX":     feature.Of(feature.HWVLANCTagTX),     // until 3.9
	"NETIF_F_HW_VLAN_RX":     feature.Of(feature.HWVLANCTagRX),     // until 3.9
	"NETIF_F_HW_VLAN_FILTER": feature.Of(feature.HWVLANCTagFilter), // until 3.9
	"NETIF_F_SCTP_CSUM":      feature.Of(feature.SCTPCRC),          // until 4.4
	"NETIF_F_GSO_IPIP":       feature.Of(feature.GSOIPXIP4),        // until 4.6
	"NETIF_F_GSO_SIT":        feature.Of(feature.GSOIPXIP4),        // until 4.6
	"NETIF_F_ALL_CSUM":       feature.CSumMask,                     // until 4.4
	"NETIF_F_GEN_CSUM":       feature.Of(feature.HWCSum),           // until 4.4
	"NETIF_F_V4_CSUM":        feature.Of(feature.HWCSum, feature.IPCSum),
	"NETIF_F_V6_CSUM":        feature.Of(feature.HWCSum, feature.IPv6CSum),
	"NETIF_F_ALL_FCOE":       feature.Of(feature.FCoECRC, feature.FSO), // until 6.11
}

// gone are names of features that Linux 6.18 has no more.
var gone = map[string]string{
	"NETIF_F_NO_CSUM":     "gone since 3.4",
	"NETIF_F_UFO":         "gone since 4.14",
	"NETIF_F_LLTX":        "a field of its own since 6.12, dev->lltx",
	"NETIF_F_NETNS_LOCAL": "a field of its own since 6.12, dev->netns_immutable",
	"NETIF_F_FCOE_MTU":    "a field of its own since 6.12, dev->fcoe_mtu",
}

// constant returns the set that a C name stands for. Names without NETIF_F_ are
// taken only where short ones are wanted.
func constant(name string, short bool) (s feature.Set, note string, ok bool) {
	if short && !strings.HasPrefix(name, prefix) {
		if s, ok := feature.Lookup(name); ok {
			return s, "", true
		}
		name = prefix + name
	}
	if why, dead := gone[name]; dead {
		return feature.Set{}, name + " is no feature of Linux 6.18: " + why, true
	}
	if s, ok := renamed[name]; ok {
		return s, "", true
	}
	if !strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "MASTER_UPPER_DEV_") {
		return feature.Set{}, "", false
	}
	s, ok = feature.Lookup(name)
	return s, "", ok
}

// bit returns the feature of NETIF_F_X_BIT.
func bit(name string) (feature.Set, bool) {
	base, ok := strings.CutSuffix(name, "_BIT")
	if !ok || !strings.HasPrefix(name, prefix) {
		return feature.Set{}, false
	}
	return feature.Lookup(base)
}
