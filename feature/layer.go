package feature

import (
	"slices"
	"strings"
)

// A Layer is a device as it is seen, on top of others: what a running machine
// shows of a [Stack]. The sets that say what a device hands to those above it
// are not seen.
type Layer struct {
	Name, Kind string // the kind as ip link prints it
	State      State
	Below      []*Layer
}

// A Loss is a feature that is on below and off in a layer that could have it.
type Loss struct {
	Feature Feature
	Layer   *Layer
	Why     string
}

// Why says why a feature is off, "" if it is on.
func (l *Layer) Why(f Feature) string {
	s := l.State
	switch {
	case s.Active.Has(f):
		return ""
	case !s.Wanted.Has(f) && s.Fixed(f):
		return "not offered by the driver"
	case !s.Wanted.Has(f):
		return "not asked for"
	}
	if why := s.Explain(f); why != "" {
		return why
	}
	k, known := FindKind(l.Kind)
	if !known || k.fix == nil {
		return "vetoed by the driver, or by a device stacked on it"
	}
	if len(l.Below) == 0 {
		return k.Why + " (" + k.FixSource + ")"
	}
	return l.below(f) + " (" + k.FixSource + ")"
}

// below says what the layers below have to do with it.
func (l *Layer) below(f Feature) string {
	var on, off []string
	for _, b := range l.Below {
		// Checksumming of everything is had from checksumming of each.
		if b.State.Active.Has(f) || f == HWCSum && b.State.Active.Meets(IPCSums) {
			on = append(on, b.Name)
		} else {
			off = append(off, b.Name)
		}
	}
	switch {
	case len(on) == 0:
		return "off on " + strings.Join(off, ", ") + ", below"
	case l.Kind == "vlan":
		return strings.Join(on, ", ") + " has it and does not hand it to VLAN devices (vlan_features)"
	}
	return strings.Join(on, ", ") + " has it, and the driver here refuses it"
}

// Drags returns what goes with a feature when it is turned off, on the
// device itself.
func (s State) Drags(f Feature) Set {
	got, _ := Resolve(s.Active.Without(f))
	now, _ := Resolve(s.Active)
	return now.Without(f).Diff(got)
}

// Losses walks down from a layer and returns where features are lost: those
// that the layer above could have and that are on below it, and those that a
// tunnel would need of the device that carries it.
func (l *Layer) Losses() []Loss {
	var list []Loss
	seen := map[*Layer]bool{}
	var walk func(l *Layer)
	walk = func(l *Layer) {
		if seen[l] {
			return
		}
		seen[l] = true
		k, _ := FindKind(l.Kind)
		if k.Carries.IsZero() {
			list = append(list, l.lost()...)
		}
		for _, b := range l.Below {
			if !k.Carries.IsZero() {
				list = append(list, l.carried(b, k)...)
			}
			walk(b)
		}
	}
	walk(l)
	return list
}

// lost returns the features that end at a layer.
func (l *Layer) lost() (list []Loss) {
	var below Set
	for _, b := range l.Below {
		below = below.Union(b.State.Active)
	}
	if below.Meets(IPCSums) {
		below = below.With(HWCSum)
	}
	s := l.State
	for f := range below.Diff(s.Active).Intersect(s.HW).Diff(s.NoChange).All() {
		why := l.Why(f)
		if !s.Wanted.Has(f) {
			why = "turned off here; ethtool -K " + l.Name + " " + f.String() + " on"
		}
		list = append(list, Loss{f, l, why})
	}
	// Segmentation that stays on though it is off below is done in software.
	for f := range s.Active.Intersect(AllTSO.With(GSOUDPL4)).Without(TSOMangleID).All() {
		if len(l.Below) > 0 && l.takesFromBelow() && !below.Has(f) {
			list = append(list, Loss{f, l.Below[0], "off here, so what is segmented for " + l.Name + " is segmented in software"})
		}
	}
	return list
}

func (l *Layer) takesFromBelow() bool {
	k, ok := FindKind(l.Kind)
	return ok && k.fix != nil
}

// carried returns what a tunnel misses at the device below it: segmentation
// inside the tunnel, and the segmentation itself.
func (l *Layer) carried(b *Layer, k Kind) (list []Loss) {
	if !l.State.Active.Meets(AllTSO) {
		return nil
	}
	for _, need := range []Set{k.Carries, Of(TSO, TSO6)} {
		if !b.State.Active.Meets(need) {
			f := slices.Collect(need.All())[0] // it speaks for all
			list = append(list, Loss{f, b, "off here, so what " + l.Name + " (" + k.Name + ") sends is segmented in software before it: " + b.Why(f)})
		}
	}
	return list
}
