package softnic

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/vnet"
)

// A port is one end of the card: a model, its faults and the host behind it.
type port struct {
	index  int
	name   string
	format vnet.Format
	model  Model
	mtu    int
	queues []Queue
	hooks  [][]Hooks // by queue: the model's first
	knobs  []Hooks   // for settings: no lane's

	mu       sync.Mutex // one change of a setting at a time
	settings [4]atomic.Int64
}

// The settings by place.
const (
	atMerge = iota
	atChecksum
	atUsecs
	atFrames
)

// maxUsecs and maxFrames are the largest values of the two settings.
const (
	maxUsecs  = 1_000_000
	maxFrames = 1 << 16
)

func newPort(i int, p Port, card Card, seed uint64) *port {
	m := card.Model.withDefaults()
	t := &port{index: i, name: p.Name, format: p.Format, model: m, mtu: card.MTU, queues: p.Queues}
	if t.mtu == 0 {
		t.mtu = defaultMTU
	}
	for q := range p.Queues {
		t.hooks = append(t.hooks, makeHooks(card, Env{i, q, random(seed, i, q, 1)}))
	}
	t.knobs = makeHooks(card, Env{i, -1, random(seed, i, 0, 2)})
	t.settings[atMerge].Store(flag(m.RX.Merge != nil && !m.RX.MergeOff))
	t.settings[atChecksum].Store(flag(m.RX.Checksum))
	t.settings[atUsecs].Store(int64(m.RX.Moderation.Usecs / time.Microsecond))
	t.settings[atFrames].Store(int64(m.RX.Moderation.Frames))
	return t
}

const defaultMTU = 1500

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// random returns the source of one purpose in one queue.
func random(seed uint64, port, queue, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(port)<<32|uint64(queue)<<8|uint64(purpose)))
}

// makeHooks returns those of a card for one queue, without empty ones.
func makeHooks(c Card, env Env) []Hooks {
	var list []Hooks
	if c.Model.Hooks != nil {
		list = append(list, c.Model.Hooks(env))
	}
	for _, f := range c.Faults {
		if f.Hooks != nil {
			list = append(list, f.Hooks(env))
		}
	}
	return list
}

// Offer returns the offloads that a card offers to its host, its hooks
// included.
func (c Card) Offer() Offloads {
	offer := c.Model.Offloads
	for _, h := range makeHooks(c, Env{Queue: -1, Rand: random(0, 0, 0, 0)}) {
		if h.Offer != nil {
			offer = h.Offer(offer)
		}
	}
	return offer
}

// withDefaults fills in what zero values stand for.
func (m Model) withDefaults() Model {
	t := &m.TX
	if t.Ring == 0 {
		t.Ring = DefaultRing
	}
	if t.PerData == 0 {
		t.PerData = DefaultPerData
	}
	if t.Stop == 0 {
		t.Stop = min(t.need(max(1, t.MaxSegs), 65536), t.Ring/4)
	}
	if t.Wake == 0 {
		t.Wake = t.Stop
	}
	if m.RX.Ring == 0 {
		m.RX.Ring = DefaultRing
	}
	return m
}

// need is the number of descriptors of a packet with so many segments and
// bytes of payload.
func (t *TX) need(segs, payload int) int {
	if !t.SoftwareTSO {
		segs = 1
	}
	n := t.PerPacket + segs*(t.PerHeader+(payload/segs+t.PerData-1)/t.PerData)
	if t.Align > 1 {
		n += segs
	}
	return n
}

// mergeOptions returns how the port merges, for one queue; false if it cannot.
func (p *port) mergeOptions(seed uint64) (gro.Options, bool) {
	if p.model.RX.Merge == nil {
		return gro.Options{}, false
	}
	o := p.model.RX.Merge(p.mtu)
	for _, h := range p.knobs {
		if h.Merge != nil {
			o = h.Merge(o)
		}
	}
	o.Gather = o.Hold == 0 // what is held longer than a poll has to be copied
	o.Seed = seed
	return o, true
}

func (p *port) place(s Setting) (int, error) {
	switch s {
	case SetMerge:
		return atMerge, nil
	case SetChecksum:
		return atChecksum, nil
	case SetUsecs:
		return atUsecs, nil
	case SetFrames:
		return atFrames, nil
	}
	names := make([]string, 0, len(Settings()))
	for _, k := range Settings() {
		names = append(names, string(k))
	}
	return 0, &ConfigError{"setting", s, "one of " + strings.Join(names, ", ")}
}

func (p *port) setting(s Setting) (int, error) {
	at, err := p.place(s)
	if err != nil {
		return 0, err
	}
	return int(p.settings[at].Load()), nil
}

func (p *port) set(s Setting, v int) error {
	at, err := p.place(s)
	if err != nil {
		return err
	}
	limit := [...]int{atMerge: 1, atChecksum: 1, atUsecs: maxUsecs, atFrames: maxFrames}[at]
	if v < 0 || v > limit {
		return &ConfigError{string(s), v, fmt.Sprintf("0 to %d", limit)}
	}
	if s == SetMerge && v == 1 && p.model.RX.Merge == nil {
		return &ConfigError{string(s), v, fmt.Sprintf("0: %s cannot merge", p.model.Name)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.knobs {
		if h.Setting != nil {
			v = h.Setting(s, int(p.settings[at].Load()), v)
		}
	}
	p.settings[at].Store(int64(v))
	return nil
}
