package verdict_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

const seed = 20261130

// A builder makes studies by hand.
type builder struct {
	*study.Study
	rng *rand.Rand
}

// An effect is what an arm shows in a slot. Noise is multiplicative and normal.
type effect struct {
	goodput, cpu float64 // bit/s, ns/B
	noise        float64 // sd of the logarithm, 1 % if 0
	retransmits  float64
	evidence     map[string]float64
	findings     []study.Finding
}

func newBuilder() *builder {
	return &builder{
		rng: rand.New(rand.NewPCG(seed, 1)),
		Study: &study.Study{
			Schema: study.Schema,
			Plan: study.Plan{
				Lab: "hosts", Side: "device", Alpha: 0.05, Device: "eth0",
				Load: study.Load{Streams: 1, Verify: true},
			},
			Environment: study.Environment{Hosts: []study.Host{
				{Role: "device", Device: "eth0", MTU: 1500, Driver: "igb", Features: map[string]string{"rx-gro": "on"}},
				{Role: "peer", Device: "eth1", MTU: 1500, Driver: "igb", Features: map[string]string{"rx-gro": "on"}},
			}},
		},
	}
}

var tx = study.Cell{Path: "base", Family: "ipv4", Load: "bulk", Direction: "tx"}

func with(c study.Cell, family, direction string) study.Cell {
	c.Family, c.Direction = family, direction
	return c
}

// knob adds a factor: one arm for each value that the device does not have, and
// the contrast of the second value against the first.
func (b *builder) knob(name, first, second, current string, cell study.Cell) *builder {
	armOf := func(value string) string {
		if value == current {
			b.arm(study.Arm{Name: study.Current})
			return study.Current
		}
		a := study.Arm{Name: name + "=" + value, Settings: []study.Setting{{Knob: name, Value: value}}}
		if b.arm(a) {
			b.Checks = append(b.Checks, study.ArmCheck{Arm: a.Name, Knobs: []study.Moved{
				{Knob: name, Asked: value, Got: value, Was: current, Moved: true},
			}})
		}
		return a.Name
	}
	b.Plan.Contrast = append(b.Plan.Contrast, study.Contrast{
		Knob: name, Baseline: first, Arm: second, Cell: cell,
		Terms: []study.Term{{Arm: armOf(second), Weight: 1}, {Arm: armOf(first), Weight: -1}},
	})
	b.Plan.Cells = append(b.Plan.Cells, cell)
	b.Plan.Factors = append(b.Plan.Factors, name)
	return b
}

func (b *builder) arm(a study.Arm) (added bool) {
	if _, ok := b.Plan.FindArm(a.Name); ok {
		return false
	}
	b.Plan.Arms = append(b.Plan.Arms, a)
	return true
}

// run adds n blocks.
func (b *builder) run(n int, effects map[string]effect) *builder {
	first := 0
	for _, s := range b.Slots {
		first = max(first, s.Block+1)
	}
	for block := first; block < first+n; block++ {
		keys := b.Plan.BlockSlots()
		for order, i := range b.rng.Perm(len(keys)) {
			e := effects[keys[i].Arm]
			sd := e.noise
			if sd == 0 {
				sd = 0.01
			}
			s := study.Slot{
				Phase: study.PhaseAB, Block: block, Order: order, Arm: keys[i].Arm, Cell: keys[i].Cell, MeasuredS: 2,
				Metrics: map[string]float64{
					study.Goodput:     e.goodput * math.Exp(sd*b.rng.NormFloat64()),
					study.Retransmits: e.retransmits,
				},
				Evidence: maps.Clone(e.evidence), Findings: e.findings,
			}
			if e.cpu > 0 {
				s.Metrics[study.CPUPerByte] = e.cpu * math.Exp(sd*b.rng.NormFloat64())
			}
			b.Slots = append(b.Slots, s)
		}
	}
	return b
}

// only returns the single verdict of the study.
func (b *builder) only(t *testing.T) study.Verdict {
	t.Helper()
	vs := verdict.Make(b.Study)
	if len(vs) != 1 {
		t.Fatalf("%d verdicts, want 1", len(vs))
	}
	return vs[0]
}

func has(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%s = %q, want %q in it", what, got, want)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// Evidence of a sender and of a receiver, by how many segments travel in a
// packet. The segments are those of one gigabyte.
const segments = 690_000

func sent(role string, aSegs float64) map[string]float64 {
	return map[string]float64{
		role + ".Tcp.OutSegs": segments, role + ".link.tx_packets": segments / aSegs, role + ".Ip.OutRequests": segments / 39.0,
		role + ".link.tx_bytes": segments * 1514,
	}
}

func received(role, ip string, aSegs, aDevice float64) map[string]float64 {
	ext := "IpExt"
	if ip == "Ip6" {
		ext = ip
	}
	return map[string]float64{
		role + "." + ext + ".InNoECTPkts": segments * 0.9, role + "." + ext + ".InECT0Pkts": segments * 0.1,
		role + "." + ip + ".InReceives": segments / aSegs, role + ".link.rx_packets": segments / aDevice,
	}
}

func both(a, b map[string]float64) map[string]float64 {
	c := maps.Clone(a)
	maps.Copy(c, b)
	return c
}
