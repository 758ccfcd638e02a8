package rig

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/runner"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
	"github.com/offlab/offlab/internal/wirecheck"
)

// setupTimeout bounds the time until the connections of a slot stand on the soft
// NIC, whose link is up at once: long enough for three SYNs (at 0, 1 and 3 s), so
// that loss alone is seldom the reason, and more for many streams. A real card
// may negotiate its link for seconds after a change, and gets the load's own time.
func setupTimeout(streams int) time.Duration {
	return min(load.DefaultSetupTimeout, 4*time.Second+time.Duration(streams)*10*time.Millisecond)
}

// watched runs the load of a slot with the wire of the soft NIC, if there is
// one, looked at from the first frame to the last. What was seen counts whether
// the slot does or not: it may be what voids it.
func (r *Rig) watched(ctx context.Context, s runner.Spec, slot *study.Slot) error {
	if r.lab.NIC == nil {
		return r.measure(ctx, s, slot)
	}
	if err := r.lab.NIC.BeginWire(ctx); err != nil {
		return fmt.Errorf("soft NIC: %w", err)
	}
	err := r.measure(ctx, s, slot)
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), slotTimeout)
	defer cancel()
	seen, werr := r.lab.NIC.Wire(own)
	if werr != nil {
		if err == nil {
			err = fmt.Errorf("soft NIC: %w", werr)
		}
		return err
	}
	for port, role := range []string{"device", "peer"} {
		if port < len(seen.Ports) {
			slot.Findings = append(slot.Findings, wireFindings(role, seen.Ports[port], s.Cell.Path == string(study.PathForwarded))...)
		}
	}
	if seen.Lost > 0 {
		slot.Findings = append(slot.Findings, study.Finding{
			Kind: "packets lost in the card", Source: "device: soft NIC",
			Text: fmt.Sprintf("%s of %s that the host handed down did not reach the wire", unit.Count(int64(seen.Lost)), unit.Count(int64(seen.Handed))), //nolint:gosec // counts
		})
	}
	if seen.Silent && err == nil { // without a connection that is told already
		slot.Findings = append(slot.Findings, study.Finding{
			Kind: "transmit queue stuck", Source: "device: soft NIC",
			Text: "the card was handed packets, and no frame left it any more",
		})
	}
	return err
}

// wireFindings are the violations that were seen of what a port sent.
func wireFindings(role string, r wirecheck.Report, forwarded bool) []study.Finding {
	var out []study.Finding
	source := role + ": wire, frame by frame at the soft NIC"
	r = joinSums(r)
	for _, k := range wirecheck.Kinds() {
		n := r.Counts[k]
		if n == 0 || !k.Wrong() || forwarded && k == wirecheck.Small { // a sender may know of a smaller MTU on the way
			continue
		}
		f := r.First[k]
		text := fmt.Sprintf("%s of %s frames; the first, number %s: %s", unit.Count(int64(n)), unit.Count(int64(r.Frames)), unit.Count(int64(f.Number)), f.Text) //nolint:gosec // counts
		if k == wirecheck.Order {
			text = fmt.Sprintf("order by up to %d × MSS: ", r.Worst) + text
		}
		out = append(out, study.Finding{Kind: k.Title(), Source: source, Text: text})
	}
	return out
}

// joinSums counts bad checksums below 60 bytes with the others, if there are
// others: then it is not the padding.
func joinSums(r wirecheck.Report) wirecheck.Report {
	short := r.Counts[wirecheck.SumShort]
	if r.Counts[wirecheck.Sum] == 0 || short == 0 {
		return r
	}
	r = r.Add(wirecheck.Report{Counts: map[wirecheck.Kind]uint64{wirecheck.Sum: short}})
	delete(r.Counts, wirecheck.SumShort)
	return r
}

// unconnected notes that the streams did not come to stand in time. Both ends
// are there, and what is between them is what a study is about.
func unconnected(slot *study.Slot, err error) {
	if strings.Contains(err.Error(), load.ErrTimeout.Error()) {
		slot.Findings = append(slot.Findings, study.Finding{
			Kind: "no connection", Source: "sender",
			Text: "the streams did not stand in time",
		})
	}
}
