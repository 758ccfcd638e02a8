package rtnl

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddAddress gives a device an address. IPv6 addresses skip duplicate address
// detection, which would keep them unusable for a second.
func (h *Handle) AddAddress(dev string, p netip.Prefix) error {
	const op = "add address"
	l, err := h.find(dev)
	if err != nil {
		return fail(op, dev, err)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return fail(op, dev, h.nl.AddrAdd(l, a))
}

// Addresses returns the addresses of a device, IPv4 first.
func (h *Handle) Addresses(dev string) ([]netip.Prefix, error) {
	const op = "list addresses"
	l, err := h.find(dev)
	if err != nil {
		return nil, fail(op, dev, err)
	}
	var all []netip.Prefix
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := h.nl.AddrList(l, family)
		if err != nil {
			return nil, fail(op, dev, err)
		}
		for _, a := range list {
			bits, _ := a.Mask.Size()
			all = append(all, netip.PrefixFrom(address(a.IP), bits))
		}
	}
	return all, nil
}

// AddRoute adds the way to a network by a neighbour.
func (h *Handle) AddRoute(to netip.Prefix, via netip.Addr) error {
	dst := &net.IPNet{IP: to.Masked().Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen())}
	return fail("add route", to.String(), h.nl.RouteAdd(&netlink.Route{Dst: dst, Gw: via.AsSlice()}))
}

// A Route is the way to an address.
type Route struct {
	Device  string     `json:"device"`
	Source  netip.Addr `json:"source"`  // the address that packets carry; invalid where the kernel names none
	Gateway netip.Addr `json:"gateway"` // invalid for a neighbour
	Local   bool       `json:"local,omitempty"`
}

// Route asks the kernel which way it would send to an address.
func (h *Handle) Route(to netip.Addr) (Route, error) {
	const op = "find route"
	list, err := h.nl.RouteGet(to.Unmap().AsSlice())
	if err == nil && len(list) == 0 {
		err = ErrNoRoute
	}
	if err != nil {
		return Route{}, fail(op, to.String(), err)
	}
	r := list[0]
	dev, err := h.LinkByIndex(r.LinkIndex)
	if err != nil {
		return Route{}, fail(op, to.String(), err)
	}
	return Route{Device: dev.Name, Source: address(r.Src), Gateway: address(r.Gw), Local: r.Type == unix.RTN_LOCAL}, nil
}

func address(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
