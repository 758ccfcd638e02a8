package softnic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A NIC is a card with an even number of ports; ports 0 and 1 are joined, 2 and
// 3, and so on.
type NIC struct {
	cfg      Config
	ports    []*port
	lanes    []*lane
	stopping atomic.Bool
	running  atomic.Bool
}

// A PortError says that a port has failed, and the card with it.
type PortError struct {
	Port string
	Err  error
}

// Error names the port and the cause.
func (e *PortError) Error() string { return fmt.Sprintf("softnic: port %s: %v", e.Port, e.Err) }

// Unwrap returns the cause.
func (e *PortError) Unwrap() error { return e.Err }

// New makes a card. Each two ports that follow each other are joined by a wire;
// the ports stay the caller's to close, after Run. An error is a
// [*ConfigError].
func New(cfg Config, ports []Port) (*NIC, error) {
	if err := cfg.normalize(ports); err != nil {
		return nil, err
	}
	n := &NIC{cfg: cfg}
	for i, p := range ports {
		card := cfg.card(i)
		n.ports = append(n.ports, newPort(i, p, card, cfg.Seed))
	}
	for i := range n.ports {
		src, dst := n.ports[i], n.ports[i^1]
		line := &line{rate: float64(cfg.Wire.Rate)}
		for q := range src.queues {
			l, err := newLane(n, src, dst, q, line)
			if err != nil {
				return nil, err
			}
			n.lanes = append(n.lanes, l)
		}
	}
	return n, nil
}

// card returns that of a port: the last one stands for all further ports.
func (c *Config) card(i int) Card { return c.Cards[min(i, len(c.Cards)-1)] }

func (c *Config) normalize(ports []Port) error {
	if len(ports) == 0 || len(ports)%2 != 0 {
		return &ConfigError{"number of ports", len(ports), "an even number, two at least"}
	}
	if len(c.Cards) == 0 {
		return &ConfigError{"Cards", "empty", "a card"}
	}
	for i, p := range ports {
		if other := ports[i^1]; len(p.Queues) == 0 || len(p.Queues) != len(other.Queues) {
			return &ConfigError{"number of queues of " + p.Name, len(p.Queues), fmt.Sprintf("that of %s, one at least", other.Name)}
		}
		if j := slices.IndexFunc(ports[:i], func(q Port) bool { return q.Name == p.Name }); j >= 0 {
			return &ConfigError{fmt.Sprintf("name of port %d", i), p.Name, fmt.Sprintf("another than that of port %d", j)}
		}
		if s := p.Format.Size; s != 10 && s != 12 && s != 20 && s != 24 {
			return &ConfigError{"header size of " + p.Name, s, "10, 12, 20 or 24"}
		}
	}
	if c.Now == nil {
		base := time.Now()
		c.Now = func() time.Duration { return time.Since(base) }
	}
	return c.Check()
}

// Check returns a [*ConfigError] for the first field that is not possible,
// whatever the ports are.
func (c *Config) Check() error {
	if err := c.Wire.check(); err != nil {
		return err
	}
	return c.checkCards()
}

func (c *Config) checkCards() error {
	for _, card := range c.Cards {
		for _, f := range []struct {
			name     string
			v        int
			min, max int
		}{
			{"TX.Ring", card.Model.TX.Ring, 0, 1 << 20},
			{"TX.Stop", card.Model.TX.Stop, 0, 1 << 20},
			{"TX.Wake", card.Model.TX.Wake, 0, 1 << 20},
			{"TX.Align", card.Model.TX.Align, 0, 4096},
			{"RX.Ring", card.Model.RX.Ring, 0, 1 << 20},
			{"MTU", card.MTU, 0, 65521},
		} {
			if f.v < f.min || f.v > f.max {
				return &ConfigError{f.name + " of " + card.Model.Name, f.v, fmt.Sprintf("%d to %d", f.min, f.max)}
			}
		}
	}
	return nil
}

func (w *Wire) check() error {
	for _, f := range []struct {
		name  string
		share float64
	}{{"Loss", w.Loss}, {"Dup", w.Dup}, {"Reorder", w.Reorder}, {"Corrupt", w.Corrupt}} {
		if !(f.share >= 0 && f.share <= 1) { // not a number, too
			return &ConfigError{"Wire." + f.name, f.share, "0 to 1"}
		}
	}
	switch {
	case !(w.Rate >= 0):
		return &ConfigError{"Wire.Rate", float64(w.Rate), "0 or more"}
	case w.Delay < 0:
		return &ConfigError{"Wire.Delay", w.Delay, "0 or more"}
	case w.MTU < 0:
		return &ConfigError{"Wire.MTU", w.MTU, "0 or more"}
	}
	return nil
}

// Run carries packets until the context ends, which is no error, or a port
// fails: that is a [*PortError]. It can be called once.
func (n *NIC) Run(ctx context.Context) error {
	if n.running.Swap(true) {
		return errors.New("softnic: Run was called before")
	}
	stop := context.AfterFunc(ctx, n.stop)
	defer stop()
	errs := make([]error, len(n.lanes))
	var wg sync.WaitGroup
	for i, l := range n.lanes {
		wg.Go(func() {
			if err := l.run(); err != nil {
				errs[i] = err
				n.stop() // the others serve nobody any more
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (n *NIC) stop() {
	n.stopping.Store(true)
	for _, l := range n.lanes {
		l.in.Wake()
	}
}

// Close ends Run, without waiting for it. The counters can still be read.
func (n *NIC) Close() error {
	n.stop()
	return nil
}

// Counts returns what was counted so far at the stations of a port.
func (n *NIC) Counts(port int) Counts {
	var sum Counts
	for _, l := range n.lanes {
		c := l.counts()
		for s := range stations {
			if own := s < RXFrames && l.src.index == port || s >= RXFrames && l.dst.index == port; own {
				sum[s] += c[s]
			}
		}
	}
	return sum
}

// Counters returns what was counted so far, by port and station:
// "p0.tx_packets".
func (n *NIC) Counters() map[string]uint64 {
	m := make(map[string]uint64, len(n.ports)*int(stations))
	for i, p := range n.ports {
		c := n.Counts(i)
		for s := range stations {
			m[p.name+"."+s.String()] = c[s]
		}
	}
	return m
}

// A Counter is a count by a driver's name.
type Counter struct {
	Name  string
	Value uint64
}

// DriverCounters returns what was counted so far at a port, as its driver
// calls it.
func (n *NIC) DriverCounters(port int) []Counter {
	c := n.Counts(port)
	var list []Counter
	for _, name := range n.ports[port].model.Counters {
		list = append(list, Counter{name.Driver, c[name.Station] + sum(&c, name.And)})
	}
	return list
}

// Balance checks that nothing was lost without a counter, in each queue and
// direction: see [Balance].
func (n *NIC) Balance() error {
	for _, l := range n.lanes {
		c := l.counts()
		if err := Balance(c, c); err != nil {
			return &PortError{l.src.name, err}
		}
	}
	return nil
}

// Set changes a setting of a port, for packets that come later. What it becomes
// is what [NIC.Setting] returns: a hook may have refused.
func (n *NIC) Set(port int, s Setting, value int) error {
	if err := n.checkPort(port); err != nil {
		return err
	}
	return n.ports[port].set(s, value)
}

// Setting returns the present value of a setting.
func (n *NIC) Setting(port int, s Setting) (int, error) {
	if err := n.checkPort(port); err != nil {
		return 0, err
	}
	return n.ports[port].setting(s)
}

func (n *NIC) checkPort(port int) error {
	if port < 0 || port >= len(n.ports) {
		return &ConfigError{"port", port, fmt.Sprintf("0 to %d", len(n.ports)-1)}
	}
	return nil
}
