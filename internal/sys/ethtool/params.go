package ethtool

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A param is a numeric parameter of a device.
type param struct {
	name string // as ethtool(8) writes it, with hyphens
	attr uint16 // netlink attribute
	byte bool   // the attribute is 8 bits wide, not 32
	word int    // index in the ioctl's structure, 0 where it has none
}

// A group is a set of parameters that are read and written together.
type group struct {
	what       string // for errors
	get, set   uint8  // netlink commands
	iget, iset uint32 // ioctl commands
	size       int    // words of the ioctl's structure
	params     []param
}

// coalescing is struct ethtool_coalesce and ETHTOOL_A_COALESCE_*, in the order
// of the structure. Names: ethtool(8) -C. The attributes above 0x19 came after
// Linux 5.18; x/sys does not name them all.
var coalescing = group{
	what: "coalescing",
	get:  unix.ETHTOOL_MSG_COALESCE_GET, set: unix.ETHTOOL_MSG_COALESCE_SET,
	iget: unix.ETHTOOL_GCOALESCE, iset: unix.ETHTOOL_SCOALESCE, size: 23,
	params: []param{
		{name: "rx-usecs", attr: unix.ETHTOOL_A_COALESCE_RX_USECS, word: 1},
		{name: "rx-frames", attr: unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES, word: 2},
		{name: "rx-usecs-irq", attr: unix.ETHTOOL_A_COALESCE_RX_USECS_IRQ, word: 3},
		{name: "rx-frames-irq", attr: unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES_IRQ, word: 4},
		{name: "tx-usecs", attr: unix.ETHTOOL_A_COALESCE_TX_USECS, word: 5},
		{name: "tx-frames", attr: unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES, word: 6},
		{name: "tx-usecs-irq", attr: unix.ETHTOOL_A_COALESCE_TX_USECS_IRQ, word: 7},
		{name: "tx-frames-irq", attr: unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES_IRQ, word: 8},
		{name: "stats-block-usecs", attr: unix.ETHTOOL_A_COALESCE_STATS_BLOCK_USECS, word: 9},
		{name: "adaptive-rx", attr: unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, byte: true, word: 10},
		{name: "adaptive-tx", attr: unix.ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX, byte: true, word: 11},
		{name: "pkt-rate-low", attr: unix.ETHTOOL_A_COALESCE_PKT_RATE_LOW, word: 12},
		{name: "rx-usecs-low", attr: unix.ETHTOOL_A_COALESCE_RX_USECS_LOW, word: 13},
		{name: "rx-frames-low", attr: unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES_LOW, word: 14},
		{name: "tx-usecs-low", attr: unix.ETHTOOL_A_COALESCE_TX_USECS_LOW, word: 15},
		{name: "tx-frames-low", attr: unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES_LOW, word: 16},
		{name: "pkt-rate-high", attr: unix.ETHTOOL_A_COALESCE_PKT_RATE_HIGH, word: 17},
		{name: "rx-usecs-high", attr: unix.ETHTOOL_A_COALESCE_RX_USECS_HIGH, word: 18},
		{name: "rx-frames-high", attr: unix.ETHTOOL_A_COALESCE_RX_MAX_FRAMES_HIGH, word: 19},
		{name: "tx-usecs-high", attr: unix.ETHTOOL_A_COALESCE_TX_USECS_HIGH, word: 20},
		{name: "tx-frames-high", attr: unix.ETHTOOL_A_COALESCE_TX_MAX_FRAMES_HIGH, word: 21},
		{name: "sample-interval", attr: unix.ETHTOOL_A_COALESCE_RATE_SAMPLE_INTERVAL, word: 22},
		{name: "cqe-mode-tx", attr: unix.ETHTOOL_A_COALESCE_USE_CQE_MODE_TX, byte: true},
		{name: "cqe-mode-rx", attr: unix.ETHTOOL_A_COALESCE_USE_CQE_MODE_RX, byte: true},
		{name: "tx-aggr-max-bytes", attr: 0x1a},
		{name: "tx-aggr-max-frames", attr: 0x1b},
		{name: "tx-aggr-time-usecs", attr: 0x1c},
	},
}

// rings is struct ethtool_ringparam and ETHTOOL_A_RINGS_*. Names: ethtool(8)
// -G; those that end in -max can only be read.
var rings = group{
	what: "rings",
	get:  unix.ETHTOOL_MSG_RINGS_GET, set: unix.ETHTOOL_MSG_RINGS_SET,
	iget: unix.ETHTOOL_GRINGPARAM, iset: unix.ETHTOOL_SRINGPARAM, size: 9,
	params: []param{
		{name: "rx-max", attr: unix.ETHTOOL_A_RINGS_RX_MAX, word: 1},
		{name: "rx-mini-max", attr: unix.ETHTOOL_A_RINGS_RX_MINI_MAX, word: 2},
		{name: "rx-jumbo-max", attr: unix.ETHTOOL_A_RINGS_RX_JUMBO_MAX, word: 3},
		{name: "tx-max", attr: unix.ETHTOOL_A_RINGS_TX_MAX, word: 4},
		{name: "rx", attr: unix.ETHTOOL_A_RINGS_RX, word: 5},
		{name: "rx-mini", attr: unix.ETHTOOL_A_RINGS_RX_MINI, word: 6},
		{name: "rx-jumbo", attr: unix.ETHTOOL_A_RINGS_RX_JUMBO, word: 7},
		{name: "tx", attr: unix.ETHTOOL_A_RINGS_TX, word: 8},
		{name: "rx-buf-len", attr: unix.ETHTOOL_A_RINGS_RX_BUF_LEN},
		{name: "tcp-data-split", attr: unix.ETHTOOL_A_RINGS_TCP_DATA_SPLIT, byte: true},
		{name: "cqe-size", attr: unix.ETHTOOL_A_RINGS_CQE_SIZE},
		{name: "tx-push", attr: unix.ETHTOOL_A_RINGS_TX_PUSH, byte: true},
		{name: "rx-push", attr: unix.ETHTOOL_A_RINGS_RX_PUSH, byte: true},
		{name: "tx-push-buf-len", attr: unix.ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN},
		{name: "tx-push-buf-len-max", attr: unix.ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN_MAX},
		{name: "hds-thresh", attr: unix.ETHTOOL_A_RINGS_HDS_THRESH},
		{name: "hds-thresh-max", attr: unix.ETHTOOL_A_RINGS_HDS_THRESH_MAX},
	},
}

// Coalesce reads the interrupt coalescing of a device: ethtool's names, 1 and
// 0 for on and off. A parameter that the driver lacks is absent; by ioctl,
// which cannot tell, it is 0.
func (h *Handle) Coalesce(dev string) (map[string]uint32, error) { return h.read(&coalescing, dev) }

// SetCoalesce changes the parameters named and leaves the others.
func (h *Handle) SetCoalesce(dev string, want map[string]uint32) error {
	return h.write(&coalescing, dev, want)
}

// Rings reads the ring sizes of a device and their limits: rx, tx, rx-mini,
// rx-jumbo; rx-max and so on; and what newer drivers add.
func (h *Handle) Rings(dev string) (map[string]uint32, error) { return h.read(&rings, dev) }

// SetRings changes the parameters named and leaves the others.
func (h *Handle) SetRings(dev string, want map[string]uint32) error {
	return h.write(&rings, dev, want)
}

// CoalesceNames returns the names of the coalescing parameters.
func CoalesceNames() []string { return coalescing.names() }

// RingNames returns the names of the ring parameters, limits included.
func RingNames() []string { return rings.names() }

func (g *group) names() []string {
	var names []string
	for _, p := range g.params {
		names = append(names, p.name)
	}
	return names
}

func (g *group) find(match func(param) bool) (param, bool) {
	i := slices.IndexFunc(g.params, match)
	if i < 0 {
		return param{}, false
	}
	return g.params[i], true
}

func (h *Handle) read(g *group, dev string) (map[string]uint32, error) {
	values := map[string]uint32{}
	err := h.either(func() error {
		return h.get(g.get, dev, 0, func(ad *netlink.AttributeDecoder) {
			p, ok := g.find(func(p param) bool { return p.attr == ad.Type() })
			switch {
			case !ok:
			case p.byte:
				values[p.name] = uint32(ad.Uint8())
			default:
				values[p.name] = ad.Uint32()
			}
		})
	}, func() error {
		buf := words(g.size, g.iget)
		if err := h.ioctl(dev, buf); err != nil {
			return err
		}
		for _, p := range g.params {
			if p.word != 0 {
				values[p.name] = word(buf, p.word)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fail("get "+g.what, dev, err)
	}
	return values, nil
}

func (h *Handle) write(g *group, dev string, want map[string]uint32) error {
	for name := range want {
		if !slices.Contains(g.names(), name) {
			return fail("set "+g.what, dev, fmt.Errorf("parameter %q: %w", name, ErrUnsupported))
		}
	}
	err := h.either(
		func() error { return h.netlinkWrite(g, dev, want) },
		func() error { return h.ioctlWrite(g, dev, want) },
	)
	return fail("set "+g.what, dev, h.lacking(g, dev, want, err))
}

// lacking names the parameter that a driver lacks when that is why a change
// was refused: netlink answers EINVAL for it (ethnl_set_coalesce,
// net/ethtool/coalesce.c), which a value out of range gets too.
func (h *Handle) lacking(g *group, dev string, want map[string]uint32, refusal error) error {
	if !errors.Is(refusal, unix.EINVAL) || h.conn == nil {
		return refusal
	}
	have, err := h.read(g, dev)
	if err != nil {
		return refusal
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := have[name]; !ok {
			return fmt.Errorf("parameter %q: %w", name, ErrUnsupported)
		}
	}
	return refusal
}

func (h *Handle) netlinkWrite(g *group, dev string, want map[string]uint32) error {
	return h.set(g.set, dev, func(ae *netlink.AttributeEncoder) error {
		for _, p := range g.params {
			v, ok := want[p.name]
			switch {
			case !ok:
			case !p.byte:
				ae.Uint32(p.attr, v)
			case v > 255:
				return fmt.Errorf("%s=%d: %w", p.name, v, unix.ERANGE)
			default:
				ae.Uint8(p.attr, uint8(v))
			}
		}
		return nil
	})
}

// ioctlWrite changes words of the structure that the driver gave: the ioctl
// knows no partial change.
func (h *Handle) ioctlWrite(g *group, dev string, want map[string]uint32) error {
	buf := words(g.size, g.iget)
	if err := h.ioctl(dev, buf); err != nil {
		return err
	}
	put(buf, 0, g.iset)
	for name, v := range want {
		p, _ := g.find(func(p param) bool { return p.name == name })
		if p.word == 0 {
			return fmt.Errorf("parameter %q by ioctl: %w", name, ErrUnsupported)
		}
		put(buf, p.word, v)
	}
	return h.ioctl(dev, buf)
}
