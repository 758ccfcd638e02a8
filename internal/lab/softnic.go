package lab

import (
	"context"
	"errors"
	"fmt"
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
}

// A NIC is the process of a soft NIC. The device under test is its port 0.
type NIC struct {
	*host.Client
	Merge string // the feature that the card's aggregation is: lro, gro-hw or none
}

// softNames are the devices of the two hosts.
var softNames = [2]string{"p0", "p1"}

// tapQueue is how many packets wait for the card at most, the length of the ring
// of a TAP device. A TAP drops what does not fit, where a driver would stop the
// queue; a TCP window of 6 MiB in single packets fits.
const tapQueue = 8192

// peerModel is the card at the far end: healthy, whatever the one under test
// is.
const peerModel = "generic"

// Softnic makes two namespaces joined by a card in user space, which runs in a
// process of its own.
func Softnic(ctx context.Context, o Options, c Card) (*Lab, error) {
	l := &Lab{Kind: "softnic", Shared: true}
	if err := l.softnic(ctx, o, c); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) softnic(ctx context.Context, o Options, c Card) (err error) {
	if l.Device, err = l.start(ctx, o, "host a", transport.Target{Net: true}); err != nil {
		return err
	}
	if l.Peer, err = l.start(ctx, o, "host b", transport.Target{Net: true}); err != nil {
		return err
	}
	card, err := l.start(ctx, o, "soft NIC", transport.Target{Net: true})
	if err != nil {
		return err
	}
	if err := l.pin(ctx); err != nil {
		return err
	}
	ends := []*End{l.Device, l.Peer}
	setup := host.NICSetup{Wire: c.Wire, Seed: c.Seed, Cards: []host.NICCard{
		{Model: c.Model, Faults: c.Faults, Merge: c.Firmware}, {Model: peerModel},
	}}
	for i, e := range ends {
		setup.Cards[i].Device, setup.Cards[i].PID, setup.Cards[i].MTU = softNames[i], e.stream.Pid(), vethMTU
	}
	info, err := card.StartNIC(ctx, setup)
	if err != nil {
		return fmt.Errorf("soft NIC: %w", err)
	}
	l.NIC = &NIC{card.Client, info.Merges[0]}
	for i, e := range ends {
		e.Dev, e.IPv4, e.IPv6 = softNames[i], vethIPv4[i].Addr(), vethIPv6[i].Addr()
		e.Pinned["mtu"], e.Pinned["rx-gro"], e.Pinned["txqueuelen"] = strconv.Itoa(vethMTU), "on", strconv.Itoa(tapQueue)
		for name, v := range pinnedSysctls {
			e.Pinned[name] = v
		}
		if err := e.Setup(ctx, host.Setup{
			Device: e.Dev, MTU: vethMTU, TXQueue: tapQueue, Features: map[string]bool{gro: true}, Sysctls: pinnedSysctls,
			Addresses: []netip.Prefix{vethIPv4[i], vethIPv6[i]},
		}); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	l.Notes = append(l.Notes, fmt.Sprintf("soft NIC in user space: model %s%s, far end %s", c.Model, withFaults(c.Faults), peerModel))
	if info.Merges[0] != "" && !c.Firmware {
		l.Notes = append(l.Notes, info.Merges[0]+" of the card is off, as on most cards: the host's GRO merges")
	}
	return nil
}

func withFaults(faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	return " with fault " + strings.Join(faults, ", ")
}
