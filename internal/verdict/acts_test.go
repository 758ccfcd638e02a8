package verdict_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

func TestActs(t *testing.T) {
	rx := with(tx, "ipv4", "rx")
	rx6 := with(tx, "ipv6", "rx")
	for _, tt := range []struct {
		name, knob string
		cell       study.Cell
		off, on    map[string]float64
		answer     string
		text       string // of the answer
		proof      string // in some proof's text
		source     string // in some proof's source
	}{
		{
			name: "tso", knob: "tso", cell: tx, off: sent("device", 1), on: sent("device", 39.3),
			answer: study.Yes, text: "segments per packet handed to the device: 1.0 -> 39.3",
			proof:  "both arms build 39.0 segments a packet", // which decides nothing
			source: "device: Tcp.OutSegs (/proc/net/snmp) / link.tx_packets (rtnetlink)",
		},
		{
			name: "tso-counts-wire-packets", knob: "tso", cell: tx, off: sent("device", 1), on: sent("device", 1),
			answer: study.CannotTell, text: "this source cannot tell",
		},
		{
			name: "tso-without-effect", knob: "tso", cell: tx, off: sent("device", 39), on: sent("device", 39.3),
			answer: study.No, text: "both arms hand 39.3 segments a packet to the device: packets reach the device unsegmented",
		},
		{
			name: "tso-against-its-promise", knob: "tso", cell: tx, off: sent("device", 39), on: sent("device", 1),
			answer: study.CannotTell, text: "it moved against what the knob promises",
		},
		{
			name: "tso-little-change", knob: "tso", cell: tx, off: sent("device", 20), on: sent("device", 24),
			answer: study.CannotTell, text: "too small a change to tell",
		},
		{
			name: "tso-while-receiving", knob: "tso", cell: rx, off: sent("device", 1), on: sent("device", 39),
			answer: study.CannotTell, text: "tso acts on what its end sends, and here the peer does that",
		},
		{
			name: "tso-not-measured", knob: "tso", cell: tx,
			answer: study.CannotTell, text: "the counters that would show it were not measured",
		},
		{
			name: "sg-and-tso", knob: "sg+tso", cell: tx, off: sent("device", 1), on: sent("device", 39.3),
			answer: study.Yes, text: "handed to the device: 1.0 -> 39.3",
		},
		{
			name: "sg-and-tso-without-effect", knob: "sg+tso", cell: tx, off: sent("device", 39.3), on: sent("device", 39.3),
			answer: study.No, text: "packets reach the device unsegmented",
		},
		{
			name: "sg-alone", knob: "sg", cell: tx, off: sent("device", 39.3), on: sent("device", 39.3),
			answer: study.CannotTell, text: "no counter shows scatter/gather by itself",
		},
		{
			name: "gso", knob: "gso", cell: tx, off: sent("device", 1), on: sent("device", 1),
			answer: study.No, text: "both arms build 39.0 segments a packet: TCP builds super-packets whatever the flag says (since Linux 4.17)",
			proof: "both arms hand 1.0 segments a packet to the device",
		},
		{
			name: "tso4-in-ipv6", knob: "tx-tcp-segmentation", cell: with(tx, "ipv6", "tx"), off: sent("device", 1), on: sent("device", 39),
			answer: study.CannotTell, text: "tx-tcp-segmentation is about ipv4, and this is ipv6",
		},
		{
			name: "tso4-in-ipv4", knob: "tx-tcp-segmentation", cell: tx, off: sent("device", 1), on: sent("device", 39),
			answer: study.Yes, text: "1.0 -> 39.0",
		},
		{
			name: "gro", knob: "gro", cell: rx, off: received("device", "Ip", 1, 1), on: received("device", "Ip", 38, 1),
			answer: study.Yes, text: "segments per packet that reaches IP: 1.0 -> 38.0",
			proof:  "device packets per IP packet: 1.0 -> 38.0",
			source: "device: IpExt.In*Pkts (/proc/net/netstat) / Ip.InReceives (/proc/net/snmp)",
		},
		{
			name: "gro-ipv6", knob: "rx-gro", cell: rx6, off: received("device", "Ip6", 1, 1), on: received("device", "Ip6", 38, 1),
			answer: study.Yes, text: "segments per packet that reaches IP: 1.0 -> 38.0",
			source: "device: Ip6.In*Pkts (/proc/net/snmp6) / Ip6.InReceives (/proc/net/snmp6)",
		},
		{
			// The other family's counters prove nothing.
			name: "gro-wrong-family", knob: "gro", cell: rx6, off: received("device", "Ip", 1, 1), on: received("device", "Ip", 38, 1),
			answer: study.CannotTell, text: "were not measured",
		},
		{
			name: "gro-behind-a-veth", knob: "gro", cell: rx, off: received("device", "Ip", 39.6, 39.6), on: received("device", "Ip", 39.3, 39.3),
			answer: study.No, text: "both arms deliver 39.3 segments a packet: the packets were already aggregated when they reached the device",
			proof: "both arms see 1.0 device packets per IP packet",
		},
		{
			name: "gro-of-nothing", knob: "gro", cell: rx, off: received("device", "Ip", 1, 1), on: received("device", "Ip", 1, 1),
			answer: study.No, text: "both arms deliver 1.0 segments a packet: nothing is aggregated in either arm",
		},
		{
			name: "lro-behind-gro", knob: "lro", cell: rx, off: received("device", "Ip", 38, 1), on: received("device", "Ip", 38, 12),
			answer: study.Yes, text: "segments per packet that the device counts: 1.0 -> 12.0",
			proof: "rx-gro aggregates in both arms",
		},
		{
			name: "lro-hidden-by-gro", knob: "lro", cell: rx, off: received("device", "Ip", 38, 1), on: received("device", "Ip", 38, 1),
			answer: study.CannotTell, text: "rx-gro aggregates in both arms",
		},
		{
			name: "tx-checksum", knob: "tx", cell: tx, off: sent("device", 1), on: sent("device", 1),
			answer: study.CannotTell, text: "the feature bits changed; no counter shows what they do",
		},
		{
			name: "command", knob: "cmd:noop", cell: tx, off: sent("device", 1), on: sent("device", 39),
			answer: study.CannotTell, text: "a command's effect cannot be read back",
		},
		{
			name: "sysctl", knob: "net.ipv4.tcp_sack", cell: tx, answer: study.CannotTell, text: "the value was read back",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder().knob(tt.knob, "off", "on", "on", tt.cell)
			v := b.run(6, map[string]effect{
				study.Current: {goodput: 1e9, evidence: tt.on}, tt.knob + "=off": {goodput: 1e9, evidence: tt.off},
			}).only(t)
			equal(t, "acts", v.Acts.Answer, tt.answer)
			has(t, "text", v.Acts.Text, tt.text)
			var texts, sources []string
			for _, p := range v.Acts.Proof {
				texts, sources = append(texts, p.Text), append(sources, p.Source)
			}
			has(t, "proof", strings.Join(texts, "|"), tt.proof)
			has(t, "source", strings.Join(sources, "|"), tt.source)
			has(t, "proof", texts[0], "off -> on")
			if v.Acts.Answer == study.No {
				if v.Right.Answer != "" || v.Worth.Answer != "" || len(v.Worth.Metrics) > 0 || !verdict.Decided(v) {
					t.Errorf("answers after a no: %+v", v)
				}
				has(t, "advice", v.Advice.Text, "no reason to touch it: it does nothing here")
				equal(t, "action", v.Advice.Action, study.Leave)
			}
			for i := range sources {
				for j := range i {
					if sources[i] == sources[j] && texts[i] == texts[j] {
						t.Errorf("proof %q is given twice", texts[i])
					}
				}
			}
		})
	}
}

// TestActsReversed reads a contrast whose arm has the knob off.
func TestActsReversed(t *testing.T) {
	b := newBuilder().knob("tso", "on", "off", "on", tx)
	v := b.run(6, map[string]effect{
		study.Current: {goodput: 1e9, evidence: sent("device", 39)}, "tso=off": {goodput: 1e9, evidence: sent("device", 1)},
	}).only(t)
	equal(t, "acts", v.Acts.Answer, study.Yes)
	has(t, "text", v.Acts.Text, "39.0 -> 1.0")
	if p := v.Acts.Proof[0]; p.Baseline != "on" || p.Arm != "off" {
		t.Errorf("feature proof %v -> %v, want on -> off", p.Baseline, p.Arm)
	}
}

// TestActsAtPeer has the device under test at the far end: it keeps its role, and
// the advice says where it is.
func TestActsAtPeer(t *testing.T) {
	rx := tx
	rx.Direction = "rx"
	b := newBuilder().knob("gro", "off", "on", "on", rx)
	b.Plan.Side = "peer"
	v := b.run(6, map[string]effect{
		study.Current: {goodput: 1e9, evidence: received("device", "Ip", 38, 1)},
		"gro=off":     {goodput: 0.5e9, evidence: received("device", "Ip", 1, 1)},
	}).only(t)
	equal(t, "acts", v.Acts.Answer, study.Yes)
	has(t, "source", v.Acts.Proof[0].Source, "device: feature bits")
	has(t, "advice", v.Advice.Text, "keep on at the peer: ")
	has(t, "command", v.Advice.Command, "ethtool -K eth0 gro on")
}

func TestActsValues(t *testing.T) {
	size := func(bytes float64) map[string]float64 {
		return map[string]float64{"device.link.tx_bytes": bytes * 1000, "device.Tcp.OutSegs": 1000, "device.Ip.OutRequests": 1000}
	}
	for _, tt := range []struct {
		name, knob, first, second string
		a, b                      map[string]float64
		answer, text              string
	}{
		{"larger", "mtu", "1500", "9000", size(1514), size(9014), study.Yes, "bytes per segment sent: 1,514 -> 9,014"},
		{"smaller", "mtu", "9000", "1500", size(9014), size(1514), study.Yes, "9,014 -> 1,514"},
		{"mss-is-clamped", "mtu", "1500", "9000", size(1514), size(1514), study.No, "both arms send 1,514 bytes a segment: segments have the same size"},
		{"close", "mtu", "1500", "1600", size(1514), size(1614), study.CannotTell, "too close to tell"},
		{"gso-limit", "gso_max_size", "16384", "65536", size(14000), size(60000), study.Yes, "bytes per packet that TCP builds"},
		{"gso-limit-not-reached", "gso_max_size", "16384", "65536", size(9000), size(9000), study.No, "packets do not reach the smaller limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder().knob(tt.knob, tt.first, tt.second, tt.first, tx)
			v := b.run(6, map[string]effect{
				study.Current: {goodput: 1e9, evidence: tt.a}, tt.knob + "=" + tt.second: {goodput: 1e9, evidence: tt.b},
			}).only(t)
			equal(t, "acts", v.Acts.Answer, tt.answer)
			has(t, "text", v.Acts.Text, tt.text)
		})
	}
}

// TestActsFixed takes a knob that the driver does not let move.
func TestActsFixed(t *testing.T) {
	b := newBuilder().knob("lro", "off", "on", "off", tx)
	b.Checks[0].Knobs[0] = study.Moved{Knob: "lro", Asked: "on", Got: "off", Was: "off", Reason: "fixed"}
	v := b.only(t)
	equal(t, "acts", v.Acts.Answer, study.No)
	equal(t, "text", v.Acts.Text, "lro stays off: fixed")
	p := v.Acts.Proof[0]
	equal(t, "proof", p.Text, "lro was set to on and is off")
	if p.Baseline != "off" || p.Arm != "off" || p.Layer != study.LayerFeatures {
		t.Errorf("proof = %+v, want off in both arms", p)
	}
	equal(t, "right", v.Right.Answer, "")
	equal(t, "worth", v.Worth.Answer, "")
	equal(t, "action", v.Advice.Action, study.Leave)
	equal(t, "advice", v.Advice.Text, "no reason to touch it: it cannot be changed here")
	equal(t, "Decided", verdict.Decided(v), true)
}

// TestActsPartStuck joins two knobs, of which one moves.
func TestActsPartStuck(t *testing.T) {
	b := newBuilder().knob("sg+tso", "off", "on", "off", tx)
	b.Checks[0].Knobs = []study.Moved{
		{Knob: "sg", Asked: "on", Got: "on", Was: "off", Moved: true},
		{Knob: "tso", Asked: "on", Got: "off", Was: "off", Reason: "the driver refuses it"},
	}
	v := b.only(t)
	equal(t, "acts", v.Acts.Answer, study.No)
	equal(t, "text", v.Acts.Text, "tso stays off: the driver refuses it")
}

// TestActsOtherKnobStuck crosses tso with a knob that does not move: nothing is
// learnt about tso, and nothing is to be waited for.
func TestActsOtherKnobStuck(t *testing.T) {
	b := factorial(1, 0)
	for i, c := range b.Checks {
		for j := range c.Knobs {
			if k := &b.Checks[i].Knobs[j]; k.Knob == "gro" {
				k.Moved, k.Got, k.Reason = false, "on", "fixed"
			}
		}
	}
	vs := verdict.Make(b.Study)
	equal(t, "tso", vs[0].Acts.Answer, study.CannotTell)
	equal(t, "tso", vs[0].Acts.Text, "not measured: arm tso=off,gro=off cannot be set up: gro stays on: fixed")
	equal(t, "gro", vs[1].Acts.Answer, study.No)
	equal(t, "interaction", vs[2].Acts.Answer, study.No)
	for _, v := range vs {
		equal(t, "Decided", verdict.Decided(v), true)
		equal(t, "action", v.Advice.Action, study.Leave)
	}
}

func TestActsDragged(t *testing.T) {
	b := newBuilder().knob("gro", "off", "on", "on", with(tx, "ipv4", "rx"))
	b.Checks[0].Knobs[0].Bits = []study.Change{{Name: "rx-gro", From: "on", To: "off"}}
	b.Checks[0].Dragged = []study.Change{{Name: "rx-gro-hw", From: "on", To: "off"}}
	proof := b.only(t).Acts.Proof
	equal(t, "bits", proof[0].Text, "rx-gro off -> on")
	equal(t, "dragged", proof[1].Text, "rx-gro-hw off -> on, dragged along")
	if proof[1].Baseline != "off" || proof[1].Arm != "on" {
		t.Errorf("dragged %v -> %v, want off -> on: the arm is the present state", proof[1].Baseline, proof[1].Arm)
	}
}

// TestActsOneBlock checks that one odd slot is not a no, while a yes stands.
func TestActsOneBlock(t *testing.T) {
	run := func(off, on map[string]float64) string {
		b := newBuilder().knob("gro", "off", "on", "on", with(tx, "ipv4", "rx"))
		return b.run(1, map[string]effect{
			study.Current: {goodput: 1e9, evidence: on}, "gro=off": {goodput: 1e9, evidence: off},
		}).only(t).Acts.Answer
	}
	same := received("device", "Ip", 39, 39)
	equal(t, "same in one block", run(same, maps.Clone(same)), study.CannotTell)
	equal(t, "changed in one block", run(received("device", "Ip", 1, 1), same), study.Yes)
}
