package rtnl

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// A Tunnel is where the packets of a tunnel device go.
type Tunnel struct {
	Device int        `json:"device,omitempty"` // index of the device that it is bound to; 0: the route decides
	Remote netip.Addr `json:"remote,omitzero"`  // the other end, or the group; invalid: each packet has its own
	Group  bool       `json:"group,omitempty"`  // the other end is a multicast group
}

// tunnelOf returns the tunnel of a link, nil for other devices.
func tunnelOf(l netlink.Link) *Tunnel {
	to := func(device int, remote net.IP) *Tunnel {
		a := address(remote)
		if a.IsUnspecified() {
			a = netip.Addr{}
		}
		return &Tunnel{Device: device, Remote: a, Group: a.IsMulticast()}
	}
	switch t := l.(type) {
	case *netlink.Vxlan:
		return to(t.VtepDevIndex, t.Group)
	case *netlink.Geneve:
		return to(0, t.Remote)
	case *netlink.Gretap:
		return to(int(t.Link), t.Remote)
	case *netlink.Gretun:
		return to(int(t.Link), t.Remote)
	case *netlink.Iptun:
		return to(int(t.Link), t.Remote)
	case *netlink.Ip6tnl:
		return to(int(t.Link), t.Remote)
	case *netlink.Sittun:
		return to(int(t.Link), t.Remote)
	}
	return nil
}
