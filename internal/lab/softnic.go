package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"github.com/offlab/offlab/internal/agent/transport"
	"github.com/offlab/offlab/internal/host"
	"github.com/offlab/offlab/internal/softnic"
)

// A Card says which soft NIC a lab is built on.
type Card struct {
	Model  string
	Faults []string
	Wire   softnic.Wire
	Seed   uint64
	// Firmware leaves the aggregation of the card under test as its model has
	// it. Otherwise it is off, as on most cards, so that the host's own GRO has
	// something to merge.
	Firmware bool
	// Forward makes the host under test a router, with a further host behind
	// it, for the forwarded path.
	Forward bool
}

// A NIC is the process of a soft NIC. The device under test is its port 0.
type NIC struct {
	*host.Client
	Merge string // the feature that the card's aggregation is: lro, gro-hw or none
}

// tapQueue is how many packets wait for the card at most, the length of the ring
// of a TAP device. A TAP drops what does not fit, where a driver would stop the
// queue; a TCP window of 6 MiB in single packets fits.
const tapQueue = 8192

// peerModel is that of every card but the one under test: healthy, whatever that
// is.
const peerModel = "generic"

// A seat is a device of the lab: whose it is, and where it is in the network.
type seat struct {
	end    *End
	dev    string
	v4, v6 netip.Prefix
	routes []host.Hop
}

// The networks of the lab: the first two hosts, and beyond a router.
var (
	nearNet = [2]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}
	farNet  = [2]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:1::/64")}
)

// at returns the n-th address of a network, with its length.
func at(net [2]netip.Prefix, n int) (v4, v6 netip.Prefix) {
	var out [2]netip.Prefix
	for i, p := range net {
		b := p.Addr().AsSlice()
		b[len(b)-1] = byte(n)
		a, _ := netip.AddrFromSlice(b)
		out[i] = netip.PrefixFrom(a, p.Bits())
	}
	return out[0], out[1]
}

// via is the way to a network by a neighbour.
func via(net [2]netip.Prefix, v4, v6 netip.Prefix) []host.Hop {
	return []host.Hop{{To: net[0], Via: v4.Addr()}, {To: net[1], Via: v6.Addr()}}
}

// Softnic makes two namespaces, or three, joined by cards in user space, which
// run in a process of their own.
func Softnic(ctx context.Context, o Options, c Card) (*Lab, error) {
	l := &Lab{Kind: "softnic", Shared: true}
	if err := l.softnic(ctx, o, c); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) softnic(ctx context.Context, o Options, c Card) (err error) {
	own := transport.Target{Net: true}
	if l.Device, err = l.start(ctx, o, map[bool]string{false: "host a", true: "router"}[c.Forward], own); err != nil {
		return err
	}
	if l.Peer, err = l.start(ctx, o, "host b", own); err != nil {
		return err
	}
	if c.Forward {
		if l.Sink, err = l.start(ctx, o, "host c", own); err != nil {
			return err
		}
	}
	card, err := l.start(ctx, o, "soft NIC", own)
	if err != nil {
		return err
	}
	if err := l.pin(ctx); err != nil {
		return err
	}
	seats := l.seats(c)
	info, err := card.StartNIC(ctx, cards(c, seats))
	if err != nil {
		return fmt.Errorf("soft NIC: %w", err)
	}
	l.NIC = &NIC{card.Client, info.Merges[0]}
	for i, s := range seats {
		if err := l.setup(ctx, s, c.Forward && i%2 == 0); err != nil {
			return err
		}
	}
	l.describeCard(c, info.Merges[0])
	return nil
}

// seats places the devices. Those of an even place and the next are joined.
func (l *Lab) seats(c Card) []seat {
	dev4, dev6 := at(nearNet, 1)
	peer4, peer6 := at(nearNet, 2)
	seats := []seat{{end: l.Device, dev: "p0", v4: dev4, v6: dev6}, {end: l.Peer, dev: "p1", v4: peer4, v6: peer6}}
	if c.Forward {
		out4, out6 := at(farNet, 1)
		sink4, sink6 := at(farNet, 2)
		seats[1].routes = via(farNet, dev4, dev6)
		seats = append(seats,
			seat{end: l.Device, dev: "p2", v4: out4, v6: out6},
			seat{end: l.Sink, dev: "p3", v4: sink4, v6: sink6, routes: via(nearNet, out4, out6)})
	}
	for _, s := range seats {
		if s.end.Dev == "" {
			s.end.Dev, s.end.IPv4, s.end.IPv6 = s.dev, s.v4.Addr(), s.v6.Addr()
		}
	}
	return seats
}

// cards describes the soft NIC: the card under test first, healthy ones behind
// it.
func cards(c Card, seats []seat) host.NICSetup {
	setup := host.NICSetup{Wire: c.Wire, Seed: c.Seed}
	for i, s := range seats {
		card := host.NICCard{Model: peerModel, Device: s.dev, PID: s.end.stream.Pid(), MTU: vethMTU}
		if i == 0 {
			card.Model, card.Faults, card.Merge = c.Model, c.Faults, c.Firmware
		}
		setup.Cards = append(setup.Cards, card)
	}
	return setup
}

// forwarding are the settings of a router. They come first: the kernel turns LRO
// off on what forwards.
var forwarding = map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}

func (l *Lab) setup(ctx context.Context, s seat, router bool) error {
	sysctls := maps.Clone(pinnedSysctls)
	if router {
		maps.Copy(sysctls, forwarding)
	}
	maps.Copy(s.end.Pinned, sysctls)
	maps.Copy(s.end.Pinned, map[string]string{"mtu": strconv.Itoa(vethMTU), gro: "on", "txqueuelen": strconv.Itoa(tapQueue)})
	return l.configure(ctx, s.end, host.Setup{
		Device: s.dev, MTU: vethMTU, TXQueue: tapQueue, Features: map[string]bool{gro: true},
		Sysctls: sysctls, Addresses: []netip.Prefix{s.v4, s.v6}, Routes: s.routes,
	})
}

func (l *Lab) describeCard(c Card, merge string) {
	faults := ""
	if len(c.Faults) > 0 {
		faults = " with fault " + strings.Join(c.Faults, ", ")
	}
	l.Notes = append(l.Notes, fmt.Sprintf("soft NIC in user space: model %s%s, far end %s", c.Model, faults, peerModel))
	if merge != "" && !c.Firmware {
		l.Notes = append(l.Notes, merge+" of the card is off, as on most cards: the host's GRO merges")
	}
	if c.Forward {
		l.Notes = append(l.Notes, "path forwarded: from host b through the router under test to host c; tx is the other way")
	}
}
