package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/internal/softnic/model"
)

// A NICSetup asks an agent to be a soft NIC: a card for each host, joined in
// pairs.
type NICSetup struct {
	Cards []NICCard    `json:"cards"`
	Wire  softnic.Wire `json:"wire"`
	Seed  uint64       `json:"seed"`
}

// A NICCard is one port of a soft NIC and the host it belongs to.
type NICCard struct {
	Model  string   `json:"model"`
	Faults []string `json:"faults,omitempty"`
	Device string   `json:"device"` // its name in the host
	PID    int      `json:"pid"`    // of the host's agent
	MTU    int      `json:"mtu,omitempty"`
	Merge  bool     `json:"merge"` // firmware aggregation, where the model can
}

// A NICInfo describes a soft NIC that runs.
type NICInfo struct {
	Sources []string `json:"sources"` // what each card's model follows
	// Merges names, by card, the feature that its aggregation is: lro, gro-hw,
	// or nothing.
	Merges []string `json:"merges"`
}

// A NICSetting changes a setting of a port.
type NICSetting struct {
	Port  int             `json:"port"`
	Name  softnic.Setting `json:"name"`
	Value int             `json:"value"`
}

// holdGRO is how long the hosts' GRO may wait for more packets. A NAPI poll of a
// TAP sees one packet, so without it GRO would find nothing to merge; a card's
// interrupt moderation does the same.
const holdGRO = 100 * time.Microsecond

// StartNIC makes the agent a soft NIC.
func (c *Client) StartNIC(ctx context.Context, s NICSetup) (NICInfo, error) {
	return ask[NICInfo](ctx, c, "nic.start", s)
}

// SetNIC changes a setting of a port and returns what it became: a card may
// refuse.
func (c *Client) SetNIC(ctx context.Context, s NICSetting) (int, error) {
	return ask[int](ctx, c, "nic.set", s)
}

// NICSetting returns the present value of a setting; Value is ignored.
func (c *Client) NICSetting(ctx context.Context, s NICSetting) (int, error) {
	return ask[int](ctx, c, "nic.setting", s)
}

// NICCounters returns what was counted at the stations of each port.
func (c *Client) NICCounters(ctx context.Context) ([]map[string]uint64, error) {
	return ask[[]map[string]uint64](ctx, c, "nic.counters", nothing{})
}

// runningNIC is a soft NIC in this process.
type runningNIC struct {
	*softnic.NIC
	cfg    softnic.Config
	taps   *softnic.Taps
	cards  int
	watch  *wireWatch
	lookMu sync.Mutex
	look   look
	begun  softnic.Counts // of the card under test, when the slot began
	stop   context.CancelFunc
	done   chan error
}

func (s *Server) startNIC(_ context.Context, setup NICSetup) (NICInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nic != nil {
		return NICInfo{}, &agent.Error{Kind: agent.KindBusy, Text: "this agent is a soft NIC already"}
	}
	cfg, hosts, err := config(setup)
	if err != nil {
		return NICInfo{}, err
	}
	watch := newWireWatch(cfg.Cards)
	cfg.Tap = watch.tap
	taps, err := softnic.OpenTaps(cfg, hosts, softnic.TapOptions{Hold: holdGRO})
	if err != nil {
		return NICInfo{}, &agent.Error{Kind: agent.KindEnv, Text: err.Error()}
	}
	nic, err := softnic.New(cfg, taps.Ports)
	if err != nil {
		return NICInfo{}, errors.Join(err, taps.Close())
	}
	n := &runningNIC{NIC: nic, cfg: cfg, taps: taps, cards: len(cfg.Cards), watch: watch}
	n.start()
	s.nic = n
	info := NICInfo{}
	for i, c := range setup.Cards {
		m := cfg.Cards[i].Model
		info.Sources = append(info.Sources, m.Source)
		info.Merges = append(info.Merges, mergeName(m, c.MTU))
		if m.RX.Merge == nil {
			continue
		}
		on := 0
		if c.Merge {
			on = 1
		}
		if err := nic.Set(i, softnic.SetMerge, on); err != nil {
			return info, err
		}
	}
	return info, nil
}

// config looks the cards up.
func config(setup NICSetup) (softnic.Config, []softnic.Host, error) {
	cfg := softnic.Config{Wire: setup.Wire, Seed: setup.Seed}
	var hosts []softnic.Host
	for _, c := range setup.Cards {
		m, err := model.Find(c.Model)
		if err != nil {
			return cfg, nil, &agent.Error{Kind: agent.KindUsage, Text: err.Error()}
		}
		card := softnic.Card{Model: m, MTU: c.MTU}
		for _, name := range c.Faults {
			f, err := fault.Find(name)
			if err != nil {
				return cfg, nil, &agent.Error{Kind: agent.KindUsage, Text: err.Error()}
			}
			card.Faults = append(card.Faults, f)
		}
		cfg.Cards = append(cfg.Cards, card)
		hosts = append(hosts, softnic.Host{Device: c.Device, PID: c.PID})
	}
	return cfg, hosts, nil
}

// mergeName is the feature that a model's aggregation is.
func mergeName(m softnic.Model, mtu int) string {
	switch {
	case m.RX.Merge == nil:
		return ""
	case m.RX.Merge(mtu).Policy == gro.LRO:
		return "lro"
	default:
		return "gro-hw"
	}
}

// card returns the NIC, which must have the port.
func (s *Server) card(port int) (*runningNIC, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nic == nil {
		return nil, &agent.Error{Kind: agent.KindUsage, Text: "this agent is no soft NIC"}
	}
	if port < 0 || port >= s.nic.cards {
		return nil, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("port %d: the soft NIC has %d", port, s.nic.cards)}
	}
	return s.nic, nil
}

func (s *Server) setNIC(_ context.Context, p NICSetting) (int, error) {
	n, err := s.card(p.Port)
	if err != nil {
		return 0, err
	}
	if err := n.Set(p.Port, p.Name, p.Value); err != nil {
		return 0, err
	}
	return n.Setting(p.Port, p.Name)
}

func (s *Server) nicSetting(_ context.Context, p NICSetting) (int, error) {
	n, err := s.card(p.Port)
	if err != nil {
		return 0, err
	}
	return n.Setting(p.Port, p.Name)
}

func (s *Server) nicCounters(context.Context, nothing) ([]map[string]uint64, error) {
	n, err := s.card(0)
	if err != nil {
		return nil, err
	}
	select {
	case err := <-n.done:
		n.done <- err
		return nil, &agent.Error{Kind: agent.KindGone, Text: fmt.Sprintf("the soft NIC has stopped: %v", err)}
	default:
	}
	n.silent() // for the next to ask
	var out []map[string]uint64
	for port := range n.cards {
		m, counts := map[string]uint64{}, n.Counts(port)
		for _, st := range softnic.Stations() {
			if !st.Gauge() {
				m[st.String()] = counts[st]
			}
		}
		if port < checkedPorts {
			n.watch.count(port, m)
		}
		out = append(out, m)
	}
	return out, nil
}

// closeNIC ends the soft NIC of this agent. The caller holds mu.
func (s *Server) closeNIC() error {
	n := s.nic
	if n == nil {
		return nil
	}
	s.nic = nil
	n.stop()
	return errors.Join(<-n.done, n.Close(), n.taps.Close())
}
