package verdict_test

import (
	"testing"

	"github.com/offlab/offlab/internal/study"
)

func onWire(text string) []study.Finding {
	return []study.Finding{{Kind: "checksum bad", Source: "device: wire", Text: text}}
}

// TestFindings: what a frame shows takes two slots of one side, and void slots
// count.
func TestFindings(t *testing.T) {
	clean := effect{goodput: 1e9}
	bad := effect{goodput: 1e9, findings: onWire("3 of 9 frames")}
	for _, tt := range []struct {
		name         string
		first, later map[string]effect
		void         string // the arm whose slots are void
		answer, text string
	}{
		{"two-slots", map[string]effect{"tso=off": clean, study.Current: bad}, map[string]effect{"tso=off": clean, study.Current: bad}, "", study.Wrong, "checksum bad: 3 of 9 frames (device: wire, block 0)"},
		{"one-slot", map[string]effect{"tso=off": clean, study.Current: bad}, map[string]effect{"tso=off": clean, study.Current: clean}, "", study.Yes, ""},
		{"two-and-one", map[string]effect{"tso=off": bad, study.Current: bad}, map[string]effect{"tso=off": clean, study.Current: bad}, "", study.Wrong, "checksum bad"},
		{"both", map[string]effect{"tso=off": bad, study.Current: bad}, map[string]effect{"tso=off": bad, study.Current: bad}, "", study.CannotTell, "both arms have it: checksum bad"},
		{"void", map[string]effect{"tso=off": clean, study.Current: bad}, map[string]effect{"tso=off": clean, study.Current: bad}, study.Current, study.Wrong, "checksum bad"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder().knob("tso", "off", "on", "on", tx).run(1, tt.first).run(1, tt.later)
			for i := range b.Slots {
				if b.Slots[i].Arm == tt.void {
					b.Slots[i].Void = "time is over"
				}
			}
			v := b.only(t)
			equal(t, "right", v.Right.Answer, tt.answer)
			has(t, "text", v.Right.Text, tt.text)
		})
	}
}

// TestWireCounters: what the counters of the wire and the card say.
func TestWireCounters(t *testing.T) {
	wire := func(more map[string]float64) effect {
		return effect{goodput: 1e9, evidence: both(map[string]float64{
			"device.wire.checked": 5000, "device.wire.data": 5000, "device.wire.psh": 200, "device.nic.tx_packets": 100, "device.Tcp.OutSegs": 5000,
		}, more)}
	}
	for _, tt := range []struct {
		name         string
		off, on      effect
		path         string
		corrupt      float64
		answer, text string
	}{
		{"clean", wire(nil), wire(nil), "base", 0, study.Yes, ""},
		{"psh-lost", wire(nil), wire(map[string]float64{"device.wire.psh": 1}), "base", 0, study.Wrong, "PSH lost: on 3 of 15,000 data segments"},
		{"psh-fewer", wire(nil), wire(map[string]float64{"device.wire.psh": 30}), "base", 0, study.Yes, ""},
		{"psh-of-few-segments", wire(nil), wire(map[string]float64{"device.wire.psh": 0, "device.wire.data": 300}), "base", 0, study.Yes, ""},
		{"gap", wire(nil), wire(map[string]float64{"device.wire.gap": 3}), "base", 0, study.Wrong, "gaps in what reaches the wire"},
		{"gap-by-a-drop", wire(nil), wire(map[string]float64{"device.wire.gap": 3, "device.link.tx_dropped": 1}), "base", 0, study.Yes, ""},
		{"gap-from-before", wire(nil), wire(map[string]float64{"device.wire.gap": 3}), "forwarded", 0, study.Yes, ""},
		{"too-long", wire(nil), wire(map[string]float64{"device.Ip.FragFails": 3}), "forwarded", 0, study.Wrong, "packets too long to send on"},
		{"checksums", wire(nil), wire(map[string]float64{"peer.Tcp.InCsumErrors": 9}), "base", 0, study.Wrong, "checksum errors"},
		{"checksums-as-ordered", wire(nil), wire(map[string]float64{"peer.Tcp.InCsumErrors": 9}), "base", 0.01, study.Yes, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cell := tx
			cell.Path = tt.path
			b := newBuilder().knob("tso", "off", "on", "on", cell).run(3, map[string]effect{"tso=off": tt.off, study.Current: tt.on})
			b.Plan.NIC.Corrupt = tt.corrupt
			v := b.only(t)
			equal(t, "right", v.Right.Answer, tt.answer)
			has(t, "text", v.Right.Text, tt.text)
			found := false
			for _, p := range v.Right.Proof {
				if p.Layer == study.LayerPackets {
					found = true
					has(t, "proof", p.Text, "wire: 15,000 and 15,000 frames checked, 0 wrong")
				}
			}
			if !found {
				t.Error("no proof of the wire")
			}
		})
	}
}

// TestForwardedTimeouts: on the forwarded path those of the host behind the
// router count, which sends the data.
func TestForwardedTimeouts(t *testing.T) {
	cell := tx
	cell.Path = "forwarded"
	on := effect{goodput: 5e4, evidence: map[string]float64{"sink.TcpExt.TCPTimeouts": 1}}
	v := newBuilder().knob("tso", "off", "on", "on", cell).run(3, map[string]effect{"tso=off": {goodput: 1e9}, study.Current: on}).only(t)
	equal(t, "right", v.Right.Answer, study.Wrong)
	has(t, "text", v.Right.Text, "collapse")
}
