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

	unsteered bool // a device could not be steered, and a note says so
}

// An End is one host of a lab.
type End struct {
	*host.Client
	Info   host.Info
	Dev    string
	IPv4   netip.Addr
	IPv6   netip.Addr
	Pinned map[string]string // what the lab set on it
	cpu    int               // CPU number + 1 that the agent stays on; 0: any
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
		e.cpu, e.Pinned["cpu"] = i+1, fmt.Sprint(i)
	}
	l.Notes = append(l.Notes, "one machine, a CPU for each end; CPU figures are of both")
	return nil
}

// configure sets a device of the built-in labs up. What it receives is processed
// on its host's CPU, as by the interrupt of a card with one queue: on a veth each
// CPU that sends would process what it sent, and two that send, since an
// acknowledgement makes TCP send where it arrives, reorder the packets.
func (l *Lab) configure(ctx context.Context, e *End, s host.Setup) error {
	s.Steer = e.cpu
	res, err := e.Setup(ctx, s)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	switch {
	case s.Steer == 0:
	case res.Without == "":
		e.Pinned["rps_cpus"] = fmt.Sprint(e.cpu - 1)
	case !l.unsteered:
		l.unsteered = true
		l.Notes = append(l.Notes, "received packets are not steered to a CPU, for lack of rights: more noise")
	}
	return nil
}

// Swap makes the peer's device the one under test.
func (l *Lab) Swap() { l.Device, l.Peer = l.Peer, l.Device }
