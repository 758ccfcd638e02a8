package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/probe"
	"github.com/offlab/offlab/internal/sys/bpf"
	"github.com/offlab/offlab/internal/sys/cpu"
	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/netns"
	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/sys/sysctl"
)

// A Server does what the controller asks for, in the network namespace of its
// process.
type Server struct {
	version string
	state   string // directory of state files
	exe     string // this program, which guards the device in a process of its own
	eth     *ethtool.Handle
	net     *rtnl.Handle

	mu      sync.Mutex
	session *knob.Session
	prober  *probe.Prober
	load    running
	vlan    *bpf.VLAN // of the present path
	nic     *runningNIC
}

// running is the end of a load: a receiver or a sender.
type running interface {
	Snapshot() load.Snapshot
	Stop() load.Result
}

// NewServer opens the doors to the kernel.
func NewServer(version, state, exe string) (*Server, error) {
	eth, err := ethtool.Open()
	if err != nil {
		return nil, err
	}
	net, err := rtnl.Open()
	if err != nil {
		return nil, errors.Join(err, eth.Close())
	}
	return &Server{version: version, state: state, exe: exe, eth: eth, net: net}, nil
}

// Close stops the load, puts back what was changed, and closes everything.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLoad()
	return errors.Join(s.closeNIC(), s.dropPath(), s.restoreLocked(), s.eth.Close(), s.net.Close())
}

// Methods returns the calls that the server answers.
func (s *Server) Methods() map[string]agent.Method {
	return map[string]agent.Method{
		"host.info":    agent.Func(s.info),
		"host.pin":     agent.Func(s.pin),
		"net.devices":  agent.Func(s.devices),
		"net.device":   agent.Func(s.device),
		"net.veth":     agent.Func(s.veth),
		"net.setup":    agent.Func(s.setup),
		"net.route":    agent.Func(s.route),
		"nic.start":    agent.Func(s.startNIC),
		"nic.set":      agent.Func(s.setNIC),
		"nic.setting":  agent.Func(s.nicSetting),
		"nic.counters": agent.Func(s.nicCounters),
		"nic.begin":    agent.Func(s.beginWire),
		"nic.wire":     agent.Func(s.wire),
		"path.set":     agent.Func(s.setPath),
		"knob.claim":   agent.Func(s.claim),
		"knob.adopt":   agent.Func(s.adopt),
		"knob.apply":   agent.Func(s.apply),
		"knob.restore": agent.Func(s.restore),
		"probe.watch":  agent.Func(s.watch),
		"probe.take":   agent.Func(s.take),
		"load.listen":  agent.Func(s.listen),
		"load.dial":    agent.Func(s.dial),
		"load.moment":  agent.Func(s.moment),
		"load.stop":    agent.Func(s.stop),
	}
}

func (s *Server) info(context.Context, nothing) (Info, error) {
	i, err := cpu.Describe()
	if err != nil {
		return Info{}, err
	}
	ns, err := netns.Inode()
	return Info{Info: i, PID: os.Getpid(), NetNS: ns, Root: netns.IsRoot(), Version: s.version}, err
}

func (s *Server) pin(_ context.Context, p struct {
	CPU int `json:"cpu"`
},
) (nothing, error) {
	return nothing{}, cpu.Pin(p.CPU)
}

func (s *Server) devices(context.Context, nothing) ([]string, error) {
	links, err := s.net.Links()
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	return names, err
}

// find returns a device. The error of an unknown one lists those there are.
func (s *Server) find(name string) (rtnl.Link, error) {
	l, err := s.net.Link(name)
	if !errors.Is(err, rtnl.ErrNoDevice) {
		return l, err
	}
	names, _ := s.devices(context.Background(), nothing{})
	return l, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("no device %q (have %s)", name, strings.Join(names, ", "))}
}

func (s *Server) device(_ context.Context, p named) (Device, error) {
	l, err := s.find(p.Name)
	if err != nil {
		return Device{}, err
	}
	d := Device{Name: l.Name, Kind: l.Kind, MTU: l.MTU(), Up: l.Up, Carrier: string(l.Carrier), Features: map[string]string{}}
	if d.Addresses, err = s.net.Addresses(p.Name); err != nil {
		return Device{}, err
	}
	f, err := s.eth.Features(p.Name)
	if err != nil {
		return Device{}, err
	}
	for name, bits := range f.Bits {
		d.Features[name] = bits.String()
	}
	// What a driver does not say of itself stays empty.
	if drv, err := s.eth.Driver(p.Name); err == nil {
		d.Driver, d.Firmware = drv.Name, drv.Firmware
	}
	if d.Driver == "" {
		d.Driver = l.Kind
	}
	if link, err := s.eth.Link(p.Name); err == nil {
		d.SpeedMbit = link.SpeedMbit
	}
	return d, nil
}

func (s *Server) veth(_ context.Context, v Veth) (nothing, error) {
	return nothing{}, s.net.AddVeth(v.Name, v.Peer, v.PeerPID)
}

func (s *Server) setup(_ context.Context, c Setup) (SetupResult, error) {
	for name, n := range map[string]int{"mtu": c.MTU, "txqueuelen": c.TXQueue} {
		if n > 0 {
			if err := s.net.Set(c.Device, name, n); err != nil {
				return SetupResult{}, err
			}
		}
	}
	for _, a := range c.Addresses {
		if err := s.net.AddAddress(c.Device, a); err != nil {
			return SetupResult{}, err
		}
	}
	for name, value := range c.Sysctls {
		// A kernel without the setting has nothing to pin.
		if err := sysctl.Write(name, value); err != nil && !errors.Is(err, os.ErrNotExist) {
			return SetupResult{}, err
		}
	}
	if len(c.Features) > 0 {
		if _, err := s.eth.Set(c.Device, c.Features); err != nil {
			return SetupResult{}, err
		}
	}
	return s.steer(c), s.bringUp(c)
}

// steer gives what the device receives to one CPU, where the rights are enough:
// those of a user namespace are not.
func (s *Server) steer(c Setup) SetupResult {
	if c.Steer == 0 {
		return SetupResult{}
	}
	if err := cpu.Steer(c.Device, c.Steer-1); err != nil {
		return SetupResult{Without: err.Error()}
	}
	return SetupResult{}
}

func (s *Server) bringUp(c Setup) error {
	for _, dev := range []string{"lo", c.Device} {
		if err := s.net.SetUp(dev, true); err != nil {
			return err
		}
	}
	for _, r := range c.Routes { // a neighbour is reached once the device is up
		if err := s.net.AddRoute(r.To, r.Via); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) route(_ context.Context, p struct {
	To netip.Addr `json:"to"`
},
) (Route, error) {
	r, err := s.net.Route(p.To)
	return Route{r.Device, r.Source, r.Local}, err
}

func (s *Server) watch(_ context.Context, p named) (nothing, error) {
	if _, err := s.find(p.Name); err != nil {
		return nothing{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prober = probe.New(p.Name, s.eth)
	return nothing{}, nil
}

func (s *Server) take(context.Context, nothing) (probe.Snapshot, error) {
	s.mu.Lock()
	p := s.prober
	s.mu.Unlock()
	if p == nil {
		return probe.Snapshot{}, &agent.Error{Kind: agent.KindUsage, Text: "no device is watched"}
	}
	return p.Take()
}

// start runs f, which brings up one end of a load. There is one at a time.
func (s *Server) start(f func() (running, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLoad() // a controller that failed in between has left one
	r, err := f()
	if err != nil {
		return err
	}
	s.load = r
	return nil
}

func (s *Server) listen(_ context.Context, p listen) (addr netip.AddrPort, err error) {
	err = s.start(func() (running, error) {
		// The load outlives this call, so it gets no context of it.
		r, err := load.Listen(context.Background(), p.Spec, p.Addr)
		if err != nil {
			return nil, err
		}
		addr = r.Addr()
		return r, nil
	})
	return addr, err
}

func (s *Server) dial(ctx context.Context, p dial) (nothing, error) {
	return nothing{}, s.start(func() (running, error) { return load.Dial(ctx, p.Spec, p.Addr) })
}

func (s *Server) moment(ctx context.Context, _ nothing) (Moment, error) {
	s.mu.Lock()
	l := s.load
	s.mu.Unlock()
	if l == nil {
		return Moment{}, &agent.Error{Kind: agent.KindUsage, Text: "no load runs"}
	}
	p, err := s.take(ctx, nothing{})
	return Moment{Probe: p, Load: l.Snapshot()}, err
}

func (s *Server) stop(context.Context, nothing) (End, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return End{Samples: s.stopLoad().Samples}, nil
}

func (s *Server) stopLoad() load.Result {
	if s.load == nil {
		return load.Result{}
	}
	r := s.load.Stop()
	s.load = nil
	return r
}

func (s *Server) claim(_ context.Context, p named) (Claimed, error) {
	if _, err := s.find(p.Name); err != nil {
		return Claimed{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.restoreLocked(); err != nil {
		return Claimed{}, err
	}
	session, err := knob.Claim(p.Name, s.state)
	var busy *knob.BusyError
	switch {
	case errors.As(err, &busy):
		return Claimed{}, &agent.Error{Kind: agent.KindBusy, Text: err.Error()}
	case err != nil:
		return Claimed{}, err
	}
	s.session = session
	if err := session.StartGuard(s.exe); err != nil {
		return Claimed{}, errors.Join(err, s.restoreLocked())
	}
	c := Claimed{}
	if l := session.Leftover; l != nil {
		c.Notes = append(c.Notes, "an earlier study had left its changes: "+l.String())
	}
	return c, nil
}

// held returns the session of the claimed device.
func (s *Server) held() (*knob.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil, &agent.Error{Kind: agent.KindUsage, Text: "no device is claimed"}
	}
	return s.session, nil
}

func (s *Server) adopt(_ context.Context, p factors) ([]string, error) {
	session, err := s.held()
	if err != nil {
		return nil, err
	}
	if err := session.Adopt(p.Factors); err != nil {
		return nil, knobError(err)
	}
	var values []string
	for _, f := range p.Factors {
		v, err := session.Current(f)
		if err != nil {
			return nil, knobError(err)
		}
		values = append(values, v)
	}
	return values, nil
}

// knobError makes what a user wrote wrong a usage error.
func knobError(err error) error {
	var syntax *knob.SyntaxError
	var unknown *knob.UnknownError
	if errors.As(err, &syntax) || errors.As(err, &unknown) {
		return &agent.Error{Kind: agent.KindUsage, Text: err.Error()}
	}
	return err
}

func (s *Server) apply(_ context.Context, p struct {
	Settings []knob.Setting `json:"settings"`
},
) (knob.Report, error) {
	session, err := s.held()
	if err != nil {
		return knob.Report{}, err
	}
	r, err := session.Apply(p.Settings)
	return r, knobError(err)
}

func (s *Server) restore(context.Context, nothing) (nothing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nothing{}, s.restoreLocked()
}

func (s *Server) restoreLocked() error {
	if s.session == nil {
		return nil
	}
	session := s.session
	s.session = nil
	return session.Restore()
}
