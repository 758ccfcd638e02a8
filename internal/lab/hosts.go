package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/agent/transport"
)

// Real describes hosts that are there already.
type Real struct {
	Dev      string // the device of this machine
	Peer     transport.Target
	PeerDev  string     // empty: found by route
	PeerAddr netip.Addr // invalid: found by route
}

// Hosts takes an interface of this machine and a peer.
func Hosts(ctx context.Context, o Options, r Real) (*Lab, error) {
	l := &Lab{Kind: "hosts"}
	if err := l.hosts(ctx, o, r); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) hosts(ctx context.Context, o Options, r Real) (err error) {
	if l.Device, err = l.start(ctx, o, "here", transport.Target{}); err != nil {
		return err
	}
	l.Device.Dev = r.Dev
	dev, err := l.Device.Client.Device(ctx, r.Dev)
	if err != nil {
		return err
	}
	if !dev.Up {
		return &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("%s is down: ip link set %s up", r.Dev, r.Dev)}
	}
	l.Device.IPv4, l.Device.IPv6 = pick(dev.Addresses)
	if !l.Device.IPv4.IsValid() && !l.Device.IPv6.IsValid() {
		return &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("%s has no address to send from", r.Dev)}
	}
	if l.Peer, err = l.start(ctx, o, r.Peer.String(), r.Peer); err != nil {
		return err
	}
	machine, namespace := l.Device.Info.Same(l.Peer.Info)
	if namespace {
		return &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf(
			"the peer %s is in the network namespace of this host: the traffic would not leave by %s", r.Peer, r.Dev)}
	}
	l.Shared = machine
	if err := l.findPeer(ctx, r); err != nil {
		return err
	}
	return l.pin(ctx)
}

// pick returns the first global address of each family.
func pick(prefixes []netip.Prefix) (v4, v6 netip.Addr) {
	for _, p := range prefixes {
		a := p.Addr().Unmap()
		switch {
		case a.IsLoopback() || a.IsLinkLocalUnicast():
		case a.Is4() && !v4.IsValid():
			v4 = a
		case a.Is6() && !v6.IsValid():
			v6 = a
		}
	}
	return v4, v6
}

// findPeer asks the peer which way it would send to this host, which names its
// device and its address, and checks that the way there leaves by the device
// under test.
func (l *Lab) findPeer(ctx context.Context, r Real) error {
	l.Peer.Dev = r.PeerDev
	var last error
	for _, mine := range []netip.Addr{l.Device.IPv4, l.Device.IPv6} {
		if !mine.IsValid() {
			continue
		}
		if err := l.findAddr(ctx, mine, r); err != nil {
			last = err
		}
	}
	if !l.Peer.IPv4.IsValid() && !l.Peer.IPv6.IsValid() {
		return &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("no way between %s and %s: %v (--peer-addr names the peer's address)", r.Dev, l.Peer.Name, last)}
	}
	// A family that only one end has is no use.
	if !l.Peer.IPv4.IsValid() {
		l.Device.IPv4 = netip.Addr{}
	}
	if !l.Peer.IPv6.IsValid() {
		l.Device.IPv6 = netip.Addr{}
	}
	return nil
}

func (l *Lab) findAddr(ctx context.Context, mine netip.Addr, r Real) error {
	back, err := l.Peer.Route(ctx, mine)
	if err != nil {
		return err
	}
	theirs := back.Source
	if r.PeerAddr.IsValid() {
		theirs = r.PeerAddr
	}
	if !theirs.IsValid() || theirs.Is4() != mine.Is4() {
		return fmt.Errorf("%s has no address of the family of %s", l.Peer.Name, mine)
	}
	way, err := l.Device.Route(ctx, theirs)
	if err != nil {
		return err
	}
	if way.Local || way.Device != r.Dev {
		return fmt.Errorf("the way to %s leaves by %s, not by %s", theirs, way.Device, r.Dev)
	}
	switch {
	case l.Peer.Dev == "":
		l.Peer.Dev = back.Device
	case l.Peer.Dev != back.Device && r.PeerDev == "":
		return fmt.Errorf("the ways back to %s differ: %s and %s", r.Dev, l.Peer.Dev, back.Device)
	}
	if mine.Is4() {
		l.Peer.IPv4 = theirs
	} else {
		l.Peer.IPv6 = theirs
	}
	return nil
}
