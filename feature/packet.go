package feature

// A Packet is what decides which features may be used on it.
type Packet struct {
	Encapsulated bool // what is to be done concerns the packet inside a tunnel
	Tags         int  // VLAN tags, in the frame or beside it
	IPv4, IPv6   bool // the network protocol whose checksum is asked for; neither: another one
	Checksum     bool // the checksum is to be filled in
	Segment      bool // it is to be segmented
	Partial      bool // it was segmented partially (SKB_GSO_PARTIAL)
	MayFragment  bool // segmented IPv4 without the don't-fragment flag
	Extended     bool // IPv6 extension headers
}

// ForPacket returns the features that the stack uses on a packet that goes out
// by the device; what is missing for the packet is done in software. The size
// limits of the device and the driver's own check (ndo_features_check) are left
// out (netif_skb_features, net/core/dev.c, 6.18).
func (d Device) ForPacket(p Packet) Set {
	s := d.Sets[Features]
	if p.Segment {
		s = d.forSegments(s, p)
	}
	if p.Encapsulated {
		s = s.Intersect(d.Sets[HWEncSet])
	}
	if p.Tags > 0 {
		s = IntersectFeatures(s, d.Sets[VLANSet].Union(tagTX))
	}
	if k, _ := FindKind(d.Kind); p.Tags > 1 && !k.Passes {
		s = s.Intersect(tagTX.With(SG, HighDMA, HWCSum, FragList)) // vlan_features_check
	}
	if p.Checksum && !s.canChecksum(p) {
		s = s.Diff(CSumMask.Union(GSOMask))
	}
	return s
}

// forSegments is gso_features_check.
func (d Device) forSegments(s Set, p Packet) Set {
	if !p.Partial {
		s = s.Diff(d.Sets[PartialSet])
	}
	if p.MayFragment && p.IPv4 {
		s = s.Diff(d.Sets[MangleIDSet])
	}
	if s.Has(IPv6CSum) && p.Extended {
		s = s.Without(IPv6CSum, TSO6, GSOUDPL4)
	}
	return s
}

// canChecksum is can_checksum_protocol.
func (s Set) canChecksum(p Packet) bool {
	return s.Has(HWCSum) || p.IPv4 && s.Has(IPCSum) || p.IPv6 && s.Has(IPv6CSum)
}
