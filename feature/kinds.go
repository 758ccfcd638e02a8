package feature

// A Kind is a sort of virtual device: the sets that its driver fills in, and
// how it depends on the devices below it.
type Kind struct {
	Name   string // as ip link prints it
	About  string
	Source string // file of the kernel
	// FixSource and Why say how the kind limits its own features.
	FixSource, Why string
	// Carries are the features of the device that carries its packets, after
	// encapsulation, which do the segmentation in its place. Empty for kinds
	// that do not encapsulate.
	Carries Set
	// Passes says that packets of any number of tags keep their features.
	Passes bool

	own     [len(fieldNames)]Set
	late    Set // turned off again right after registration
	init    func(d *Device, below []*Device)
	fix     func(d *Device, want Set, below []*Device) Set
	changed func(d *Device, below []*Device) // when features below change
}

// New returns a device of the kind as its driver has it before registration.
func (k Kind) New() Device { return Device{Kind: k.Name, Sets: k.own, Loopback: k.Name == "lo"} }

// Depends reports whether the features come from the devices below.
func (k Kind) Depends() bool { return k.changed != nil || k.init != nil || k.Name == "bridge" }

// sets builds the sets of a driver.
func sets(features, hw, vlan, enc, mpls Set) (s [len(fieldNames)]Set) {
	s[Features], s[HWFeatures], s[VLANSet], s[HWEncSet], s[MPLSSet] = features, hw, vlan, enc, mpls
	return s
}

func both(s, vlan, enc Set) [len(fieldNames)]Set { return sets(s, s, vlan, enc, Set{}) }

var (
	tagTX       = Of(HWVLANCTagTX, HWVLANSTagTX)
	software    = GSOSoftware.With(SG, HWCSum, FragList) // what most virtual devices start from
	tapOwn      = tapUser.Union(tagTX).With(SG, FragList)
	vethOwn     = software.Union(GSOEncapAll).Union(tagTX).With(RXCSum, SCTPCRC, HighDMA, HWVLANCTagRX, HWVLANSTagRX)
	bridgeOwn   = GSOMask.With(SG, FragList, HighDMA, HWCSum)
	vlanOwn     = software.Union(GSOEncapAll).With(HighDMA, SCTPCRC, FCoECRC, FSO)
	masterHW    = MasterVLAN.With(HWVLANCTagRX, HWVLANCTagFilter, HWVLANSTagRX, HWVLANSTagFilter)
	dummyOwn    = software.Union(GSOEncapAll).With(HighDMA)
	ifbOwn      = dummyOwn.Union(tagTX)
	tunnelOwn   = software.With(HighDMA)
	udpCarriers = Of(GSOUDPTunnel, GSOUDPTunnelCSum)
	wgOwn       = GSOSoftware.With(HWCSum, RXCSum, SG, GSO, HighDMA)
	loopbackOn  = software.With(RXCSum, SCTPCRC, HighDMA, VLANChallenged, Loopback)
)

const (
	whyVLAN   = "a VLAN device has what the device below has on and offers to VLAN devices (vlan_features)"
	whyMaster = "a master has what one of its ports has; tx-nocache-copy and tx-fcoe-segmentation, what all have"
	whyShared = "it has what the device below has on, and software segmentation always"
	whyTAP    = "the process behind the TAP has not taken it (TUNSETOFFLOAD)"
)

// kinds are as of Linux 6.18, by name.
var kinds = []Kind{
	{
		Name: "bond", About: "several ports as one", Source: "drivers/net/bonding/bond_main.c",
		FixSource: "drivers/net/bonding/bond_main.c, bond_fix_features", Why: whyMaster, Passes: true,
		// Active-backup bonds have the IPsec features on as well; the mode is not modelled.
		own: sets(masterHW.Union(tagTX).With(GSOPartial), masterHW.Union(MasterXFRM), Set{}, Set{}, Set{}),
		fix: fixMaster, changed: changeBond,
	},
	{
		Name: "bridge", About: "a switch", Source: "net/bridge/br_device.c",
		FixSource: "net/bridge/br_if.c, br_features_recompute", Why: whyMaster, Passes: true,
		own: both(bridgeOwn.Union(tagTX), bridgeOwn, Set{}), fix: fixBridge,
	},
	{Name: "dummy", About: "drops what it is sent", Source: "drivers/net/dummy.c", own: both(dummyOwn, Set{}, dummyOwn)},
	{Name: "geneve", About: "tunnel in UDP", Source: "drivers/net/geneve.c", Carries: udpCarriers, own: both(software.With(RXCSum), Set{}, Set{})},
	{Name: "gre", About: "IPv4 tunnel", Source: "net/ipv4/ip_gre.c", Carries: Of(GSOGRE, GSOGRECSum), own: both(tunnelOwn, Set{}, Set{})},
	{Name: "gretap", About: "Ethernet over IPv4 tunnel", Source: "net/ipv4/ip_gre.c", Carries: Of(GSOGRE, GSOGRECSum), own: both(tunnelOwn, Set{}, Set{})},
	{Name: "ifb", About: "shapes received traffic", Source: "drivers/net/ifb.c", own: both(ifbOwn, dummyOwn, ifbOwn)},
	{Name: "ip6gre", About: "IPv6 tunnel", Source: "net/ipv6/ip6_gre.c", Carries: Of(GSOGRE, GSOGRECSum), own: both(tunnelOwn, Set{}, Set{})},
	{Name: "ip6gretap", About: "Ethernet over IPv6 tunnel", Source: "net/ipv6/ip6_gre.c", Carries: Of(GSOGRE, GSOGRECSum), own: both(tunnelOwn, Set{}, Set{})},
	{Name: "ip6tnl", About: "IP in IPv6", Source: "net/ipv6/ip6_tunnel.c", Carries: Of(GSOIPXIP6), own: both(tunnelOwn, Set{}, Set{})},
	{Name: "ipip", About: "IP in IPv4", Source: "net/ipv4/ipip.c", Carries: Of(GSOIPXIP4), own: both(tunnelOwn, Set{}, Set{})},
	{
		Name: "ipvlan", About: "shares the address of a device", Source: "drivers/net/ipvlan/ipvlan_main.c",
		FixSource: "drivers/net/ipvlan/ipvlan_main.c, ipvlan_fix_features", Why: whyShared,
		init: initIPVLAN, fix: fixIPVLAN,
	},
	{Name: "lo", About: "loopback", Source: "drivers/net/loopback.c", own: sets(loopbackOn, GSOSoftware, Set{}, Set{}, Set{})},
	{
		Name: "macvlan", About: "one more address on a device", Source: "drivers/net/macvlan.c",
		FixSource: "drivers/net/macvlan.c, macvlan_fix_features", Why: whyShared, Passes: true,
		own: sets(Set{}, Of(LRO), Set{}, Set{}, Set{}), init: initMACVLAN, fix: fixMACVLAN,
	},
	{Name: "sit", About: "IPv6 in IPv4", Source: "net/ipv6/sit.c", Carries: Of(GSOIPXIP4), own: both(tunnelOwn, Set{}, Set{})},
	{
		Name: "team", About: "several ports as one", Source: "drivers/net/team/team_core.c",
		FixSource: "drivers/net/team/team_core.c, team_fix_features", Why: whyMaster, Passes: true,
		own: sets(masterHW.Union(tagTX).With(GRO), masterHW, Set{}, Set{}, Set{}), fix: fixMaster, changed: changeTeam,
	},
	{
		Name: "tun", About: "a program instead of a wire", Source: "drivers/net/tun.c",
		FixSource: "drivers/net/tun.c, tun_net_fix_features", Why: whyTAP, Passes: true,
		own: both(tapOwn, tapOwn.Diff(tagTX), Set{}), fix: fixTAP,
	},
	{
		Name: "veth", About: "two devices, back to back", Source: "drivers/net/veth.c", Passes: true,
		own:  sets(vethOwn, vethOwn, vethOwn.Diff(VLANFeatures), vethOwn, GSOSoftware.With(HWCSum)),
		late: Of(GRO), // veth_disable_gro
	},
	{
		Name: "vlan", About: "802.1Q or 802.1ad tags", Source: "net/8021q/vlan_dev.c",
		FixSource: "net/8021q/vlan_dev.c, vlan_dev_fix_features", Why: whyVLAN,
		own: sets(Set{}, vlanOwn, Set{}, Set{}, Set{}), init: initVLAN, fix: fixVLAN, changed: changeVLAN,
	},
	{Name: "vxlan", About: "Ethernet in UDP", Source: "drivers/net/vxlan/vxlan_core.c", Carries: udpCarriers, own: both(software.With(RXCSum), software.With(RXCSum), Set{})},
	{Name: "wireguard", About: "encrypted tunnel", Source: "drivers/net/wireguard/device.c", own: both(wgOwn, Set{}, wgOwn)},
}

// Kinds returns the kinds of virtual devices whose driver is known here.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// FindKind returns the kind of a name.
func FindKind(name string) (Kind, bool) {
	switch name { // drivers with two names
	case "macvtap":
		name = "macvlan"
	case "ipvtap":
		name = "ipvlan"
	}
	for _, k := range kinds {
		if k.Name == name && name != "" {
			return k, true
		}
	}
	return Kind{}, false
}
