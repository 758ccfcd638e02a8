package knob

import (
	"slices"

	"github.com/offlab/offlab/internal/catalog"
)

// A Direction says which way data must flow for a knob to matter, as the
// device sees it.
type Direction string

// The directions.
const (
	TX   Direction = "tx"
	RX   Direction = "rx"
	Both Direction = "both"
)

// join is the direction of knobs that are turned together.
func (d Direction) join(o Direction) Direction {
	if d == "" || d == o {
		return o
	}
	return Both
}

// A Toggle is a short name for features of the kernel.
type Toggle struct {
	Short, Long string // names that ethtool -K takes; Long may be empty
	Text        string // what it does, in a few words
	Feature     string // the kernel's name, or a pattern for several
	Direction   Direction
}

// Name returns the short name.
func (t Toggle) Name() string { return t.Short }

// About says what the features do.
func (t Toggle) About() string { return t.Text }

// Toggles returns the short names. Where ethtool(8) has the name, the features
// are those that ethtool -K changes for it, patterns included
// (off_flag_def in ethtool's common.c, 6.1); the kernel's later additions to
// a family, such as tx-tcp-accecn-segmentation, fall under its pattern.
func Toggles() catalog.Catalog[Toggle] {
	return catalog.New("toggle",
		Toggle{"fraglist", "", "merge received segments into a list, uncopied", "rx-gro-list", RX},
		Toggle{"gro", "generic-receive-offload", "merge received segments in software", "rx-gro", RX},
		Toggle{"gro-hw", "", "merge received segments in the NIC, reversibly", "rx-gro-hw", RX},
		Toggle{"gro-udp-fwd", "", "merge UDP datagrams that are forwarded", "rx-udp-gro-forwarding", RX},
		Toggle{"gso", "generic-segmentation-offload", "segment in software, just before the driver", "tx-generic-segmentation", TX},
		Toggle{"hw-tc", "", "run traffic control rules in the NIC", "hw-tc-offload", Both},
		Toggle{"lro", "large-receive-offload", "merge received segments in the NIC or driver", "rx-lro", RX},
		Toggle{"ntuple", "ntuple-filters", "steer received flows by filters", "rx-ntuple-filter", RX},
		Toggle{"rx", "rx-checksumming", "verify checksums on receive", "rx-checksum", RX},
		Toggle{"rxhash", "receive-hashing", "hash received flows in the NIC", "rx-hashing", RX},
		Toggle{"rxvlan", "rx-vlan-offload", "take the VLAN tag off received frames", "rx-vlan-hw-parse", RX},
		Toggle{"sg", "scatter-gather", "send frames that lie in pieces", "tx-scatter-gather*", TX},
		Toggle{"tso", "tcp-segmentation-offload", "segment TCP in the NIC", "tx-tcp*-segmentation", TX},
		Toggle{"tx", "tx-checksumming", "fill in checksums on transmit", "tx-checksum-*", TX},
		Toggle{"txvlan", "tx-vlan-offload", "put the VLAN tag on sent frames", "tx-vlan-hw-insert", TX},
		Toggle{"ufo", "udp-fragmentation-offload", "fragment UDP in the NIC; gone since Linux 4.14", "tx-udp-fragmentation", TX},
		Toggle{"uso", "", "segment UDP in the NIC", "tx-udp-segmentation", TX},
	)
}

// findToggle returns the toggle of a short or long name.
func findToggle(name string) (Toggle, bool) {
	all := Toggles().All()
	i := slices.IndexFunc(all, func(t Toggle) bool { return t.Short == name || t.Long == name && name != "" })
	if i < 0 {
		return Toggle{}, false
	}
	return all[i], true
}

// kernelFeatures are the names that Linux 6.18 gives features
// (netdev_features_strings, net/ethtool/common.c), so that a factor can be
// understood away from the device. A device's own names are accepted as well.
var kernelFeatures = []string{
	"esp-hw-offload", "esp-tx-csum-hw-offload", "highdma", "hsr-dup-offload", "hsr-fwd-offload", "hsr-tag-ins-offload",
	"hsr-tag-rm-offload", "hw-tc-offload", "l2-fwd-offload", "loopback", "macsec-hw-offload", "rx-all", "rx-checksum", "rx-fcs",
	"rx-gro", "rx-gro-hw", "rx-gro-list", "rx-hashing", "rx-lro", "rx-ntuple-filter", "rx-udp-gro-forwarding",
	"rx-udp_tunnel-port-offload", "rx-vlan-filter", "rx-vlan-hw-parse", "rx-vlan-stag-filter", "rx-vlan-stag-hw-parse",
	"tls-hw-record", "tls-hw-rx-offload", "tls-hw-tx-offload", "tx-checksum-fcoe-crc", "tx-checksum-ip-generic",
	"tx-checksum-ipv4", "tx-checksum-ipv6", "tx-checksum-sctp", "tx-esp-segmentation", "tx-fcoe-segmentation",
	"tx-generic-segmentation", "tx-gre-csum-segmentation", "tx-gre-segmentation", "tx-gso-list", "tx-gso-partial",
	"tx-gso-robust", "tx-ipxip4-segmentation", "tx-ipxip6-segmentation", "tx-nocache-copy", "tx-scatter-gather",
	"tx-scatter-gather-fraglist", "tx-sctp-segmentation", "tx-tcp-accecn-segmentation", "tx-tcp-ecn-segmentation",
	"tx-tcp-mangleid-segmentation", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tunnel-remcsum-segmentation",
	"tx-udp-segmentation", "tx-udp_tnl-csum-segmentation", "tx-udp_tnl-segmentation", "tx-vlan-hw-insert",
	"tx-vlan-stag-hw-insert", "vlan-challenged",
}
