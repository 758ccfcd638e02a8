package feature

import "strconv"

// The features of Linux 6.18 (include/linux/netdev_features.h). The kernel has
// no feature 2, 12 or 13; GSOUDP has no name for user space.
const (
	SG               Feature = 0
	IPCSum           Feature = 1
	HWCSum           Feature = 3
	IPv6CSum         Feature = 4
	HighDMA          Feature = 5
	FragList         Feature = 6
	HWVLANCTagTX     Feature = 7
	HWVLANCTagRX     Feature = 8
	HWVLANCTagFilter Feature = 9
	VLANChallenged   Feature = 10
	GSO              Feature = 11
	GRO              Feature = 14
	LRO              Feature = 15
	TSO              Feature = 16
	GSORobust        Feature = 17
	TSOECN           Feature = 18
	TSOMangleID      Feature = 19
	TSO6             Feature = 20
	FSO              Feature = 21
	GSOGRE           Feature = 22
	GSOGRECSum       Feature = 23
	GSOIPXIP4        Feature = 24
	GSOIPXIP6        Feature = 25
	GSOUDPTunnel     Feature = 26
	GSOUDPTunnelCSum Feature = 27
	GSOPartial       Feature = 28
	GSOTunnelRemCSum Feature = 29
	GSOSCTP          Feature = 30
	GSOESP           Feature = 31
	GSOUDP           Feature = 32
	GSOUDPL4         Feature = 33
	GSOFragList      Feature = 34
	GSOAccECN        Feature = 35
	FCoECRC          Feature = 36
	SCTPCRC          Feature = 37
	NTuple           Feature = 38
	RXHash           Feature = 39
	RXCSum           Feature = 40
	NoCacheCopy      Feature = 41
	Loopback         Feature = 42
	RXFCS            Feature = 43
	RXAll            Feature = 44
	HWVLANSTagTX     Feature = 45
	HWVLANSTagRX     Feature = 46
	HWVLANSTagFilter Feature = 47
	HWL2FWDOffload   Feature = 48
	HWTC             Feature = 49
	HWESP            Feature = 50
	HWESPTXCSum      Feature = 51
	RXUDPTunnelPort  Feature = 52
	HWTLSTX          Feature = 53
	HWTLSRX          Feature = 54
	GROHW            Feature = 55
	HWTLSRecord      Feature = 56
	GROFragList      Feature = 57
	HWMACsec         Feature = 58
	GROUDPFwd        Feature = 59
	HWHSRTagIns      Feature = 60
	HWHSRTagRM       Feature = 61
	HWHSRFwd         Feature = 62
	HWHSRDup         Feature = 63
)

// prefix of the C names.
const prefix = "NETIF_F_"

// names are the C name without NETIF_F_, the kernel's string
// (netdev_features_strings, net/ethtool/common.c) and the heading under which
// ethtool -k puts it (off_flag_def, ethtool 6.x), in the order of the bits.
var names = [...]struct{ c, kernel, group string }{
	SG:               {"SG", "tx-scatter-gather", "scatter-gather"},
	IPCSum:           {"IP_CSUM", "tx-checksum-ipv4", "tx-checksumming"},
	HWCSum:           {"HW_CSUM", "tx-checksum-ip-generic", "tx-checksumming"},
	IPv6CSum:         {"IPV6_CSUM", "tx-checksum-ipv6", "tx-checksumming"},
	HighDMA:          {"HIGHDMA", "highdma", ""},
	FragList:         {"FRAGLIST", "tx-scatter-gather-fraglist", "scatter-gather"},
	HWVLANCTagTX:     {"HW_VLAN_CTAG_TX", "tx-vlan-hw-insert", "tx-vlan-offload"},
	HWVLANCTagRX:     {"HW_VLAN_CTAG_RX", "rx-vlan-hw-parse", "rx-vlan-offload"},
	HWVLANCTagFilter: {"HW_VLAN_CTAG_FILTER", "rx-vlan-filter", ""},
	VLANChallenged:   {"VLAN_CHALLENGED", "vlan-challenged", ""},
	GSO:              {"GSO", "tx-generic-segmentation", "generic-segmentation-offload"},
	GRO:              {"GRO", "rx-gro", "generic-receive-offload"},
	LRO:              {"LRO", "rx-lro", "large-receive-offload"},
	TSO:              {"TSO", "tx-tcp-segmentation", "tcp-segmentation-offload"},
	GSORobust:        {"GSO_ROBUST", "tx-gso-robust", ""},
	TSOECN:           {"TSO_ECN", "tx-tcp-ecn-segmentation", "tcp-segmentation-offload"},
	TSOMangleID:      {"TSO_MANGLEID", "tx-tcp-mangleid-segmentation", "tcp-segmentation-offload"},
	TSO6:             {"TSO6", "tx-tcp6-segmentation", "tcp-segmentation-offload"},
	FSO:              {"FSO", "tx-fcoe-segmentation", ""},
	GSOGRE:           {"GSO_GRE", "tx-gre-segmentation", ""},
	GSOGRECSum:       {"GSO_GRE_CSUM", "tx-gre-csum-segmentation", ""},
	GSOIPXIP4:        {"GSO_IPXIP4", "tx-ipxip4-segmentation", ""},
	GSOIPXIP6:        {"GSO_IPXIP6", "tx-ipxip6-segmentation", ""},
	GSOUDPTunnel:     {"GSO_UDP_TUNNEL", "tx-udp_tnl-segmentation", ""},
	GSOUDPTunnelCSum: {"GSO_UDP_TUNNEL_CSUM", "tx-udp_tnl-csum-segmentation", ""},
	GSOPartial:       {"GSO_PARTIAL", "tx-gso-partial", ""},
	GSOTunnelRemCSum: {"GSO_TUNNEL_REMCSUM", "tx-tunnel-remcsum-segmentation", ""},
	GSOSCTP:          {"GSO_SCTP", "tx-sctp-segmentation", ""},
	GSOESP:           {"GSO_ESP", "tx-esp-segmentation", ""},
	GSOUDP:           {"GSO_UDP", "", ""},
	GSOUDPL4:         {"GSO_UDP_L4", "tx-udp-segmentation", ""},
	GSOFragList:      {"GSO_FRAGLIST", "tx-gso-list", ""},
	GSOAccECN:        {"GSO_ACCECN", "tx-tcp-accecn-segmentation", "tcp-segmentation-offload"},
	FCoECRC:          {"FCOE_CRC", "tx-checksum-fcoe-crc", "tx-checksumming"},
	SCTPCRC:          {"SCTP_CRC", "tx-checksum-sctp", "tx-checksumming"},
	NTuple:           {"NTUPLE", "rx-ntuple-filter", "ntuple-filters"},
	RXHash:           {"RXHASH", "rx-hashing", "receive-hashing"},
	RXCSum:           {"RXCSUM", "rx-checksum", "rx-checksumming"},
	NoCacheCopy:      {"NOCACHE_COPY", "tx-nocache-copy", ""},
	Loopback:         {"LOOPBACK", "loopback", ""},
	RXFCS:            {"RXFCS", "rx-fcs", ""},
	RXAll:            {"RXALL", "rx-all", ""},
	HWVLANSTagTX:     {"HW_VLAN_STAG_TX", "tx-vlan-stag-hw-insert", ""},
	HWVLANSTagRX:     {"HW_VLAN_STAG_RX", "rx-vlan-stag-hw-parse", ""},
	HWVLANSTagFilter: {"HW_VLAN_STAG_FILTER", "rx-vlan-stag-filter", ""},
	HWL2FWDOffload:   {"HW_L2FW_DOFFLOAD", "l2-fwd-offload", ""},
	HWTC:             {"HW_TC", "hw-tc-offload", ""},
	HWESP:            {"HW_ESP", "esp-hw-offload", ""},
	HWESPTXCSum:      {"HW_ESP_TX_CSUM", "esp-tx-csum-hw-offload", ""},
	RXUDPTunnelPort:  {"RX_UDP_TUNNEL_PORT", "rx-udp_tunnel-port-offload", ""},
	HWTLSTX:          {"HW_TLS_TX", "tls-hw-tx-offload", ""},
	HWTLSRX:          {"HW_TLS_RX", "tls-hw-rx-offload", ""},
	GROHW:            {"GRO_HW", "rx-gro-hw", ""},
	HWTLSRecord:      {"HW_TLS_RECORD", "tls-hw-record", ""},
	GROFragList:      {"GRO_FRAGLIST", "rx-gro-list", ""},
	HWMACsec:         {"HW_MACSEC", "macsec-hw-offload", ""},
	GROUDPFwd:        {"GRO_UDP_FWD", "rx-udp-gro-forwarding", ""},
	HWHSRTagIns:      {"HW_HSR_TAG_INS", "hsr-tag-ins-offload", ""},
	HWHSRTagRM:       {"HW_HSR_TAG_RM", "hsr-tag-rm-offload", ""},
	HWHSRFwd:         {"HW_HSR_FWD", "hsr-fwd-offload", ""},
	HWHSRDup:         {"HW_HSR_DUP", "hsr-dup-offload", ""},
}

// groups are ethtool's headings, in its order.
var groups = []string{
	"rx-checksumming", "tx-checksumming", "scatter-gather", "tcp-segmentation-offload", "generic-segmentation-offload",
	"generic-receive-offload", "large-receive-offload", "rx-vlan-offload", "tx-vlan-offload", "ntuple-filters", "receive-hashing",
}

var byKernel, byC = index()

// All is every feature of Linux 6.18.
var All = func() (s Set) {
	for _, f := range byC {
		s = s.With(f)
	}
	return s
}()

func index() (kernel, c map[string]Feature) {
	kernel, c = make(map[string]Feature, len(names)), make(map[string]Feature, len(names))
	for f, n := range names {
		if n.kernel != "" {
			kernel[n.kernel] = Feature(f)
		}
		if n.c != "" {
			c[n.c] = Feature(f)
		}
	}
	return kernel, c
}

// ByName returns the feature of the kernel's name for it, such as rx-gro.
func ByName(name string) (Feature, bool) {
	f, ok := byKernel[name]
	return f, ok
}

// String returns the kernel's name of the feature; where it has none, the C
// name or "bit" and the number.
func (f Feature) String() string { return string(f.append(nil)) }

func (f Feature) append(b []byte) []byte {
	switch {
	case int(f) >= len(names) || names[f].c == "":
		return strconv.AppendUint(append(b, "bit"...), uint64(f), 10)
	case names[f].kernel == "":
		return append(append(b, prefix...), names[f].c...)
	}
	return append(b, names[f].kernel...)
}

// C returns the C name, such as NETIF_F_GRO; where there is none, the bit.
func (f Feature) C() string {
	if int(f) >= len(names) || names[f].c == "" {
		return "__NETIF_F_BIT(" + strconv.Itoa(int(f)) + ")"
	}
	return prefix + names[f].c
}

// Group returns the heading under which ethtool -k prints the feature, "" for
// those that stand alone.
func (f Feature) Group() string {
	if int(f) >= len(names) {
		return ""
	}
	return names[f].group
}

// A Group is a heading of ethtool -k with its features; those that stand alone
// have a group without a name, each its own.
type Group struct {
	Name     string
	Features []Feature
}

// Groups returns all features that have a name in user space in the order of
// ethtool -k.
func Groups() []Group {
	list := make([]Group, len(groups), len(names))
	for i, g := range groups {
		list[i].Name = g
	}
	for f := range All.All() {
		placed := names[f].kernel == ""
		for i, g := range groups {
			if names[f].group == g {
				list[i].Features, placed = append(list[i].Features, f), true
			}
		}
		if !placed {
			list = append(list, Group{Features: []Feature{f}})
		}
	}
	return list
}
