package verdict_test

import (
	"strings"
	"testing"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

func payload(text string) []study.Finding {
	return []study.Finding{{Kind: "payload", Source: "receiver", Text: text}}
}

func TestRight(t *testing.T) {
	// Read, and silent on whether tso acts: no link.tx_packets.
	clean := map[string]float64{"device.Tcp.OutSegs": segments, "device.link.tx_bytes": segments * 1514}
	counter := func(name string, n float64) map[string]float64 {
		return both(clean, map[string]float64{name: n})
	}
	for _, tt := range []struct {
		name    string
		off, on effect
		answer  string
		text    string
		action  string
		advice  string
	}{
		{
			name: "clean", off: effect{goodput: 1e9, evidence: clean}, on: effect{goodput: 1.3e9, evidence: clean},
			answer: study.Yes, text: "compared byte by byte", action: study.KeepOn, advice: "keep on: goodput",
		},
		{
			name: "payload", off: effect{goodput: 1e9}, on: effect{goodput: 1.3e9, findings: payload("byte 1448 is 0x00")},
			answer: study.Wrong, text: "payload: byte 1448 is 0x00 (receiver, block 0)", action: study.TurnOff, advice: "turn off: on is wrong (payload)",
		},
		{
			name: "payload-of-baseline", off: effect{goodput: 1e9, findings: payload("byte 9")}, on: effect{goodput: 1e9},
			answer: study.Wrong, text: "the baseline (off) is the broken one: payload: byte 9", action: study.KeepOn, advice: "keep on: off is wrong (payload)",
		},
		{
			name: "payload-of-both", off: effect{goodput: 1e9, findings: payload("byte 9")}, on: effect{goodput: 1.3e9, findings: payload("byte 9")},
			answer: study.CannotTell, text: "both arms have it: payload", action: study.KeepOn, advice: "keep on: goodput",
		},
		{
			name: "different-faults", off: effect{goodput: 1e9, findings: payload("byte 9")}, on: effect{goodput: 1e9, evidence: counter("peer.Tcp.InCsumErrors", 4)},
			answer: study.Wrong, text: "on: checksum errors per GB", action: study.Leave, advice: "both values are wrong",
		},
		{
			name: "checksum", off: effect{goodput: 1e9, evidence: clean}, on: effect{goodput: 1e9, evidence: counter("peer.Tcp.InCsumErrors", 4)},
			answer: study.Wrong, text: "checksum errors per GB: 0.0 -> 16.0 (peer: Tcp.InCsumErrors (/proc/net/snmp))", action: study.TurnOff, advice: "turn off: on is wrong",
		},
		{
			name: "checksum-of-both", off: effect{goodput: 1e9, evidence: counter("peer.Tcp.InCsumErrors", 3)}, on: effect{goodput: 1e9, evidence: counter("peer.Tcp.InCsumErrors", 4)},
			answer: study.CannotTell, text: "both arms have it: checksum errors",
		},
		{
			name: "checksum-much-more", off: effect{goodput: 1e9, evidence: counter("peer.Tcp.InCsumErrors", 1)}, on: effect{goodput: 1e9, evidence: counter("peer.Tcp.InCsumErrors", 4)},
			answer: study.Wrong, text: "checksum errors",
		},
		{
			name: "drops", off: effect{goodput: 1e9, evidence: clean}, on: effect{goodput: 0.7e9, evidence: counter("peer.link.rx_dropped", 20_000)},
			answer: study.Wrong, text: "drops per GB",
		},
		{
			// A full queue drops some packets to slow TCP down.
			name: "ordinary-drops", off: effect{goodput: 1e9, evidence: clean}, on: effect{goodput: 1e9, evidence: counter("peer.link.rx_dropped", 100)},
			answer: study.Yes, text: "compared byte by byte",
		},
		{
			// veth with GRO and four streams: 4 % overran the ring of the receiver,
			// which carried no less for it.
			name: "drops-of-overrun", off: effect{goodput: 4.4e9, evidence: clean}, on: effect{goodput: 4.6e9, evidence: counter("peer.link.rx_dropped", 200_000)},
			answer: study.Yes, text: "compared byte by byte",
		},
		{
			name: "resets", off: effect{goodput: 1e9, evidence: clean}, on: effect{goodput: 1e9, evidence: counter("peer.Tcp.EstabResets", 1)},
			answer: study.Wrong, text: "resets per slot: 0.0 -> 1.0",
		},
		{
			// The load may end its connections with a reset, in both arms.
			name: "resets-of-both", off: effect{goodput: 8e9, evidence: counter("peer.Tcp.EstabResets", 1)}, on: effect{goodput: 1e9, evidence: counter("peer.Tcp.EstabResets", 1)},
			answer: study.Yes, text: "compared byte by byte",
		},
		{
			// The VLAN case of the stmmac thread, in 10 s each.
			name: "collapse", off: effect{goodput: 818e6, retransmits: 0}, on: effect{goodput: 13.4e6, retransmits: 899},
			answer: study.Wrong, text: "while the other arm has 81", action: study.TurnOff, advice: "turn off: on is wrong (collapse)",
		},
		{
			name: "collapse-of-baseline", off: effect{goodput: 13.4e6, retransmits: 899}, on: effect{goodput: 818e6},
			answer: study.Wrong, text: "the baseline (off) is the broken one: collapse", action: study.KeepOn, advice: "keep on: off is wrong",
		},
		{
			name: "collapse-by-timeouts", off: effect{goodput: 818e6}, on: effect{goodput: 1e5, retransmits: 8, evidence: map[string]float64{"device.TcpExt.TCPTimeouts": 8}},
			answer: study.Wrong, text: "8.0 retransmission timeouts a slot",
		},
		{
			name: "collapse-to-nothing", off: effect{goodput: 818e6}, on: effect{goodput: 16, evidence: map[string]float64{"peer.load.stalled": 1}},
			answer: study.Wrong, text: "nothing moved in", action: study.TurnOff, advice: "turn off: on is wrong (collapse)",
		},
		{
			name: "ruin-with-few-timeouts", off: effect{goodput: 818e6}, on: effect{goodput: 1e5, retransmits: 1, evidence: map[string]float64{"device.TcpExt.TCPTimeouts": 1}},
			answer: study.Wrong, text: "1.0 retransmission timeouts a slot",
		},
		{
			name: "slow-with-timeouts", off: effect{goodput: 1e9, retransmits: 4, evidence: map[string]float64{"device.TcpExt.TCPTimeouts": 4}}, on: effect{goodput: 8e9},
			answer: study.Yes, text: "compared byte by byte", action: study.KeepOn, advice: "keep on: goodput",
		},
		{
			// 672 and 45 retransmits in a second of veth: slow, not broken.
			name: "slow", off: effect{goodput: 3.2e9, retransmits: 1344}, on: effect{goodput: 8.5e9, retransmits: 90},
			answer: study.Yes, text: "compared byte by byte", action: study.KeepOn, advice: "keep on: goodput",
		},
		{
			name: "slow-without-loss", off: effect{goodput: 1e9}, on: effect{goodput: 13.4e6},
			answer: study.Yes, text: "compared byte by byte", action: study.TurnOff, advice: "turn off: goodput",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder().knob("tso", "off", "on", "on", tx)
			v := b.run(12, map[string]effect{study.Current: tt.on, "tso=off": tt.off}).only(t)
			equal(t, "right", v.Right.Answer, tt.answer)
			has(t, "text", v.Right.Text, tt.text)
			if tt.action != "" {
				equal(t, "action", v.Advice.Action, tt.action)
			}
			has(t, "advice", v.Advice.Text, tt.advice)
			wrong := v.Right.Answer == study.Wrong
			if wrong != (v.Worth.Answer == "") || len(v.Worth.Metrics) == 0 {
				t.Errorf("right is %s, worth %q with %d metrics", v.Right.Answer, v.Worth.Answer, len(v.Worth.Metrics))
			}
			if wrong && !verdict.Decided(v) {
				t.Error("wrong and not decided")
			}
		})
	}
}

func TestRightProof(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	v := b.run(4, map[string]effect{
		study.Current: {goodput: 1.3e9, evidence: sent("device", 39), retransmits: 2, noise: 1e-9},
		"tso=off":     {goodput: 1e9, evidence: both(sent("device", 1), map[string]float64{"peer.load.bytes": 251e6}), noise: 1e-9},
	}).only(t)
	var texts []string
	for _, p := range v.Right.Proof {
		texts = append(texts, p.Text)
		if p.Source == "" || p.Baseline == nil || p.Arm == nil {
			t.Errorf("proof %+v lacks source or figures", p)
		}
	}
	for _, want := range []string{
		"1.00 GB and 1.30 GB compared byte by byte", // counted, and by goodput
		"checksum errors per GB: 0.0 -> 0.0", "drops per GB: 0.0 -> 0.0",
		"resets per slot: 0.0 -> 0.0", "retransmits per GB: 0.0 -> 6.2",
	} {
		has(t, "proofs", strings.Join(texts, "|"), want)
	}
}

func TestRightUnverified(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.Plan.Load.Verify = false
	effects := map[string]effect{study.Current: {goodput: 1.3e9}, "tso=off": {goodput: 1e9}}
	v := b.run(8, effects).only(t)
	equal(t, "right", v.Right.Answer, study.CannotTell)
	equal(t, "text", v.Right.Text, "payload not checked")
	equal(t, "worth", v.Worth.Answer, study.Better)
	equal(t, "Decided", verdict.Decided(v), true)
}

// TestRightVoid checks that corruption is seen in the slot that it voids.
func TestRightVoid(t *testing.T) {
	b := newBuilder().knob("tso", "off", "on", "on", tx)
	b.run(8, map[string]effect{study.Current: {goodput: 1e9}, "tso=off": {goodput: 1e9}})
	for i := range b.Slots {
		if s := &b.Slots[i]; s.Block == 5 && s.Arm == study.Current {
			s.Void, s.Findings = "the load broke off", payload("byte 7")
		}
	}
	v := b.only(t)
	equal(t, "right", v.Right.Answer, study.Wrong)
	has(t, "text", v.Right.Text, "byte 7 (receiver, block 5)")
}
