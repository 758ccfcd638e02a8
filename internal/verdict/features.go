package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
)

// A state is what one knob, or one feature that was dragged along, is in the
// two arms.
type state struct {
	name          string
	base, treated string
	own           [2]bool // whether the value is that of an arm that was set: baseline, arm
	stuck         string  // what was asked for, if it did not move
	dragged       bool
	bits          []study.Change // the kernel's features, from baseline to arm
}

// set notes the value that a term's arm got, and what it was before, which is
// what the other arm has unless that was set as well.
func (st *state) set(of side, was, got string) {
	values := [2]*string{&st.base, &st.treated}
	mine, others := 0, 1
	if of == arm {
		mine, others = 1, 0
	}
	*values[mine], st.own[mine] = got, true
	if !st.own[others] {
		*values[others] = was
	}
}

// setBits notes the features that moved with the knob. They are told by the
// first arm that was set.
func (st *state) setBits(of side, bits []study.Change) {
	if len(st.bits) > 0 {
		return
	}
	for _, b := range bits {
		if of == baseline { // the arm is what was before
			b.From, b.To = b.To, b.From
		}
		st.bits = append(st.bits, b)
	}
}

// text says in one line what differs between the arms.
func (st *state) text() string {
	switch {
	case st.stuck != "":
		return fmt.Sprintf("%s was set to %s and is %s", st.name, st.stuck, firstOf(st.treated, st.base))
	case st.dragged:
		return fmt.Sprintf("%s %s -> %s, dragged along", st.name, st.base, st.treated)
	case len(st.bits) > 0:
		return bitsText(st.bits)
	default:
		return fmt.Sprintf("%s %s -> %s", st.name, st.base, st.treated)
	}
}

// bitsText counts the features that changed in the same way and names the one
// of the shortest name, which is the plain one: "5 features off -> on
// (tx-tcp-segmentation and 4 more)". The whole list is in the arm's check.
func bitsText(bits []study.Change) string {
	var parts []string
	for len(bits) > 0 {
		first := bits[0]
		var alike, rest []study.Change
		for _, b := range bits {
			if b.From == first.From && b.To == first.To {
				alike = append(alike, b)
			} else {
				rest = append(rest, b)
			}
		}
		bits = rest
		name := slices.MinFunc(alike, func(a, b study.Change) int { return len(a.Name) - len(b.Name) }).Name
		if n := len(alike); n == 1 {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", name, first.From, first.To))
		} else {
			parts = append(parts, fmt.Sprintf("%d features %s -> %s (%s and %d more)", n, first.From, first.To, name, n-1))
		}
	}
	return strings.Join(parts, ", ")
}

// featureProof shows what setting the arms up did to the device: one proof for
// each part of the knob, and one for each thing that was dragged along. What a
// factorial drags along on both sides is no difference between them, and the
// sides of an interaction are no conditions of the device: of it only what is
// stuck is told.
func (w *view) featureProof() []study.Proof {
	states := slices.DeleteFunc(w.states(), func(st *state) bool {
		return st.dragged && st.base == st.treated || w.c.Interaction && st.stuck == ""
	})
	source := knobEnd + ": " + wayOf(w.c.Knob).source
	proof := make([]study.Proof, len(states))
	for i, st := range states {
		proof[i] = study.Proof{
			Layer: study.LayerFeatures, Source: source, Baseline: st.base, Arm: st.treated, Text: st.text(),
		}
	}
	if len(states) == 1 && states[0].stuck == "" && wayOf(w.c.Knob).kind == kindFeature && len(w.terms) == 2 {
		proof[0].Text = "only " + proof[0].Text
	}
	return proof
}

func (w *view) states() []*state {
	var states []*state
	find := func(name string) *state {
		for _, st := range states {
			if st.name == name {
				return st
			}
		}
		states = append(states, &state{name: name})
		return states[len(states)-1]
	}
	for _, t := range w.terms {
		for _, c := range w.s.Checks {
			if c.Arm != t.Arm {
				continue
			}
			of := sideOf(t.Weight)
			for _, k := range c.Knobs {
				if !w.concerns(k) {
					continue
				}
				st := find(k.Knob)
				st.set(of, k.Was, k.Got)
				st.setBits(of, k.Bits)
				if !k.Moved {
					st.stuck = k.Asked
				}
			}
			for _, d := range c.Dragged {
				st := find(d.Name)
				st.set(of, d.From, d.To)
				st.dragged = true
			}
		}
	}
	return states
}
