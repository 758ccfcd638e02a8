package verdict_test

import (
	"math"
	"strings"
	"testing"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

func changes(from, to string, names ...string) (out []study.Change) {
	for _, n := range names {
		out = append(out, study.Change{Name: n, From: from, To: to})
	}
	return out
}

// TestFeatureProof: one line says what moved, from the baseline to the arm,
// whichever of the two was set.
func TestFeatureProof(t *testing.T) {
	tso := []string{"tx-tcp-ecn-segmentation", "tx-tcp-segmentation", "tx-tcp6-segmentation"}
	for _, tt := range []struct {
		name, current string
		bits, dragged []study.Change
		want          string
	}{
		{"off", "on", changes("on", "off", tso...), nil, "only 3 features off -> on (tx-tcp-segmentation and 2 more)"},
		{"on", "off", changes("off", "on", tso...), nil, "only 3 features off -> on (tx-tcp-segmentation and 2 more)"},
		{"one", "on", changes("on", "off", "rx-gro"), nil, "only rx-gro off -> on"},
		{
			"mixed", "on", append(changes("on", "off", tso...), changes("on", "off [requested on]", "x")...), nil,
			"only 3 features off -> on (tx-tcp-segmentation and 2 more), x off [requested on] -> on",
		},
		{
			"dragged", "on", changes("on", "off", tso...), changes("on", "off", "tx-udp-segmentation"),
			"3 features off -> on (tx-tcp-segmentation and 2 more)|tx-udp-segmentation off -> on, dragged along",
		},
		{"no-bits", "on", nil, nil, "only tso off -> on"},
	} {
		b := newBuilder().knob("tso", "off", "on", tt.current, tx)
		b.Checks[0].Knobs[0].Bits, b.Checks[0].Dragged = tt.bits, tt.dragged
		var texts []string
		for _, p := range b.only(t).Acts.Proof {
			texts = append(texts, p.Text)
		}
		equal(t, tt.name, strings.Join(texts, "|"), tt.want)
	}
}

// TestFeatureProofOfFactorial: what both sides drag along tells them not apart,
// and an interaction has no sides.
func TestFeatureProofOfFactorial(t *testing.T) {
	b := factorial(1, 0)
	for i := range b.Checks {
		for j := range b.Checks[i].Knobs {
			if b.Checks[i].Knobs[j].Knob == "gro" {
				b.Checks[i].Dragged = changes("on", "off", "rx-gro-hw")
			}
		}
	}
	for i, want := range []string{"tso off -> on", "gro off -> on|rx-gro-hw off -> on, dragged along", ""} {
		var texts []string
		for _, p := range verdict.Make(b.Study)[i].Acts.Proof {
			texts = append(texts, p.Text)
		}
		equal(t, b.Plan.Contrast[i].Knob, strings.Join(texts, "|"), want)
	}
}

// TestTrace: the last point is the verdict, and the interval shrinks.
func TestTrace(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.run(12, map[string]effect{study.Current: {goodput: 1.3e9, cpu: 1}, "tso=off": {goodput: 1e9, cpu: 2}})
	b.Slots[6].Void = "the peer vanished" // block 3
	v := b.only(t)
	for i, m := range v.Worth.Metrics {
		points := verdict.Trace(b.Study, v, m.Name)
		if m.Name == study.Retransmits {
			equal(t, "points of a count", len(points), 0)
			continue
		}
		equal(t, "points", len(points), m.Blocks)
		last := points[len(points)-1]
		if last.Effect != m.Effect || *last.Low != *m.Low || *last.High != *m.High || points[3].Block != 4 {
			t.Errorf("metric %d: the trace ends at %+v and jumps to block %d, the verdict is %+v", i, last, points[3].Block, m)
		}
		sum := 0.0
		for _, p := range points {
			sum += p.LogRatio
		}
		if got := math.Expm1(sum / float64(len(points))); math.Abs(got-m.Effect) > 1e-9 {
			t.Errorf("metric %d: the ratios give an effect of %v, want %v", i, got, m.Effect)
		}
		for j := 1; j < len(points); j++ {
			p, q := points[j-1], points[j]
			if p.Low != nil && (*q.Low < *p.Low || *q.High > *p.High) {
				t.Errorf("metric %d: the interval grows from %+v to %+v", i, p, q)
			}
		}
	}
	v.Knob = "gro"
	equal(t, "points of another study", len(verdict.Trace(b.Study, v, study.Goodput)), 0)
}

// TestTraceOfMany: a long study is looked at now and then, and at its end.
func TestTraceOfMany(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.run(450, map[string]effect{study.Current: {goodput: 1e9}, "tso=off": {goodput: 1e9}})
	points, looks := verdict.Trace(b.Study, b.only(t), study.Goodput), 0
	for _, p := range points {
		if p.Looked {
			looks++
		}
	}
	if len(points) != 450 || looks > 201 || !points[449].Looked {
		t.Errorf("%d points and %d looks, the last %v", len(points), looks, points[449].Looked)
	}
}

// TestNoCPUFigure: metrics that lack for one reason say so in the same words, and
// those that no slot has say nothing.
func TestNoCPUFigure(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.run(8, map[string]effect{study.Current: {goodput: 1.3e9, cpu: 1}, "tso=off": {goodput: 1e9, cpu: 2}})
	for i := range b.Slots {
		b.Slots[i].Metrics[study.CPUPerPacket] = 800
	}
	delete(b.Slots[2].Metrics, study.CPUPerByte)
	delete(b.Slots[2].Metrics, study.CPUPerPacket)
	v := b.only(t)
	equal(t, "metrics", len(v.Worth.Metrics), 4)
	for _, m := range v.Worth.Metrics[1:3] {
		equal(t, m.Name, m.Warnings[0], "1 block without a CPU figure: the machine was busy with other work")
	}
}

func TestCommand(t *testing.T) {
	for knob, want := range map[string]string{
		"sg+tso": "ethtool -K eth0 sg on tso on", "gro-hw": "ethtool -K eth0 rx-gro-hw on", "cmd:x": "", "rx-usecs": "ethtool -C eth0 rx-usecs on",
	} {
		equal(t, knob, verdict.Command(knob, "on", "eth0"), want)
	}
}
