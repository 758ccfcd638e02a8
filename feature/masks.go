package feature

import "strings"

// The masks of include/linux/netdev_features.h.
var (
	// NeverChange can be changed by nobody once the device is registered.
	NeverChange = Of(VLANChallenged)
	// GSOMask is every segmentation.
	GSOMask = between(TSO, GSOAccECN)
	// CSumMask is transmit checksumming of IP protocols.
	CSumMask = Of(IPCSum, IPv6CSum, HWCSum)
	// IPCSums are the checksumming of one protocol family each.
	IPCSums = Of(IPCSum, IPv6CSum)
	// AllTSO is TCP segmentation, without AccECN.
	AllTSO = Of(TSO, TSO6, TSOECN, TSOMangleID)
	// GSOSoftware are segmentations that the stack can do in software.
	GSOSoftware = AllTSO.With(GSOAccECN, GSOSCTP, GSOUDPL4, GSOFragList)
	// OneForAll are given to a stacked device if one device below has them.
	OneForAll = GSOSoftware.With(GSORobust, SG, HighDMA, FragList, VLANChallenged)
	// AllForAll are given to a stacked device if every device below has them.
	AllForAll = Of(NoCacheCopy, FSO)
	// UpperDisables must be off below if they are off above.
	UpperDisables = Of(LRO)
	// SoftFeatures are turned on for every device at registration.
	SoftFeatures = Of(GSO, GRO)
	// SoftFeaturesOff are offered for every device, off.
	SoftFeaturesOff = Of(GROFragList, GROUDPFwd)
	// VLANFeatures are the handling of tags by the device itself. The set that
	// VLAN devices inherit is another: [Device.VLAN].
	VLANFeatures = Of(HWVLANCTagFilter, HWVLANCTagRX, HWVLANCTagTX, HWVLANSTagFilter, HWVLANSTagRX, HWVLANSTagTX)
	// GSOEncapAll is segmentation inside tunnels.
	GSOEncapAll = Of(GSOGRE, GSOGRECSum, GSOIPXIP4, GSOIPXIP6, GSOUDPTunnel, GSOUDPTunnelCSum)

	// MasterVLAN, MasterEnc, MasterMPLS and MasterXFRM are the most that bonds
	// and teams hand to VLAN, tunnel, MPLS and IPsec users.
	MasterVLAN = GSOSoftware.Union(GSOEncapAll).With(HWCSum, SG, FragList, HighDMA, LRO)
	MasterEnc  = GSOSoftware.With(HWCSum, SG, RXCSum, GSOPartial)
	MasterMPLS = GSOSoftware.With(HWCSum, SG)
	MasterXFRM = Of(HWESP, HWESPTXCSum, GSOESP)
)

func between(first, last Feature) (s Set) {
	for f := first; f <= last; f++ {
		s = s.With(f)
	}
	return s
}

// A Mask is a C macro for several features.
type Mask struct {
	Name string // such as NETIF_F_ALL_TSO
	Set  Set
}

// Masks returns the macros of Linux 6.18 for several features, by name.
func Masks() []Mask {
	return []Mask{
		{"MASTER_UPPER_DEV_ENC_FEATURES", MasterEnc},
		{"MASTER_UPPER_DEV_GSO_PARTIAL_FEATURES", Of(GSOESP)},
		{"MASTER_UPPER_DEV_MPLS_FEATURES", MasterMPLS},
		{"MASTER_UPPER_DEV_VLAN_FEATURES", MasterVLAN},
		{"MASTER_UPPER_DEV_XFRM_FEATURES", MasterXFRM},
		{"NETIF_F_ALL_FOR_ALL", AllForAll},
		{"NETIF_F_ALL_TSO", AllTSO},
		{"NETIF_F_CSUM_MASK", CSumMask},
		{"NETIF_F_ETHTOOL_BITS", Set{^uint64(0)}.Diff(NeverChange)},
		{"NETIF_F_GSO_ENCAP_ALL", GSOEncapAll},
		{"NETIF_F_GSO_MASK", GSOMask},
		{"NETIF_F_GSO_SOFTWARE", GSOSoftware},
		{"NETIF_F_NEVER_CHANGE", NeverChange},
		{"NETIF_F_ONE_FOR_ALL", OneForAll},
		{"NETIF_F_SOFT_FEATURES", SoftFeatures},
		{"NETIF_F_SOFT_FEATURES_OFF", SoftFeaturesOff},
		{"NETIF_F_UPPER_DISABLES", UpperDisables},
		{"NETIF_F_VLAN_FEATURES", VLANFeatures},
	}
}

// masksByName are the masks without NETIF_F_.
var masksByName = func() map[string]Set {
	m := map[string]Set{}
	for _, mask := range Masks() {
		m[strings.TrimPrefix(mask.Name, prefix)] = mask.Set
	}
	return m
}()
