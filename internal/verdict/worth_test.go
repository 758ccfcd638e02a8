package verdict_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

func TestWorth(t *testing.T) {
	for _, tt := range []struct {
		name            string
		off, on         effect
		blocks          int
		answer, primary string
		decided         bool
		action, text    string
	}{
		{
			name: "better", off: effect{goodput: 1e9, cpu: 1}, on: effect{goodput: 1.3e9, cpu: 0.8}, blocks: 12,
			answer: study.Better, primary: study.Goodput, decided: true, action: study.KeepOn, text: "keep on: goodput +",
		},
		{
			name: "worse", off: effect{goodput: 1e9, cpu: 1}, on: effect{goodput: 0.8e9, cpu: 1}, blocks: 12,
			answer: study.Worse, primary: study.Goodput, decided: true, action: study.TurnOff, text: "turn off: goodput -",
		},
		{
			name: "same", off: effect{goodput: 1e9, cpu: 1, noise: 0.004}, on: effect{goodput: 1e9, cpu: 1, noise: 0.004}, blocks: 20,
			answer: study.Same, primary: study.Goodput, decided: true, action: study.Leave, text: "no reason to touch it: no material difference in goodput",
		},
		{
			name: "same-waits-for-cpu", off: effect{goodput: 1e9, cpu: 1, noise: 0.01}, on: effect{goodput: 1e9, cpu: 1.05, noise: 0.01}, blocks: 40,
			answer: study.Same, primary: study.Goodput, decided: false, action: study.Leave, text: "no material difference in goodput",
		},
		{
			name: "inconclusive", off: effect{goodput: 1e9, noise: 0.05}, on: effect{goodput: 1.02e9, noise: 0.05}, blocks: 10,
			answer: study.Inconclusive, primary: study.Goodput, decided: false, action: study.Leave, text: "not decided: about ",
		},
		{
			name: "small", off: effect{goodput: 1e9, noise: 0.005}, on: effect{goodput: 1.02e9, noise: 0.005}, blocks: 20,
			answer: study.Small, primary: study.Goodput, decided: false, action: study.Leave, text: "real but small: goodput +",
		},
		{
			name: "cpu-decides", off: effect{goodput: 1e9, cpu: 1, noise: 0.004}, on: effect{goodput: 1e9, cpu: 0.6, noise: 0.004}, blocks: 20,
			answer: study.Better, primary: study.CPUPerByte, decided: true, action: study.KeepOn, text: "keep on: CPU per byte -",
		},
		{
			name: "cpu-decides-worse", off: effect{goodput: 1e9, cpu: 1, noise: 0.004}, on: effect{goodput: 1e9, cpu: 1.5, noise: 0.004}, blocks: 20,
			answer: study.Worse, primary: study.CPUPerByte, decided: true, action: study.TurnOff, text: "turn off: CPU per byte +",
		},
		{
			name: "too-few-blocks", off: effect{goodput: 1e9, cpu: 1}, on: effect{goodput: 2e9, cpu: 1}, blocks: 2,
			answer: study.Inconclusive, primary: study.Goodput, decided: false, action: study.Leave, text: "not decided: about ",
		},
		{
			name: "no-block", blocks: 0,
			answer: study.Inconclusive, primary: study.Goodput, decided: false, action: study.Leave, text: "not decided: nothing was measured",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder().knob("tso", "off", "on", "on", tx)
			v := b.run(tt.blocks, map[string]effect{study.Current: tt.on, "tso=off": tt.off}).only(t)
			equal(t, "answer", v.Worth.Answer, tt.answer)
			equal(t, "primary", v.Worth.Primary, tt.primary)
			equal(t, "Decided", verdict.Decided(v), tt.decided)
			equal(t, "action", v.Advice.Action, tt.action)
			has(t, "advice", v.Advice.Text, tt.text)
			m := v.Worth.Metrics[0]
			equal(t, "n", m.Blocks, tt.blocks)
			if !m.Decided && m.MoreBlocks == 0 {
				t.Error("not decided and no estimate of how many blocks it takes")
			}
			if tt.blocks < 5 && (m.Low != nil || len(m.Warnings) == 0) {
				t.Errorf("%d blocks: low end %v and warnings %q, want none and some", tt.blocks, m.Low, m.Warnings)
			}
		})
	}
}

// TestWorthFigures compares figures with ones that can be had by hand.
func TestWorthFigures(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "off", tx)
	for i, on := range []float64{130, 130, 130, 160, 130, 130, 100, 130} {
		b.run(1, map[string]effect{study.Current: {goodput: 100, noise: 1e-12}, "tso=on": {goodput: on, noise: 1e-12}})
		b.Slots[2*i].Order, b.Slots[2*i+1].Order = 0, 1
	}
	m := b.only(t).Worth.Metrics[0]
	mean := math.Exp((6*math.Log(1.3)+math.Log(1.6))/8) - 1
	if math.Abs(m.Effect-mean) > 1e-9 || math.Abs(m.Baseline-100) > 1e-6 || math.Abs(m.Arm-130) > 1e-6 {
		t.Errorf("effect %v of %v -> %v, want %v of 100 -> 130", m.Effect, m.Baseline, m.Arm, mean)
	}
	if m.Low == nil || m.High == nil || *m.Low > mean || *m.High < mean {
		t.Errorf("interval [%v, %v] does not hold the effect %v", m.Low, m.High, mean)
	}
	if m := b.only(t).Worth.Metrics[1]; m.Name != study.Retransmits || m.Answer != "" || m.Low != nil || m.Blocks != 8 {
		t.Errorf("retransmits are tested: %+v", m)
	}
}

// TestAlphaIsShared checks that the interval widens with the number of
// contrasts that can be measured, and not with those that cannot.
func TestAlphaIsShared(t *testing.T) {
	width := func(more int, stuck bool) float64 {
		b := newBuilder().knob("tso", "off", "on", "on", tx)
		b.run(12, map[string]effect{study.Current: {goodput: 1.3e9}, "tso=off": {goodput: 1e9}})
		for i := range more {
			b.knob(fmt.Sprint("x", i), "off", "on", "on", tx)
			b.Checks[len(b.Checks)-1].Knobs[0].Moved = !stuck
		}
		m := verdict.Make(b.Study)[0].Worth.Metrics[0]
		return *m.High - *m.Low
	}
	alone := width(0, false)
	if got := width(7, false); got < 1.1*alone {
		t.Errorf("width %v with 8 contrasts, %v alone: want more", got, alone)
	}
	equal(t, "width with 7 contrasts that cannot be measured", width(7, true), alone)
}

func TestSaturated(t *testing.T) {
	full := 1e9 * (1500 - 52) / 1538.0
	run := func(change func(*builder), goodput float64) study.Verdict {
		b := newBuilder().knob("tso", "off", "on", "on", tx)
		for i := range b.Environment.Hosts {
			b.Environment.Hosts[i].SpeedBPS = 1e9
		}
		b.Environment.Hosts[1].SpeedBPS = 1e10
		change(b)
		return b.run(15, map[string]effect{
			study.Current: {goodput: goodput, cpu: 0.5, noise: 0.002}, "tso=off": {goodput: goodput, cpu: 1, noise: 0.002},
		}).only(t)
	}
	nothing := func(*builder) {}
	v := run(nothing, 0.995*full)
	equal(t, "primary", v.Worth.Primary, study.CPUPerByte)
	equal(t, "answer", v.Worth.Answer, study.Better)
	has(t, "why", v.Worth.Why, "saturated in both arms")
	has(t, "why", v.Worth.Why, "at most 941 Mbit/s")
	for name, v := range map[string]study.Verdict{
		"below":      run(nothing, 0.97*full),
		"above":      run(nothing, 1.2e9),
		"veth":       run(func(b *builder) { b.Environment.Hosts[0].Driver = "veth" }, full),
		"no-speed":   run(func(b *builder) { b.Environment.Hosts[0].SpeedBPS, b.Environment.Hosts[1].SpeedBPS = 0, 0 }, full),
		"large-mtu":  run(func(b *builder) { b.Environment.Hosts[0].MTU, b.Environment.Hosts[1].MTU = 9000, 9000 }, 0.95e9),
		"one-fuller": run(func(b *builder) { b.Environment.Hosts[0].SpeedBPS = 2e9 }, full),
	} {
		if strings.Contains(v.Worth.Why, "saturated") {
			t.Errorf("%s: %s", name, v.Worth.Why)
		}
	}
	v = run(func(b *builder) { b.Plan.Contrast[0].Cell.Family = "ipv6" }, 0.99*1e9*(1500-72)/1538)
	has(t, "why in IPv6", v.Worth.Why, "saturated")
}

func TestVoidDropsItsBlock(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.run(10, map[string]effect{study.Current: {goodput: 1.3e9}, "tso=off": {goodput: 1e9}})
	b.Slots[6].Void = "the peer vanished" // block 3
	b.Slots[7].Metrics[study.Goodput] = 1 // its partner must not count either
	b.Slots = b.Slots[:len(b.Slots)-1]    // block 9 is not finished
	m := b.only(t).Worth.Metrics[0]
	equal(t, "n", m.Blocks, 8)
	has(t, "warnings", strings.Join(m.Warnings, "|"), "1 block dropped, the first since the peer vanished")
	if m.Effect < 0.25 || m.Effect > 0.35 {
		t.Errorf("effect %v, want about 0.3", m.Effect)
	}
	delete(b.Slots[0].Metrics, study.Goodput)
	b.Slots[2].Metrics[study.Goodput] = 0
	m = b.only(t).Worth.Metrics[0]
	equal(t, "n with two slots without goodput", m.Blocks, 6)
	has(t, "warnings", strings.Join(m.Warnings, "|"), "2 blocks left out: a slot has no goodput")
}

// TestOtherSlotsDoNotCount adds slots of the A/A phase, of another cell and of
// an arm that is in no contrast.
func TestOtherSlotsDoNotCount(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.run(8, map[string]effect{study.Current: {goodput: 1.3e9}, "tso=off": {goodput: 1e9}})
	want := b.only(t)
	for i := range 8 {
		s := b.Slots[i]
		s.Metrics = map[string]float64{study.Goodput: 1}
		aa, cell, arm := s, s, s
		aa.Phase, cell.Family, arm.Arm = study.PhaseAA, "ipv6", "gro=off"
		b.Slots = append(b.Slots, aa, cell, arm)
	}
	if d := cmp.Diff(want, b.only(t)); d != "" {
		t.Errorf("verdict differs (-want +got):\n%s", d)
	}
}

// factorial builds tso × gro, both on at present, with the plan's own weights.
func factorial(together float64, blocks int) *builder {
	b := newBuilder()
	arms := []string{"tso=off,gro=off", "gro=off", "tso=off", study.Current} // tso runs fastest
	goodput := []float64{1e9, 1.2e9, 1.1e9, 1.2e9 * 1.1 * together}
	effects := map[string]effect{}
	for i, name := range arms {
		a := study.Arm{Name: name}
		check := study.ArmCheck{Arm: name}
		for j, knob := range []string{"tso", "gro"} {
			if i>>j&1 == 0 {
				a.Settings = append(a.Settings, study.Setting{Knob: knob, Value: "off"})
				check.Knobs = append(check.Knobs, study.Moved{Knob: knob, Asked: "off", Got: "off", Was: "on", Moved: true})
			}
		}
		b.arm(a)
		b.Checks = append(b.Checks, check)
		effects[name] = effect{goodput: goodput[i], cpu: 1e9 / goodput[i], noise: 0.002}
	}
	weights := func(w ...float64) (terms []study.Term) {
		for i, name := range arms {
			terms = append(terms, study.Term{Arm: name, Weight: w[i]})
		}
		return terms
	}
	b.Plan.Contrast = []study.Contrast{
		{Knob: "tso", Baseline: "off", Arm: "on", Cell: tx, Terms: weights(-.5, .5, -.5, .5)},
		{Knob: "gro", Baseline: "off", Arm: "on", Cell: tx, Terms: weights(-.5, -.5, .5, .5)},
		{Knob: "tso×gro", Baseline: "apart", Arm: "together", Interaction: true, Cell: tx, Terms: weights(1, -1, -1, 1)},
	}
	return b.run(blocks, effects)
}

func TestFactorial(t *testing.T) {
	vs := verdict.Make(factorial(1, 12).Study)
	for i, want := range []float64{0.2, 0.1} {
		m := vs[i].Worth.Metrics[0]
		if math.Abs(m.Effect-want) > 0.01 || math.Abs(m.Arm/m.Baseline-1-want) > 0.01 {
			t.Errorf("%s: effect %v, %v -> %v, want %v", vs[i].Knob, m.Effect, m.Baseline, m.Arm, want)
		}
		equal(t, vs[i].Knob+" action", vs[i].Advice.Action, study.KeepOn)
	}
	equal(t, "interaction", vs[2].Worth.Answer, study.Same)
	has(t, "advice", vs[2].Advice.Text, "the effects multiply as they are")
	equal(t, "interaction acts", vs[2].Acts.Answer, study.CannotTell)
	equal(t, "interaction right", vs[2].Right.Answer, study.Yes)

	v := verdict.Make(factorial(0.7, 12).Study)[2]
	m := v.Worth.Metrics[0]
	equal(t, "interaction", v.Worth.Answer, study.Worse)
	has(t, "advice", v.Advice.Text, "together they are worse than the product of their effects, goodput -30")
	if math.Abs(m.Effect+0.3) > 0.01 || math.Abs(m.Baseline/1.32e9-1) > 0.01 || math.Abs(m.Arm/0.924e9-1) > 0.01 {
		t.Errorf("interaction %v: %v -> %v, want -0.3 of what a product would be", m.Effect, m.Baseline, m.Arm)
	}
}

// TestValues compares rx-usecs 50 with 0 on a device that has neither.
func TestValues(t *testing.T) {
	b := newBuilder().knob("rx-usecs", "0", "50", "3", tx)
	v := b.run(12, map[string]effect{"rx-usecs=0": {goodput: 1e9}, "rx-usecs=50": {goodput: 1.2e9}}).only(t)
	equal(t, "acts", v.Acts.Answer, study.CannotTell)
	has(t, "acts", v.Acts.Text, "the value was read back")
	p := v.Acts.Proof[0]
	if p.Baseline != "0" || p.Arm != "50" {
		t.Errorf("proof %v -> %v, want 0 -> 50", p.Baseline, p.Arm)
	}
	want := study.Advice{
		Action: study.Set, Command: "ethtool -C eth0 rx-usecs 50", Persistent: "[Link]\nRxCoalesceSec=50us", Text: v.Advice.Text,
	}
	if d := cmp.Diff(want, v.Advice); d != "" {
		t.Errorf("advice differs (-want +got):\n%s", d)
	}
	has(t, "advice", v.Advice.Text, "set rx-usecs to 50: goodput +")
}

func TestShapeWarnings(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.run(8, map[string]effect{study.Current: {goodput: 1.3e9}, "tso=off": {goodput: 1e9}})
	for i := range b.Slots {
		for j := range 40 {
			b.Slots[i].Samples = append(b.Slots[i].Samples, 1e9*(1+0.01*float64(j)+0.001*b.rng.NormFloat64()))
		}
	}
	has(t, "warnings", strings.Join(b.only(t).Worth.Metrics[0].Warnings, "|"), "16 of 16 slots: drifting")
}
