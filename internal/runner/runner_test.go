package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/runner"
	"github.com/offlab/offlab/internal/study"
)

// bench is a rig in virtual time: an arm has a mean goodput, slots scatter.
type bench struct {
	now    time.Time
	rng    *rand.Rand
	mean   map[string]float64 // Gbit/s by arm; 1 where missing
	noise  float64            // standard deviation of the log goodput
	stuck  map[string]string  // arms that do not move, and why
	fail   func(n int) error  // the error of slot n, from 0
	void   func(n int) string
	ran    []string // arms in the order they ran
	cancel func(n int)
}

func newBench(seed uint64) *bench {
	return &bench{
		now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), rng: rand.New(rand.NewPCG(seed, 1)),
		mean: map[string]float64{}, noise: 0.005, stuck: map[string]string{},
	}
}

func (b *bench) Check(_ context.Context, arm study.Arm) (study.ArmCheck, error) {
	b.now = b.now.Add(5 * time.Millisecond)
	c := study.ArmCheck{Arm: arm.Name}
	for _, s := range arm.Settings {
		why := b.stuck[arm.Name]
		c.Knobs = append(c.Knobs, study.Moved{Knob: s.Knob, Asked: s.Value, Got: s.Value, Moved: why == "", Reason: why})
	}
	return c, nil
}

func (b *bench) Run(ctx context.Context, s runner.Spec) (study.Slot, error) {
	n := len(b.ran)
	b.ran = append(b.ran, s.Arm.Name)
	if b.cancel != nil {
		b.cancel(n)
	}
	if ctx.Err() != nil {
		return study.Slot{}, ctx.Err()
	}
	b.now = b.now.Add(time.Duration((s.SettleS + s.MeasureS + 0.03) * 1e9))
	slot := study.Slot{SettleS: s.SettleS, MeasuredS: s.MeasureS}
	if b.void != nil {
		slot.Void = b.void(n)
	}
	if b.fail != nil {
		if err := b.fail(n); err != nil {
			return slot, err
		}
	}
	mean, ok := b.mean[s.Arm.Name]
	if !ok {
		mean = 1
	}
	g := mean * 1e9 * math.Exp(b.noise*b.rng.NormFloat64())
	slot.Metrics = map[string]float64{study.Goodput: g, study.CPUPerByte: 1e9 / g, study.Retransmits: 0}
	slot.Evidence = map[string]float64{"peer.load.bytes": g / 8 * s.MeasureS}
	return slot, nil
}

// book is a journal in memory.
type book struct {
	begun int
	slots []study.Slot
	ended []study.End
	full  int // slots that it takes; 0: any number
}

func (b *book) Begin(*study.Study) error { b.begun++; return nil }

func (b *book) Slot(s study.Slot) error {
	if b.full > 0 && len(b.slots) == b.full {
		return errors.New("no space left on device")
	}
	b.slots = append(b.slots, s)
	return nil
}
func (b *book) Noise(study.Noise) error { return nil }
func (b *book) End(e study.End) error   { b.ended = append(b.ended, e); return nil }

// newStudy plans a study of toggles that are on.
func newStudy(t *testing.T, budget float64, cross bool, factors ...runner.Factor) *study.Study {
	t.Helper()
	s := &study.Study{Seed: 7, Plan: study.Plan{BudgetS: budget, SettleS: 0.2, Alpha: 0.05, Load: study.Load{Streams: 1, Verify: true}}}
	err := runner.Arrange(&s.Plan, factors, runner.Shape{
		Cross: cross, Paths: []string{"base"}, Families: []string{"ipv4"}, Loads: []string{"bulk"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func toggle(name, direction string) runner.Factor {
	return runner.Factor{Name: name, Values: []string{"off", "on"}, Current: "on", Directions: []string{direction}}
}

func options(b *bench, j runner.Journal) runner.Options {
	return runner.Options{Now: func() time.Time { return b.now }, Journal: j, Overhead: 0.05}
}

func TestDecidesAndStops(t *testing.T) {
	s, b, j := newStudy(t, 60, false, toggle("tso", "tx")), newBench(1), &book{}
	b.mean["tso=off"] = 0.8
	if err := runner.Run(t.Context(), s, b, options(b, j)); err != nil {
		t.Fatal(err)
	}
	if s.Ended.Why != study.EndDecided || s.Ended.Elapsed > 30 {
		t.Errorf("ended %q after %.0f s, want it decided within 30", s.Ended.Why, s.Ended.Elapsed)
	}
	v := s.Verdicts[0]
	if v.Worth.Answer != study.Better || math.Abs(v.Worth.Metrics[0].Effect-0.25) > 0.02 {
		t.Errorf("verdict %s %+.3f, want better by 0.25", v.Worth.Answer, v.Worth.Metrics[0].Effect)
	}
	if len(s.Noise) == 0 || s.Noise[0].Pairs != s.Plan.AABlocks || math.Abs(s.Noise[0].SD-0.007) > 0.007 {
		t.Errorf("noise %+v, want %d pairs of about 0.7 %%", s.Noise, s.Plan.AABlocks)
	}
	if d := cmp.Diff(s.Slots, j.slots); d != "" || j.begun != 1 || len(j.ended) != 1 {
		t.Errorf("the journal differs from the study, or was begun %d and ended %d times\n%s", j.begun, len(j.ended), d)
	}
	for i := range s.Blocks {
		if n := len(inBlock(s, i)); n != 2 {
			t.Errorf("block %d has %d slots, want 2", i, n)
		}
	}
}

func inBlock(s *study.Study, block int) []study.Slot {
	var out []study.Slot
	for _, slot := range s.Slots {
		if slot.Phase == study.PhaseAB && slot.Block == block {
			out = append(out, slot)
		}
	}
	return out
}

func TestSameIsAnAnswer(t *testing.T) {
	s, b := newStudy(t, 90, false, toggle("cmd:noop", "tx")), newBench(2)
	if err := runner.Run(t.Context(), s, b, options(b, &book{})); err != nil {
		t.Fatal(err)
	}
	if got := s.Verdicts[0].Worth.Answer; got != study.Same {
		t.Errorf("verdict %s after %d blocks, want same", got, s.Blocks)
	}
}

// TestOrder checks that blocks are shuffled, that the order is that of the seed,
// and that the arms of a cell stay next to each other.
func TestOrder(t *testing.T) {
	order := func(seed uint32) []string {
		s, b := newStudy(t, 120, false, toggle("tso", "tx"), toggle("gro", "rx")), newBench(3)
		s.Seed, b.noise = seed, 0.2
		if err := runner.Run(t.Context(), s, b, options(b, &book{})); err != nil {
			t.Fatal(err)
		}
		first := map[string]int{}
		for i := range s.Blocks {
			block := inBlock(s, i)
			first[block[0].Arm+block[0].Direction]++
			if block[0].Direction != block[1].Direction || block[2].Direction != block[3].Direction {
				t.Fatalf("block %d mixes its cells", i)
			}
		}
		if len(first) < 4 {
			t.Errorf("of %d blocks, the first slot was one of %v: the order is not random", s.Blocks, first)
		}
		return b.ran
	}
	a, again, other := order(1), order(1), order(2)
	if !slices.Equal(a, again) {
		t.Error("one seed gave two orders")
	}
	if slices.Equal(a, other) {
		t.Error("two seeds gave one order")
	}
}

func TestStuckKnob(t *testing.T) {
	s, b := newStudy(t, 10, false, runner.Factor{Name: "lro", Values: []string{"off", "on"}, Current: "off", Directions: []string{"rx"}}), newBench(4)
	b.stuck["lro=on"] = "fixed"
	if err := runner.Run(t.Context(), s, b, options(b, &book{})); err != nil {
		t.Fatal(err)
	}
	if len(b.ran) != 0 || s.Ended.Why != study.EndSettled {
		t.Errorf("%d slots ran, ended %q; want none and settled", len(b.ran), s.Ended.Why)
	}
	if v := s.Verdicts[0]; v.Acts.Answer != study.No || !strings.Contains(v.Acts.Text, "fixed") {
		t.Errorf("acts: %s, %q; want no: fixed", v.Acts.Answer, v.Acts.Text)
	}
}

// TestStuckBeside checks that one stuck knob does not keep the other from being
// measured, nor costs it slots.
func TestStuckBeside(t *testing.T) {
	s, b := newStudy(t, 60, false, toggle("tso", "tx"), runner.Factor{Name: "lro", Values: []string{"off", "on"}, Current: "off", Directions: []string{"rx"}}), newBench(5)
	b.stuck["lro=on"], b.mean["tso=off"] = "fixed", 0.5
	if err := runner.Run(t.Context(), s, b, options(b, &book{})); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(b.ran, "lro=on") || s.Ended.Why != study.EndDecided {
		t.Errorf("ended %q; the stuck arm ran: %v", s.Ended.Why, slices.Contains(b.ran, "lro=on"))
	}
}

func TestVoidDropsTheBlock(t *testing.T) {
	s, b := newStudy(t, 60, false, toggle("tso", "tx")), newBench(6)
	b.mean["tso=off"] = 0.8
	b.void = func(n int) string {
		if n == 10 {
			return "stream 0 ended"
		}
		return ""
	}
	if err := runner.Run(t.Context(), s, b, options(b, &book{})); err != nil {
		t.Fatal(err)
	}
	if s.Ended.Why != study.EndDecided {
		t.Errorf("ended %q, want it decided in spite of a void slot", s.Ended.Why)
	}
	ab := 0
	for _, slot := range s.Slots {
		if slot.Phase == study.PhaseAB {
			ab = max(ab, slot.Block+1)
		}
	}
	if s.Blocks != ab-1 {
		t.Errorf("%d blocks of %d count, want all but one", s.Blocks, ab)
	}
}

// TestBrokenArm checks that an arm of which every slot is void does not end the
// study: the A/A phase stops, and the other arm gets its slots.
func TestBrokenArm(t *testing.T) {
	s, b := newStudy(t, 60, false, toggle("tso", "tx")), newBench(6)
	b.void = func(n int) string {
		if b.ran[n] == study.Current {
			return "time is over"
		}
		return ""
	}
	if err := runner.Run(t.Context(), s, b, options(b, &book{})); err != nil {
		t.Fatal(err)
	}
	if aa := slices.IndexFunc(s.Slots, func(s study.Slot) bool { return s.Phase == study.PhaseAB }); aa != 2 {
		t.Errorf("%d slots of the A/A phase, want 2", aa)
	}
	if !slices.Contains(b.ran, "tso=off") {
		t.Errorf("the sound arm did not run: %v", b.ran)
	}
}

func TestGivesUp(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*bench)
		want string
	}{
		"void-forever": {func(b *bench) { b.void = func(int) string { return "no route to host" } }, "no route to host"},
		"gone": {func(b *bench) {
			b.fail = func(n int) error {
				if n < 15 {
					return nil
				}
				return fmt.Errorf("%w: peer vanished", runner.ErrGone)
			}
		}, "peer vanished"},
	} {
		t.Run(name, func(t *testing.T) {
			s, b, j := newStudy(t, 60, false, toggle("tso", "tx")), newBench(7), &book{}
			b.noise = 0.3
			tt.set(b)
			err := runner.Run(t.Context(), s, b, options(b, j))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run = %v, want %q", err, tt.want)
			}
			if s.Ended.Why != study.EndFailed || len(s.Verdicts) != 1 || len(j.ended) != 1 {
				t.Errorf("ended %q with %d verdicts, journal ended %d times", s.Ended.Why, len(s.Verdicts), len(j.ended))
			}
			if len(b.ran) > 20 {
				t.Errorf("%d slots ran before it gave up", len(b.ran))
			}
		})
	}
}

func TestJournalFull(t *testing.T) {
	s, b := newStudy(t, 60, false, toggle("tso", "tx")), newBench(8)
	err := runner.Run(t.Context(), s, b, options(b, &book{full: 9}))
	if err == nil || !strings.Contains(err.Error(), "no space left") || len(b.ran) != 10 {
		t.Errorf("Run = %v after %d slots, want the disk's error after 10", err, len(b.ran))
	}
}

// TestInterruptAndResume checks that a study that was interrupted goes on as it
// would have gone: the same blocks in the same order, and its time counted on.
func TestInterruptAndResume(t *testing.T) {
	whole, wb := newStudy(t, 40, false, toggle("tso", "tx")), newBench(9)
	wb.noise = 0.2
	if err := runner.Run(t.Context(), whole, wb, options(wb, &book{})); err != nil {
		t.Fatal(err)
	}
	s, b := newStudy(t, 40, false, toggle("tso", "tx")), newBench(9)
	b.noise = 0.2
	ctx, cancel := context.WithCancel(t.Context())
	b.cancel = func(n int) {
		if n == 17 {
			cancel()
		}
	}
	if err := runner.Run(ctx, s, b, options(b, &book{})); err != nil {
		t.Fatalf("an interrupt is no error: %v", err)
	}
	if s.Ended.Why != study.EndInterrupted || len(s.Slots) != 17 {
		t.Fatalf("ended %q with %d slots, want interrupted with 17", s.Ended.Why, len(s.Slots))
	}
	j := &book{}
	b.cancel = nil
	if err := runner.Run(t.Context(), s, b, options(b, j)); err != nil {
		t.Fatal(err)
	}
	if j.begun != 0 {
		t.Error("the journal of a resumed study was begun again")
	}
	if s.Ended.Elapsed > 40 || s.Ended.Elapsed < 35 {
		t.Errorf("took %.1f s in all, want the 40 s of the budget", s.Ended.Elapsed)
	}
	for i := range min(s.Blocks, whole.Blocks) {
		for k, slot := range inBlock(s, i) {
			if w := inBlock(whole, i); len(w) > k && w[k].Arm != slot.Arm {
				t.Fatalf("block %d, slot %d is %s, without the interrupt it was %s", i, k, slot.Arm, w[k].Arm)
			}
		}
	}
}

func TestBudgetIsKept(t *testing.T) {
	for _, budget := range []float64{5, 20, 90} {
		s, b := newStudy(t, budget, false, toggle("tso", "tx"), toggle("gro", "rx"), toggle("sg+tso", "tx")), newBench(10)
		b.noise = 0.3
		var warned string
		o := options(b, &book{})
		o.Warn = func(w string) { warned = w }
		if err := runner.Run(t.Context(), s, b, o); err != nil {
			t.Fatal(err)
		}
		if s.Ended.Why != study.EndBudget || s.Ended.Elapsed > budget+12 {
			t.Errorf("budget %.0f s: ended %q after %.1f s", budget, s.Ended.Why, s.Ended.Elapsed)
		}
		if short := budget < 30; short != (warned != "") {
			t.Errorf("budget %.0f s, warned %q", budget, warned)
		}
	}
}

func TestArrange(t *testing.T) {
	weights := func(c study.Contrast) string {
		var out []string
		for _, term := range c.Terms {
			out = append(out, fmt.Sprintf("%+g %s", term.Weight, term.Arm))
		}
		return c.Knob + " " + c.Baseline + ":" + c.Arm + " " + c.Cell.Direction + " = " + strings.Join(out, ", ")
	}
	off := runner.Factor{Name: "gro", Values: []string{"off", "on"}, Current: "off", Directions: []string{"rx"}}
	for name, tt := range map[string]struct {
		factors []runner.Factor
		cross   bool
		arms    []string
		want    []string
	}{
		"two-toggles": {
			[]runner.Factor{toggle("tso", "tx"), off},
			false,
			[]string{"current", "tso=off", "gro=on"},
			[]string{"tso off:on tx = +1 current, -1 tso=off", "gro off:on rx = +1 gro=on, -1 current"},
		},
		"values-with-current": {
			[]runner.Factor{{Name: "rx-usecs", Values: []string{"0", "50", "100"}, Current: "50", Directions: []string{"rx"}}},
			false,
			[]string{"current", "rx-usecs=0", "rx-usecs=100"},
			[]string{"rx-usecs 0:50 rx = +1 current, -1 rx-usecs=0", "rx-usecs 0:100 rx = +1 rx-usecs=100, -1 rx-usecs=0"},
		},
		"values-without-current": {
			[]runner.Factor{{Name: "mtu", Values: []string{"1500", "9000"}, Current: "1400", Directions: []string{"tx"}}},
			false,
			[]string{"mtu=1500", "mtu=9000"},
			[]string{"mtu 1500:9000 tx = +1 mtu=9000, -1 mtu=1500"},
		},
		"factorial": {
			[]runner.Factor{toggle("tso", "tx"), toggle("sg", "tx")},
			true,
			[]string{"tso=off,sg=off", "sg=off", "tso=off", "current"},
			[]string{
				"tso off:on tx = -0.5 tso=off,sg=off, +0.5 sg=off, -0.5 tso=off, +0.5 current",
				"sg off:on tx = -0.5 tso=off,sg=off, -0.5 sg=off, +0.5 tso=off, +0.5 current",
				"tso×sg apart:together tx = +1 tso=off,sg=off, -1 sg=off, -1 tso=off, +1 current",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudy(t, 60, tt.cross, tt.factors...)
			var arms, got []string
			for _, a := range s.Plan.Arms {
				arms = append(arms, a.Name)
			}
			for _, c := range s.Plan.Contrast {
				got = append(got, weights(c))
			}
			if d := cmp.Diff(tt.arms, arms); d != "" {
				t.Errorf("arms\n%s", d)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("contrasts\n%s", d)
			}
		})
	}
}

// TestFactorialFindsInteraction gives two knobs that only help together.
func TestFactorialFindsInteraction(t *testing.T) {
	s, b := newStudy(t, 120, true, toggle("tso", "tx"), toggle("sg", "tx")), newBench(11)
	b.mean = map[string]float64{"current": 1.5, "tso=off": 1, "sg=off": 1, "tso=off,sg=off": 1}
	if err := runner.Run(t.Context(), s, b, options(b, &book{})); err != nil {
		t.Fatal(err)
	}
	for _, v := range s.Verdicts {
		if v.Worth.Answer != study.Better {
			t.Errorf("%s: %s, want better", v.Knob, v.Worth.Answer)
		}
		want := math.Sqrt(1.5) - 1
		if v.Interaction {
			want = 0.5
		}
		if e := v.Worth.Metrics[0].Effect; math.Abs(e-want) > 0.03 {
			t.Errorf("%s: effect %+.3f, want %+.3f", v.Knob, e, want)
		}
	}
}

func TestArrangeRefuses(t *testing.T) {
	three := runner.Factor{Name: "mtu", Values: []string{"1", "2", "3"}, Current: "1", Directions: []string{"tx"}}
	for name, fs := range map[string][]runner.Factor{
		"one": {toggle("tso", "tx")}, "three-values": {toggle("tso", "tx"), three},
	} {
		var p study.Plan
		if err := runner.Arrange(&p, fs, runner.Shape{Cross: true}); err == nil {
			t.Errorf("%s: a factorial of %d factors was arranged", name, len(fs))
		}
	}
}
