package probe

import (
	"errors"
	"io/fs"
	"maps"
	"time"

	"github.com/offlab/offlab/internal/sys/counters"
	"github.com/offlab/offlab/internal/sys/cpu"
	"github.com/offlab/offlab/internal/sys/ethtool"
)

// A Snapshot is the state of a host's counters at one moment.
type Snapshot struct {
	At       time.Duration `json:"at_ns"` // since the prober was made, monotonic
	CPU      cpu.Times     `json:"cpu"`
	Counters counters.Set  `json:"counters"`
}

// A Prober reads the counters of one device and of its namespace.
type Prober struct {
	device string
	eth    *ethtool.Handle
	start  time.Time
}

// New returns a prober for a device.
func New(device string, eth *ethtool.Handle) *Prober {
	return &Prober{device, eth, time.Now()}
}

// Take reads everything now, the CPU time last.
func (p *Prober) Take() (Snapshot, error) {
	s := Snapshot{Counters: counters.Set{}}
	protocols, err := counters.Protocols(counters.Root)
	if err != nil {
		return s, err
	}
	link, err := counters.Link(p.device)
	if err != nil {
		return s, err
	}
	driver, err := p.eth.Stats(p.device)
	switch {
	case err == nil, errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission):
		// A driver without statistics of its own is no error.
	default:
		return s, err
	}
	for _, set := range []counters.Set{protocols, link} {
		maps.Copy(s.Counters, set)
	}
	for name, v := range driver {
		s.Counters["ethtool."+name] = v
	}
	s.CPU, err = cpu.Host()
	s.At = time.Since(p.start)
	return s, err
}

// A Window is what happened on a host between two snapshots.
type Window struct {
	Elapsed time.Duration
	CPU     cpu.Times
	Rise    map[string]float64
}

// Delta returns what happened between a and b.
func Delta(a, b Snapshot) Window {
	return Window{b.At - a.At, b.CPU.Sub(a.CPU), counters.Rise(a.Counters, b.Counters)}
}
