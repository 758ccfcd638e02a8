package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/agent/transport"
	"github.com/offlab/offlab/internal/host"
)

// A Lab is two hosts and a link.
type Lab struct {
	Kind   string
	Device *End // whose device is under test
	Peer   *End
	Sink   *End // behind the device's host, where that is a router
	NIC    *NIC // the soft NIC between them, in that lab
	Shared bool // both run on one machine: their CPU cannot be told apart
	Notes  []string
	ends   []*End
}

// An End is one host of a lab.
type End struct {
	*host.Client
	Info   host.Info
	Dev    string
	IPv4   netip.Addr
	IPv6   netip.Addr
	Pinned map[string]string // what the lab set on it
	stream *transport.Stream
}

// Addr returns the address of a family, "ipv4" or "ipv6".
func (e *End) Addr(family string) (netip.Addr, error) {
	a := e.IPv4
	if family == "ipv6" {
		a = e.IPv6
	}
	if !a.IsValid() {
		return a, &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("%s (%s) has no %s address", e.Dev, e.Name, family)}
	}
	return a, nil
}

// Options are what every lab needs.
type Options struct {
	Exe     string // this program
	Version string
	State   string // where agents keep their state files; empty: their choice
}

// startTimeout bounds the time until an agent has answered. A password typed
// for ssh is within it.
const startTimeout = 90 * time.Second

// start opens a target and greets its agent.
func (l *Lab) start(ctx context.Context, o Options, name string, t transport.Target) (*End, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	t.State = o.State
	s, err := transport.Open(ctx, t, o.Exe)
	if err != nil {
		return nil, err
	}
	c, err := s.Connect(ctx, o.Version)
	if err != nil {
		return nil, err // it names the target
	}
	e := &End{Client: &host.Client{Client: c, Name: name}, stream: s, Pinned: map[string]string{}}
	l.ends = append(l.ends, e)
	if e.Info, err = e.Client.Info(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, nil
}

// Close ends the agents, which puts back what was changed on their hosts, and
// waits for them.
func (l *Lab) Close() error {
	var errs []error
	for _, e := range l.ends {
		errs = append(errs, e.Close())
	}
	for _, e := range l.ends {
		e.stream.Close()
	}
	l.ends = nil
	return errors.Join(errs...)
}

// pin keeps the two agents of one machine on a CPU each: where a load's ends run
// decides more about its goodput than most knobs.
func (l *Lab) pin(ctx context.Context) error {
	if !l.Shared || l.Device.Info.CPUs < 2 {
		return nil
	}
	for i, e := range []*End{l.Device, l.Peer} {
		if err := e.Pin(ctx, i); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		e.Pinned["cpu"] = fmt.Sprint(i)
	}
	l.Notes = append(l.Notes, "one machine, a CPU for each end; CPU figures are of both")
	return nil
}

// Swap makes the peer's device the one under test.
func (l *Lab) Swap() { l.Device, l.Peer = l.Peer, l.Device }
