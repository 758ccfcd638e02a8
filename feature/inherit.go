package feature

// IntersectFeatures returns what two devices have in common, where
// checksumming of all protocols counts as checksumming of IPv4 and IPv6
// (netdev_intersect_features, include/linux/netdevice.h, 6.18).
func IntersectFeatures(a, b Set) Set {
	switch {
	case a.Has(HWCSum) && !b.Has(HWCSum):
		a = a.Union(IPCSums)
	case b.Has(HWCSum) && !a.Has(HWCSum):
		b = b.Union(IPCSums)
	}
	return a.Intersect(b)
}

// Increment returns the features of a stacked device that has all so far, after
// a device with features one was put below it, and never what is outside mask
// (netdev_increment_features, net/core/dev.c, 6.18).
func Increment(all, one, mask Set) Set {
	if mask.Has(HWCSum) {
		mask = mask.Union(CSumMask)
	}
	mask = mask.With(VLANChallenged)
	all = all.Union(one.Intersect(OneForAll.Union(CSumMask)).Intersect(mask))
	all = all.Diff(AllForAll.Diff(one))
	if all.Has(HWCSum) {
		all = all.Diff(IPCSums)
	}
	return all
}

// AddTSO gives a stacked device TCP segmentation within mask, since segmenting
// just before the last device is worth it even in software
// (netdev_add_tso_features, include/linux/netdevice.h, 6.18).
func AddTSO(s, mask Set) Set { return Increment(s, AllTSO.Union(AllForAll), mask) }

// Base is what a stacked device starts from before the devices below are added
// (netdev_base_features, include/linux/netdev_features.h, 6.18.44).
func Base(s Set) Set { return s.Diff(OneForAll).Union(AllForAll) }

// VLANTunnel returns what a VLAN device hands to the tunnels on top of it
// (vlan_tnl_features, net/8021q/vlan.h, 6.18).
func VLANTunnel(hwEnc Set) Set {
	s := hwEnc.Intersect(CSumMask.Union(GSOSoftware).Union(GSOEncapAll))
	if !s.Meets(GSOEncapAll) || !s.Meets(CSumMask) {
		return Set{}
	}
	return s.Diff(CSumMask).With(HWCSum)
}

// fixVLAN is vlan_dev_fix_features (net/8021q/vlan_dev.c, 6.18): what the
// device below has on and offers to VLAN devices, receive checksumming always;
// software segmentation and the soft features stay as wanted.
func fixVLAN(_ *Device, want Set, below []*Device) Set {
	if len(below) == 0 {
		return want
	}
	real := below[0]
	lower := IntersectFeatures(real.Sets[VLANSet].With(RXCSum), real.Sets[Features])
	if lower.Meets(IPCSums) {
		lower = lower.With(HWCSum)
	}
	return IntersectFeatures(want, lower).Union(want.Intersect(SoftFeatures.Union(GSOSoftware)))
}

// initVLAN is what vlan_dev_init (net/8021q/vlan_dev.c, 6.18) takes from below.
func initVLAN(d *Device, below []*Device) {
	if len(below) == 0 {
		return
	}
	real := below[0]
	if real.Sets[VLANSet].Has(HWMACsec) {
		d.Sets[HWFeatures] = d.Sets[HWFeatures].With(HWMACsec)
	}
	d.Sets[Features] = d.Sets[Features].Union(d.Sets[HWFeatures])
	d.Sets[VLANSet] = real.Sets[VLANSet].Without(FCoECRC, FSO)
	d.Sets[MPLSSet] = real.Sets[MPLSSet]
	changeVLAN(d, below)
}

// changeVLAN is vlan_transfer_features (net/8021q/vlan.c, 6.18).
func changeVLAN(d *Device, below []*Device) {
	if len(below) > 0 {
		d.Sets[HWEncSet] = VLANTunnel(below[0].Sets[HWEncSet])
	}
}

// fixMaster is bond_fix_features and team_fix_features (drivers/net/bonding/
// bond_main.c, drivers/net/team/team_core.c, 6.18).
func fixMaster(_ *Device, want Set, below []*Device) Set {
	s := Base(want)
	for _, port := range below {
		s = Increment(s, port.Sets[Features], want)
	}
	return AddTSO(s, want)
}

// changeBond is netdev_compute_master_upper_features (net/core/dev.c, 6.18.44),
// before that bond_compute_features.
func changeBond(d *Device, below []*Device) {
	vlan, enc, xfrm, mpls, partial := Base(MasterVLAN), Base(MasterEnc), MasterXFRM, Base(MasterMPLS), Of(GSOESP)
	for _, port := range below {
		vlan = Increment(vlan, port.Sets[VLANSet], MasterVLAN)
		enc = Increment(enc, port.Sets[HWEncSet], MasterEnc)
		xfrm = Increment(xfrm, port.Sets[HWEncSet], MasterXFRM)
		mpls = Increment(mpls, port.Sets[MPLSSet], MasterMPLS)
		partial = Increment(partial, port.Sets[PartialSet], Of(GSOESP))
	}
	d.Sets[VLANSet], d.Sets[MPLSSet], d.Sets[PartialSet] = vlan, mpls, partial
	d.Sets[HWEncSet] = enc.Union(xfrm).Union(GSOEncapAll).With(HWVLANCTagTX, HWVLANSTagTX)
}

// teamEnc is TEAM_ENC_FEATURES (drivers/net/team/team_core.c, 6.18).
var teamEnc = MasterEnc.Without(GSOPartial)

// changeTeam is __team_compute_features (drivers/net/team/team_core.c, 6.18).
func changeTeam(d *Device, below []*Device) {
	vlan, enc := MasterVLAN, teamEnc
	if len(below) > 0 {
		vlan, enc = Base(vlan), Base(enc)
	}
	for _, port := range below {
		vlan = Increment(vlan, port.Sets[VLANSet], MasterVLAN)
		enc = Increment(enc, port.Sets[HWEncSet], teamEnc)
	}
	d.Sets[VLANSet] = vlan
	d.Sets[HWEncSet] = enc.Union(GSOEncapAll).With(HWVLANCTagTX, HWVLANSTagTX)
}

// fixBridge is br_features_recompute (net/bridge/br_if.c, 6.18).
func fixBridge(_ *Device, want Set, below []*Device) Set {
	if len(below) == 0 {
		return want
	}
	s := want.Diff(OneForAll)
	for _, port := range below {
		s = Increment(s, port.Sets[Features], want)
	}
	return AddTSO(s, want)
}

// What macvlan and ipvlan take from below, and what they have whatever is
// below (drivers/net/macvlan.c, drivers/net/ipvlan/ipvlan_main.c, 6.18).
var (
	macvlanFeatures = Of(SG, HWCSum, HighDMA, FragList, GSO, TSO, LRO, TSOECN, TSO6, GRO, RXCSum, HWVLANCTagFilter, HWVLANSTagFilter)
	macvlanAlways   = GSOSoftware.Union(GSOEncapAll).With(SG, HWCSum, GSORobust)
	ipvlanFeatures  = AllTSO.With(SG, HWCSum, HighDMA, FragList, GSO, GSORobust, GRO, RXCSum, HWVLANCTagFilter, HWVLANSTagFilter)
	ipvlanAlways    = macvlanAlways.With(VLANChallenged)
)

func initMACVLAN(d *Device, below []*Device) {
	initShared(d, below, macvlanFeatures, macvlanAlways)
}
func initIPVLAN(d *Device, below []*Device) { initShared(d, below, ipvlanFeatures, ipvlanAlways) }

func initShared(d *Device, below []*Device, takes, always Set) {
	if len(below) == 0 {
		return
	}
	d.Sets[Features] = below[0].Sets[Features].Intersect(takes).Union(always)
	d.Sets[VLANSet] = below[0].Sets[VLANSet].Intersect(takes).Union(macvlanAlways)
	d.Sets[HWEncSet] = d.Sets[HWEncSet].Union(d.Sets[Features])
}

// fixMACVLAN is macvlan_fix_features: large receive only if wanted here too.
func fixMACVLAN(_ *Device, want Set, below []*Device) Set {
	if len(below) == 0 {
		return want
	}
	want = want.Union(AllForAll)
	lower := below[0].Sets[Features].Diff(UpperDisables.Diff(want))
	return Increment(lower, want, want).Union(macvlanAlways).Intersect(macvlanAlways.Union(macvlanFeatures))
}

// fixIPVLAN is ipvlan_fix_features.
func fixIPVLAN(_ *Device, want Set, below []*Device) Set {
	if len(below) == 0 {
		return want
	}
	want = want.Union(AllForAll)
	s := Increment(below[0].Sets[Features], want, want)
	return s.Union(ipvlanAlways).Intersect(ipvlanAlways.Union(ipvlanFeatures))
}

// tapUser are the features that the process behind a TAP must have taken
// (TUN_USER_FEATURES, drivers/net/tun.c, 6.18).
var tapUser = Of(HWCSum, TSOECN, TSO, TSO6, GSOUDPL4, GSOUDPTunnel, GSOUDPTunnelCSum)

// fixTAP is tun_net_fix_features.
func fixTAP(d *Device, want Set, _ []*Device) Set {
	return want.Diff(tapUser.Diff(d.Accepts))
}
