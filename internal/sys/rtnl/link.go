package rtnl

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Handle makes and reads the links of one network namespace. It may be used
// by several goroutines at once.
type Handle struct{ nl *netlink.Handle }

// Open opens a handle in the network namespace of the calling thread.
func Open() (*Handle, error) {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fail("open netlink", "", err)
	}
	return &Handle{nl}, nil
}

// Close releases the socket.
func (h *Handle) Close() error {
	h.nl.Close()
	return nil
}

// A Carrier is whether a link has its other end: three answers.
type Carrier string

// The answers. A device that is down cannot tell.
const (
	CarrierUnknown Carrier = "unknown"
	CarrierOn      Carrier = "on"
	CarrierOff     Carrier = "off"
)

// A Link is a network device.
type Link struct {
	Index   int            `json:"index"`
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`                       // "veth", "vlan", "tun" …; "device" for hardware and lo
	MAC     string         `json:"mac,omitempty"`              // in use
	PermMAC string         `json:"perm_mac,omitempty"`         // of the hardware; virtual devices have none
	Parent  int            `json:"parent,omitempty"`           // index of the device below a VLAN, of the peer of a veth
	Master  int            `json:"master,omitempty"`           // index of the bridge or bond it belongs to
	Up      bool           `json:"up"`                         // set up by the administrator
	Oper    string         `json:"operstate"`                  // RFC 2863, such as "up", "down", "lower-layer-down", "unknown"
	Carrier Carrier        `json:"carrier"`                    // whether there is another end
	Values  map[string]int `json:"values"`                     // by the names of [ValueNames]
	TSOMax  int            `json:"tso_max,omitempty"`          // the driver's limit of gso_max_size; 0: unknown
	Queues  [2]int         `json:"queues"`                     // transmit, receive
	PeerNS  bool           `json:"parent_elsewhere,omitempty"` // the parent is in another namespace
	Tunnel  *Tunnel        `json:"tunnel,omitempty"`           // nil for a device that encapsulates nothing
}

// MTU returns the largest packet of the link.
func (l Link) MTU() int { return l.Values["mtu"] }

// A value is a number of a link that can be set.
type value struct {
	name string
	get  func(*netlink.LinkAttrs) int
	set  func(*netlink.Handle, netlink.Link, int) error
	zero bool // 0 is a value, not the sign of a kernel without it
}

// values are in the order in which to write several of them: the MTU first,
// since a driver may choose limits by it, and the plain limits before those of
// IPv4, which a plain limit up to 65536 overwrites (netif_set_gso_max_size,
// net/core/dev.h).
var values = []value{
	{"mtu", func(a *netlink.LinkAttrs) int { return a.MTU }, (*netlink.Handle).LinkSetMTU, false},
	{"txqueuelen", func(a *netlink.LinkAttrs) int { return a.TxQLen }, (*netlink.Handle).LinkSetTxQLen, true},
	{"gso_max_size", func(a *netlink.LinkAttrs) int { return int(a.GSOMaxSize) }, (*netlink.Handle).LinkSetGSOMaxSize, false},
	{"gso_max_segs", func(a *netlink.LinkAttrs) int { return int(a.GSOMaxSegs) }, (*netlink.Handle).LinkSetGSOMaxSegs, false},
	{"gro_max_size", func(a *netlink.LinkAttrs) int { return int(a.GROMaxSize) }, (*netlink.Handle).LinkSetGROMaxSize, false},
	{"gso_ipv4_max_size", func(a *netlink.LinkAttrs) int { return int(a.GSOIPv4MaxSize) }, (*netlink.Handle).LinkSetGSOIPv4MaxSize, false},
	{"gro_ipv4_max_size", func(a *netlink.LinkAttrs) int { return int(a.GROIPv4MaxSize) }, (*netlink.Handle).LinkSetGROIPv4MaxSize, false},
}

// ValueNames returns the names of the numbers of a link, in the order in which
// to write several of them.
func ValueNames() []string {
	var names []string
	for _, v := range values {
		names = append(names, v.name)
	}
	return names
}

// Link returns the device of a name.
func (h *Handle) Link(dev string) (Link, error) {
	l, err := h.find(dev)
	if err != nil {
		return Link{}, fail("find", dev, err)
	}
	return plain(l), nil
}

// LinkByIndex returns the device of an index, which survives a renaming.
func (h *Handle) LinkByIndex(index int) (Link, error) {
	l, err := h.nl.LinkByIndex(index)
	if err != nil {
		return Link{}, fail("find", fmt.Sprintf("index %d", index), err)
	}
	return plain(l), nil
}

// Links returns all devices by index.
func (h *Handle) Links() ([]Link, error) {
	const tries = 5 // a dump that a change interrupts is incomplete
	for i := 1; ; i++ {
		list, err := h.nl.LinkList()
		if errors.Is(err, netlink.ErrDumpInterrupted) && i < tries {
			continue
		}
		if err != nil {
			return nil, fail("list", "", err)
		}
		links := make([]Link, 0, len(list))
		for _, l := range list {
			links = append(links, plain(l))
		}
		slices.SortFunc(links, func(a, b Link) int { return a.Index - b.Index })
		return links, nil
	}
}

// Set changes a number of a device, by the names of [ValueNames].
func (h *Handle) Set(dev, name string, n int) error {
	op := "set " + name
	i := slices.IndexFunc(values, func(v value) bool { return v.name == name })
	if i < 0 {
		return fail(op, dev, ErrUnsupported)
	}
	if n < 0 || int64(n) > math.MaxUint32 { // the attributes are unsigned and 32 bits wide
		return fail(op, dev, unix.ERANGE)
	}
	l, err := h.find(dev)
	if err != nil {
		return fail(op, dev, err)
	}
	return fail(op, dev, values[i].set(h.nl, l, n))
}

// SetUp sets a device up or down.
func (h *Handle) SetUp(dev string, up bool) error {
	op, change := "set down", h.nl.LinkSetDown
	if up {
		op, change = "set up", h.nl.LinkSetUp
	}
	l, err := h.find(dev)
	if err == nil {
		err = change(l)
	}
	return fail(op, dev, err)
}

// AddVeth makes a pair of connected devices, the second in the namespace of a
// process, or in the same one where pid is 0.
func (h *Handle) AddVeth(dev, peer string, pid int) error {
	l := netlink.NewVeth(netlink.NewLinkAttrs())
	l.Name, l.PeerName = dev, peer
	if pid != 0 {
		l.PeerNamespace = netlink.NsPid(pid)
	}
	return fail("make veth", dev, h.nl.LinkAdd(l))
}

// Move puts a device into the network namespace of a process, where it is down
// and has no addresses. A TAP goes on working for whoever holds its queues.
func (h *Handle) Move(dev string, pid int) error {
	op := fmt.Sprintf("move to the namespace of process %d", pid)
	l, err := h.find(dev)
	if err == nil {
		err = h.nl.LinkSetNsPid(l, pid)
	}
	return fail(op, dev, err)
}

// Delete removes a device. The other end of a veth goes with it.
func (h *Handle) Delete(dev string) error {
	l, err := h.find(dev)
	if err == nil {
		err = h.nl.LinkDel(l)
	}
	return fail("delete", dev, err)
}

func (h *Handle) find(dev string) (netlink.Link, error) {
	if dev == "" || len(dev) >= unix.IFNAMSIZ {
		return nil, unix.ENODEV
	}
	return h.nl.LinkByName(dev)
}

// plain takes what we need from the library's form of a link.
func plain(l netlink.Link) Link {
	a := l.Attrs()
	link := Link{
		Index: a.Index, Name: a.Name, Kind: l.Type(),
		MAC: a.HardwareAddr.String(), PermMAC: a.PermHWAddr.String(),
		Parent: a.ParentIndex, Master: a.MasterIndex, PeerNS: a.NetNsID >= 0 && a.ParentIndex != 0,
		Up: a.RawFlags&unix.IFF_UP != 0, Oper: a.OperState.String(),
		Carrier: carrier(a.RawFlags), Values: map[string]int{},
		TSOMax: int(a.TSOMaxSize), Queues: [2]int{a.NumTxQueues, a.NumRxQueues},
		Tunnel: tunnelOf(l),
	}
	if link.Kind == "tuntap" { // the library's word; the kernel's is tun
		link.Kind = "tun"
	}
	for _, v := range values {
		if n := v.get(a); n > 0 || n == 0 && v.zero {
			link.Values[v.name] = n
		}
	}
	return link
}

// carrier reads IFF_LOWER_UP, which the kernel fills in only while the device
// is running (dev_get_flags, net/core/dev.c).
func carrier(flags uint32) Carrier {
	switch {
	case flags&unix.IFF_UP == 0:
		return CarrierUnknown
	case flags&unix.IFF_LOWER_UP != 0:
		return CarrierOn
	}
	return CarrierOff
}
