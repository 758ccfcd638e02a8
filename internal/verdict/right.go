package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// A violation is a counter that tells of something broken. Its rate is per
// gigabyte of payload, since a faster arm has more packets to lose.
type violation struct {
	name     string
	counters []string // without the role: of both ends
	// perSegment is the share of segments below which it is ordinary: a full
	// queue drops packets to tell TCP so, which is no fault.
	perSegment float64
	// slower counts only against a side that carries less than loadBearing of
	// what the other does: a receiver that is kept busy drops what overruns it,
	// and one that is offered more drops more.
	slower bool
	// perSlot counts by the slot: once a connection, however much it carries.
	// In both arms it is how the load ends, and no fault.
	perSlot bool
	// but is counters of the same end that explain it: then a slot has none.
	but []string
	// own says that it tells of the device only where its host is an end of the
	// load: a router sends on what it gets.
	own bool
}

const checksumErrors = "checksum errors"

var violations = []violation{
	{name: checksumErrors, counters: []string{
		"Tcp.InCsumErrors", "Udp.InCsumErrors", "Udp6.InCsumErrors", "IpExt.InCsumErrors",
		"link.rx_crc_errors", "link.rx_frame_errors", "link.rx_length_errors",
	}},
	{name: "drops", perSegment: 0.01, slower: true, counters: []string{
		"link.rx_dropped", "link.tx_dropped", "link.rx_missed_errors", "link.rx_fifo_errors", "link.rx_over_errors",
		"link.tx_fifo_errors", "link.tx_aborted_errors", "link.tx_carrier_errors", "Ip.InDiscards", "Ip.OutDiscards", "Ip6.InDiscards", "Ip6.OutDiscards",
	}},
	{name: "packets too long to send on", counters: []string{"Ip.FragFails", "Ip6.FragFails"}},
	{name: "gaps in what reaches the wire", counters: []string{"wire.gap"}, but: []string{"link.tx_dropped", "nic.tx_no_room"}, own: true},
	{name: "resets", perSlot: true, counters: []string{"Tcp.EstabResets"}},
}

// Limits of a violation and of a collapse.
const (
	minSlots     = 2    // in which a counter rises: once may be chance
	rateRatio    = 3    // rate of the broken arm over that of the other
	loadBearing  = 0.8  // of the other arm's goodput
	collapse     = 0.5  // of the other arm's goodput, and less
	retransRatio = 10   // retransmits per gigabyte over those of the other arm
	retransMin   = 10   // in a slot
	retransShare = 0.03 // of the segments, and more
	timeoutsMin  = 2    // in a slot
	ruin         = 0.05 // of the other arm's goodput: then a timeout in every other slot is enough,
	timeoutsRuin = 0.5  // since the pauses between them outgrow a slot
	timeoutSegs  = 1000 // segments that come through for each timeout, at most
	segmentBytes = 1448 // payload of a segment, MTU 1500 with timestamps
	giga         = 1e9
)

// A fault is a violation that was found, on one side or on both.
type fault struct {
	text string
	on   [2]bool // baseline, arm
}

func (f fault) both() bool { return f.on[0] && f.on[1] }

// right answers whether the traffic is what it should be, and says which side
// is broken if one is.
func (w *view) right() (study.Answer, side) {
	slots := [2][]*study.Slot{w.slotsOf(baseline), w.slotsOf(arm)}
	proof := append(w.payloadProof(slots), w.wireProof(slots)...)
	faults := w.findings()
	if !w.c.Interaction { // whose sides are not two conditions of the device
		counted, more := w.counted(slots)
		faults, proof = append(faults, counted...), append(proof, more...)
		faults = append(faults, w.pushless(slots)...)
		faults = append(faults, w.collapsed(slots)...)
	}
	answer, text, broken := w.ruling(faults)
	switch {
	case answer != "":
	case len(slots[0]) == 0 || len(slots[1]) == 0:
		answer, text = study.CannotTell, "nothing was measured in both arms"
	case !w.s.Plan.Load.Verify:
		answer, text = study.CannotTell, "payload not checked"
	default:
		answer, text = study.Yes, comparedText(slots)
	}
	return study.Answer{Answer: answer, Text: text, Proof: proof}, broken
}

// ruling sums faults up. A fault of one side is the knob's; one of both sides
// says nothing about it.
func (w *view) ruling(faults []fault) (answer, text string, broken side) {
	var ofBase, ofArm, ofBoth []string
	for _, f := range faults {
		switch {
		case f.both():
			ofBoth = append(ofBoth, f.text)
		case f.on[1]:
			ofArm = append(ofArm, f.text)
		default:
			ofBase = append(ofBase, f.text)
		}
	}
	switch {
	case len(ofArm) > 0 && len(ofBase) > 0:
		return study.Wrong, fmt.Sprintf("%s: %s; %s: %s", w.c.Arm, join(ofArm), w.c.Baseline, join(ofBase)), neither
	case len(ofArm) > 0:
		return study.Wrong, join(ofArm), arm
	case len(ofBase) > 0:
		return study.Wrong, fmt.Sprintf("the baseline (%s)%s%s", w.c.Baseline, brokenOne, join(ofBase)), baseline
	case len(ofBoth) > 0:
		return study.CannotTell, "both arms have it: " + join(ofBoth), neither
	default:
		return "", "", neither
	}
}

const brokenOne = " is the broken one: "

func join(texts []string) string { return strings.Join(texts, "; ") }

// slotsOf returns the slots of one side that count, in incomplete blocks too.
func (w *view) slotsOf(of side) []*study.Slot {
	return w.slots(of, func(s *study.Slot) bool { return s.Void == "" && s.Phase == study.PhaseAB })
}

func (w *view) slots(of side, ok func(*study.Slot) bool) []*study.Slot {
	var names []string
	for _, t := range w.terms {
		if sideOf(t.Weight) == of {
			names = append(names, t.Arm)
		}
	}
	var out []*study.Slot
	for i := range w.s.Slots {
		s := &w.s.Slots[i]
		if s.Cell == w.c.Cell && slices.Contains(names, s.Arm) && ok(s) {
			out = append(out, s)
		}
	}
	return out
}

// payloadKind is the kind of finding that is sure when seen once: every other
// takes two slots, since one slot may be odd.
const payloadKind = "payload"

// findings returns the violated invariants that slots report, by kind. Void
// slots count, and those of the A/A phase: corruption may be what voids a slot.
func (w *view) findings() []fault {
	type tally struct {
		fault
		slots [2]int
	}
	var kinds []string
	tallies := map[string]*tally{}
	for i, of := range []side{baseline, arm} {
		for _, s := range w.slots(of, func(*study.Slot) bool { return true }) {
			var here []string
			for _, f := range s.Findings {
				y := tallies[f.Kind]
				if y == nil {
					y = &tally{fault: fault{text: fmt.Sprintf("%s: %s (%s, block %d)", f.Kind, f.Text, f.Source, s.Block)}}
					tallies[f.Kind], kinds = y, append(kinds, f.Kind)
				}
				if !slices.Contains(here, f.Kind) {
					y.slots[i]++
					here = append(here, f.Kind)
				}
			}
		}
	}
	var faults []fault
	for _, k := range kinds {
		y := tallies[k]
		for i, n := range y.slots {
			y.on[i] = n >= minSlots || k == payloadKind && n > 0
		}
		if y.on[0] || y.on[1] {
			faults = append(faults, y.fault)
		}
	}
	return faults
}

// payloadProof tells how much was compared.
func (w *view) payloadProof(slots [2][]*study.Slot) []study.Proof {
	if !w.s.Plan.Load.Verify {
		return nil
	}
	var size [2]float64
	for i := range slots {
		size[i] = bounded(bytesOf(slots[i]))
	}
	return []study.Proof{{
		Layer: study.LayerPayload, Source: other(w.sender()) + ": the load's receiver, which compares every byte",
		Baseline: size[0], Arm: size[1], Text: comparedText(slots),
	}}
}

// comparedText says how much was compared. It is also the answer if nothing is
// wrong.
func comparedText(slots [2][]*study.Slot) string {
	return fmt.Sprintf("%s and %s compared byte by byte",
		unit.Value(bounded(bytesOf(slots[0])), "B"), unit.Value(bounded(bytesOf(slots[1])), "B"))
}

// bytesOf is the payload that slots delivered, as the load's receiver counted
// it or, without that, by their goodput.
func bytesOf(slots []*study.Slot) float64 {
	sum := 0.0
	for _, s := range slots {
		bytes, ok := s.Evidence[roleDevice+".load.bytes"]
		if !ok {
			bytes, ok = s.Evidence[rolePeer+".load.bytes"]
		}
		if !ok {
			bytes = s.Metrics[study.Goodput] * s.MeasuredS / 8
		}
		sum += max(bytes, 0)
	}
	return sum
}

// perGB is a count per gigabyte. Where nothing came through it is a count per
// byte that should have been: large and finite.
func perGB(count, bytes float64) float64 { return bounded(count / max(bytes, 1) * giga) }

// counted looks for counters that rose in one arm only and returns what the
// counters show.
func (w *view) counted(slots [2][]*study.Slot) (faults []fault, proof []study.Proof) {
	goodput := w.goodput()
	for _, v := range violations {
		if v.name == checksumErrors && w.s.Plan.NIC.Corrupt > 0 { // as ordered
			continue
		}
		if v.own && w.c.Cell.Path == string(study.PathForwarded) {
			continue
		}
		var rate [2]float64
		var rose [2]bool
		measured := false
		var source string
		for i := range slots {
			y, bytes := v.tally(slots[i]), bytesOf(slots[i])
			rate[i] = v.rate(y.sum, bytes, len(slots[i]))
			rose[i] = y.slots >= minSlots && y.sum*segmentBytes >= v.perSegment*bytes &&
				(!v.slower || goodput[i] < loadBearing*goodput[1-i])
			measured = measured || y.measured
			source = firstOf(source, y.source)
		}
		if !measured {
			continue
		}
		source = firstOf(source, "both ends: "+v.counters[0]+" and others ("+sourceOf(v.counters[0])+")")
		f := fault{text: fmt.Sprintf("%s %s: %s (%s)", v.name, v.per(), pair(rate[0], rate[1]), source)}
		f.on[0] = rose[0] && rate[0] > rateRatio*rate[1]
		f.on[1] = rose[1] && rate[1] > rateRatio*rate[0]
		if rose[0] && rose[1] && !v.perSlot && !f.on[0] && !f.on[1] {
			f.on = rose
		}
		if f.on[0] || f.on[1] {
			faults = append(faults, f)
		}
		proof = append(proof, study.Proof{
			Layer: study.LayerCounters, Source: source, Baseline: rate[0], Arm: rate[1],
			Text: fmt.Sprintf("%s %s: %s", v.name, v.per(), pair(rate[0], rate[1])),
		})
	}
	return faults, append(proof, w.retransProof(slots)...)
}

func (v violation) rate(sum, bytes float64, slots int) float64 {
	if v.perSlot {
		return bounded(sum / float64(max(slots, 1)))
	}
	return perGB(sum, bytes)
}

func (v violation) per() string {
	if v.perSlot {
		return "per slot"
	}
	return "per GB"
}

// A tally is what the counters of a violation show in the slots of one side.
type tally struct {
	sum      float64
	slots    int    // in which some rose
	source   string // of those that rose, the first by name
	measured bool
}

func (v violation) tally(slots []*study.Slot) tally {
	var y tally
	for _, s := range slots {
		here := 0.0
		for _, role := range []string{roleDevice, rolePeer} {
			if rises(s, role, v.but) {
				continue
			}
			for _, c := range v.counters {
				x := s.Evidence[role+"."+c]
				if !(x > 0) {
					continue
				}
				here += x
				if name := role + ": " + c + " (" + sourceOf(c) + ")"; y.source == "" || name < y.source {
					y.source = name
				}
			}
		}
		if here > 0 {
			y.slots++
		}
		y.sum += here
		y.measured = y.measured || here > 0 || v.readIn(s)
	}
	return y
}

// rises reports whether one of the counters of an end rose.
func rises(s *study.Slot, role string, counters []string) bool {
	return slices.ContainsFunc(counters, func(c string) bool { return s.Evidence[role+"."+c] > 0 })
}

// readIn reports whether the counters were read in a slot: a counter that did
// not rise is not in the evidence, but others of its file are.
func (v violation) readIn(s *study.Slot) bool {
	first, _, _ := strings.Cut(v.counters[0], ".")
	for key := range s.Evidence {
		if _, counter, ok := strings.Cut(key, "."); ok && strings.HasPrefix(counter, first+".") {
			return true
		}
	}
	return false
}

// retransmits reads a slot's retransmits, from tcp_info or the kernel's counter.
func (w *view) retransmits(s *study.Slot) (float64, bool) {
	if v, ok := s.Metrics[study.Retransmits]; ok {
		return v, true
	}
	v, ok := s.Evidence[w.source()+".Tcp.RetransSegs"]
	return v, ok
}

// perByte returns the sum of a figure per gigabyte, and per slot.
func perByte(slots []*study.Slot, f figure) (rate, mean float64, ok bool) {
	sum := 0.0
	for _, s := range slots {
		v, have := f(s)
		sum += max(v, 0)
		ok = ok || have
	}
	return perGB(sum, bytesOf(slots)), bounded(sum / float64(max(len(slots), 1))), ok
}

func (w *view) retransProof(slots [2][]*study.Slot) []study.Proof {
	a, _, okA := perByte(slots[0], w.retransmits)
	b, _, okB := perByte(slots[1], w.retransmits)
	if !okA && !okB {
		return nil
	}
	return []study.Proof{{
		Layer: study.LayerCounters, Source: w.sender() + ": tcp_info", Baseline: a, Arm: b,
		Text: "retransmits per GB: " + pair(a, b),
	}}
}

// collapsed looks for a side whose goodput is less than half of the other's
// while its retransmits or timeouts rise: that is not slow, it is broken. Ten
// times the retransmits are not enough for that: a fast path through memory has
// next to none, and paths that were sound, offloads on or off, lost between 0.2
// and 1 % of their segments to a full backlog (veth, Linux 6.18, 2026-11). The
// collapse of the stmmac thread lost 8 %.
func (w *view) collapsed(slots [2][]*study.Slot) []fault {
	t := w.table(metricOf(study.Goodput))
	if len(t.rows) < fewBlocks {
		return nil
	}
	base, treated := t.sides()
	goodput := [2]float64{base, treated}
	timeouts := func(s *study.Slot) (float64, bool) {
		v, ok := s.Evidence[w.source()+".TcpExt.TCPTimeouts"]
		return v, ok
	}
	for i := range goodput {
		good, bad := goodput[1-i], goodput[i]
		if !(bad < collapse*good) {
			continue
		}
		rate, mean, _ := perByte(slots[i], w.retransmits)
		usual, _, _ := perByte(slots[1-i], w.retransmits)
		stalls, stallsMean, _ := perByte(slots[i], timeouts)
		usualStalls, _, _ := perByte(slots[1-i], timeouts)
		stuck := w.stalled(slots[i])
		few := float64(timeoutsMin)
		if bad < ruin*good {
			few = timeoutsRuin
		}
		f := fault{}
		f.on[i] = true
		switch {
		case stuck >= minSlots && w.stalled(slots[1-i]) == 0:
			f.text = fmt.Sprintf("collapse: nothing moved in %d of %d slots, while the other arm has %s",
				stuck, len(slots[i]), unit.Value(good, "bit/s"))
		case mean > retransMin && rate >= retransRatio*usual && rate*segmentBytes >= retransShare*giga:
			f.text = fmt.Sprintf("collapse: %s while the other arm has %s, with %s retransmits a slot",
				unit.Value(bad, "bit/s"), unit.Value(good, "bit/s"), short(mean))
		case stallsMean >= few && stalls >= retransRatio*usualStalls && stalls*segmentBytes*timeoutSegs >= giga:
			f.text = fmt.Sprintf("collapse: %s while the other arm has %s, with %s retransmission timeouts a slot",
				unit.Value(bad, "bit/s"), unit.Value(good, "bit/s"), short(stallsMean))
		default:
			continue
		}
		return []fault{f}
	}
	return nil
}

// goodput returns the goodput of both sides, as the verdict's table has it.
func (w *view) goodput() [2]float64 {
	base, treated := w.table(metricOf(study.Goodput)).sides()
	return [2]float64{base, treated}
}

// stalled counts the slots in which the connections stood and nothing moved.
func (w *view) stalled(slots []*study.Slot) (n int) {
	for _, s := range slots {
		if s.Evidence[w.receiver()+".load.stalled"] > 0 {
			n++
		}
	}
	return n
}
