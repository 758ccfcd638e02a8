package verdict_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

// studies returns one study of each shape that the tests above make.
func studies() []*study.Study {
	tso := newBuilder().knob("tso", "off", "on", "on", tx)
	tso.run(8, map[string]effect{
		study.Current: {goodput: 1.3e9, cpu: 0.5, evidence: both(sent("device", 39), received("peer", "Ip", 39, 39))},
		"tso=off":     {goodput: 1e9, cpu: 1, evidence: both(sent("device", 1), received("peer", "Ip", 38, 1))},
	})
	tso.Slots[3].Void = "the peer vanished"
	broken := newBuilder().knob("gro", "off", "on", "off", with(tx, "ipv6", "rx"))
	broken.run(6, map[string]effect{
		"gro=on":      {goodput: 13.4e6, retransmits: 899, evidence: received("device", "Ip6", 38, 1), findings: payload("byte 3")},
		study.Current: {goodput: 818e6, evidence: received("device", "Ip6", 1, 1)},
	})
	values := newBuilder().knob("rx-usecs", "0", "50", "3", tx)
	values.run(6, map[string]effect{"rx-usecs=0": {goodput: 1e9}, "rx-usecs=50": {goodput: 1.2e9}})
	return []*study.Study{tso.Study, broken.Study, values.Study, factorial(0.7, 5).Study}
}

// TestMakeIsPure calls Make again and again, and with verdicts of earlier.
func TestMakeIsPure(t *testing.T) {
	for _, s := range studies() {
		before := encoded(t, s)
		want := verdict.Make(s)
		if after := encoded(t, s); !bytes.Equal(before, after) {
			t.Error("Make changed the study")
		}
		s.Verdicts = want
		for range 20 {
			if d := cmp.Diff(want, verdict.Make(s)); d != "" {
				t.Fatalf("Make differs from itself (-first +later):\n%s", d)
			}
		}
	}
}

// TestMakeOfRead checks that the verdicts of a journal read back are those of
// the study that ran.
func TestMakeOfRead(t *testing.T) {
	for _, s := range studies() {
		got, err := study.Read(bytes.NewReader(encoded(t, s)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(verdict.Make(s), verdict.Make(got)); d != "" {
			t.Errorf("verdicts differ (-made +read):\n%s", d)
		}
	}
}

func encoded(tb testing.TB, s *study.Study) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := study.Encode(&b, s); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// FuzzMake checks that no study makes Make panic, and that each contrast has a
// verdict of known words and of finite figures in an interval that holds them.
func FuzzMake(f *testing.F) {
	for _, s := range studies() {
		s.Slots = s.Slots[:min(len(s.Slots), 6)] // small seeds mutate better
		f.Add(encoded(f, s))
	}
	f.Add([]byte(`{"schema":1,"plan":{"contrasts":[{}]},"slots":[]}`))
	f.Add([]byte(`{"schema":1,"plan":{"contrasts":[{"knob":"+","terms":[{"arm":"a","weight":1e308},{"arm":"a","weight":-1e308}]}]},` +
		`"slots":[{"arm":"a","phase":"ab","metrics":{"goodput":5e-324}},{"arm":"a","phase":"ab","block":1,"metrics":{"goodput":1e308}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := study.Read(bytes.NewReader(b))
		if err != nil || s == nil {
			return
		}
		vs := verdict.Make(s)
		if len(vs) != len(s.Plan.Contrast) {
			t.Fatalf("%d verdicts of %d contrasts", len(vs), len(s.Plan.Contrast))
		}
		for _, v := range vs {
			checkVerdict(t, v)
			verdict.Decided(v)
		}
		s.Verdicts = vs
		encoded(t, s)
	})
}

func checkVerdict(t *testing.T, v study.Verdict) {
	t.Helper()
	words := func(what, got string, ok ...string) {
		if !slices.Contains(ok, got) {
			t.Errorf("%s = %q, want one of %q", what, got, ok)
		}
	}
	words("acts", v.Acts.Answer, study.Yes, study.No, study.CannotTell)
	words("right", v.Right.Answer, "", study.Yes, study.Wrong, study.CannotTell)
	words("worth", v.Worth.Answer, "", study.Better, study.Worse, study.Same, study.Small, study.Inconclusive)
	words("action", v.Advice.Action, study.KeepOn, study.TurnOn, study.TurnOff, study.Set, study.Leave)
	if v.Acts.Text == "" && v.Acts.Answer != study.Yes || v.Advice.Text == "" {
		t.Errorf("an answer without a reason: %+v", v)
	}
	for _, m := range v.Worth.Metrics {
		for _, x := range []float64{m.Baseline, m.Arm, m.Effect} {
			if math.IsInf(x, 0) || math.IsNaN(x) {
				t.Errorf("%s: %v -> %v, effect %v", m.Name, m.Baseline, m.Arm, m.Effect)
			}
		}
		if m.Low != nil && m.High != nil && *m.Low > *m.High {
			t.Errorf("%s: interval [%v, %v]", m.Name, *m.Low, *m.High)
		}
	}
	for _, p := range append(v.Acts.Proof, v.Right.Proof...) {
		for _, x := range []any{p.Baseline, p.Arm} {
			if f, ok := x.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
				t.Errorf("proof %+v", p)
			}
		}
	}
}

// BenchmarkMake is what a run pays after each block.
func BenchmarkMake(b *testing.B) {
	s := newBuilder().knob("tso", "off", "on", "on", tx).knob("gro", "off", "on", "on", with(tx, "ipv4", "rx"))
	s.run(50, map[string]effect{
		study.Current: {goodput: 1.3e9, cpu: 0.5, evidence: both(sent("device", 39), received("device", "Ip", 39, 1))},
		"tso=off":     {goodput: 1e9, cpu: 1, evidence: both(sent("device", 1), received("device", "Ip", 38, 1))},
		"gro=off":     {goodput: 1e9, cpu: 1, evidence: both(sent("device", 39), received("device", "Ip", 1, 1))},
	})
	for i := range s.Slots {
		for range 20 {
			s.Slots[i].Samples = append(s.Slots[i].Samples, 1e9*math.Exp(0.02*s.rng.NormFloat64()))
		}
	}
	for b.Loop() {
		verdict.Make(s.Study)
	}
	b.ReportMetric(float64(len(s.Slots)), "slots")
}
