package lab

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/offlab/offlab/internal/agent/transport"
	"github.com/offlab/offlab/internal/host"
)

// Addresses of the built-in lab: documentation ranges (RFC 5737, RFC 3849).
var (
	vethNames = [2]string{"v0", "v1"}
	vethIPv4  = [2]netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("192.0.2.2/24")}
	vethIPv6  = [2]netip.Prefix{netip.MustParsePrefix("2001:db8::1/64"), netip.MustParsePrefix("2001:db8::2/64")}
)

const vethMTU = 1500

// pinned are the features that both ends of a study have on: those of a usual
// network card.
var pinned = []string{
	"tx-generic-segmentation", "tx-scatter-gather", "tx-tcp-segmentation", "tx-tcp6-segmentation",
	"tx-checksum-ip-generic", "rx-checksum",
}

// gro is on at the device under test, as on any card; a fresh veth has it off
// (drivers/net/veth.c, Linux 5.13 and later). The peer keeps it off: a veth with
// GRO takes TSO's super-packets past NAPI and single packets through it
// (veth_skb_is_eligible_for_gro), so that they overtake each other and TCP
// retransmits for nothing.
const gro = "rx-gro"

// uncut are off at a peer that stands in for a wire.
var uncut = []string{"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation"}

// pinnedSysctls keep one slot from teaching the next: no metrics cached for a
// destination, and no wait for duplicate addresses.
var pinnedSysctls = map[string]string{
	"net.ipv4.tcp_no_metrics_save":           "1",
	"net.ipv6.conf.all.accept_dad":           "0",
	"net.ipv6.conf.all.router_solicitations": "0",
}

// Veth makes two namespaces joined by a veth pair. Wire says that the device
// under test receives in some cell: then the peer stands in for a wire.
func Veth(ctx context.Context, o Options, wire bool) (*Lab, error) {
	l := &Lab{Kind: "veth", Shared: true}
	if err := l.veth(ctx, o, wire); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) veth(ctx context.Context, o Options, wire bool) (err error) {
	if l.Device, err = l.start(ctx, o, "host a", transport.Target{Net: true}); err != nil {
		return err
	}
	if l.Peer, err = l.start(ctx, o, "host b", transport.Target{Net: true}); err != nil {
		return err
	}
	if err := l.pin(ctx); err != nil {
		return err
	}
	// The carrier's process is the agent itself. Its number as seen here is the
	// one the kernel wants.
	if err := l.Device.AddVeth(ctx, host.Veth{Name: vethNames[0], Peer: vethNames[1], PeerPID: l.Peer.stream.Pid()}); err != nil {
		return err
	}
	for i, e := range []*End{l.Device, l.Peer} {
		e.Dev, e.IPv4, e.IPv6 = vethNames[i], vethIPv4[i].Addr(), vethIPv6[i].Addr()
		if err := l.pinVeth(ctx, e, i, wire && i == 1); err != nil {
			return err
		}
	}
	l.Notes = append(l.Notes, "GRO of the peer is off: on a veth it would reorder packets")
	if wire {
		l.Notes = append(l.Notes, "the peer stands in for a wire: its TSO and GSO are off (--raw: on)")
	}
	return nil
}

func (l *Lab) pinVeth(ctx context.Context, e *End, i int, wire bool) error {
	features := map[string]bool{gro: i == 0}
	for _, name := range pinned {
		features[name] = !wire || !slices.Contains(uncut, name)
	}
	for name, on := range features {
		e.Pinned[name] = map[bool]string{true: "on", false: "off"}[on]
	}
	maps.Copy(e.Pinned, pinnedSysctls)
	e.Pinned["mtu"] = strconv.Itoa(vethMTU)
	return l.configure(ctx, e, host.Setup{
		Device: e.Dev, MTU: vethMTU, Features: features, Sysctls: pinnedSysctls,
		Addresses: []netip.Prefix{vethIPv4[i], vethIPv6[i]},
	})
}
