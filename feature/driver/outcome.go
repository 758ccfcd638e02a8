package driver

import (
	"fmt"
	"maps"
	"strings"

	"github.com/offlab/offlab/feature"
)

// An Outcome is what the sets of a function are worth.
type Outcome struct {
	Function   *Function
	Registered bool
	Sets       map[feature.Field]Value // of the device, registered or not
	Changes    []feature.Change        // by registration
}

// Outcome returns the sets as the function leaves them.
func (f *Function) Outcome() Outcome {
	return Outcome{Function: f, Sets: maps.Clone(f.Sets)}
}

// Registers reports whether it makes sense to apply registration: the function
// fills in a new device, or at least features, rather than changing a device
// that is in use.
func (f *Function) Registers() bool {
	v, ok := f.Sets[feature.Features]
	return f.Fresh || ok && v.Known()
}

// Register returns the sets as they are after register_netdevice. What may be
// on is taken once as off and once as on; where the two agree the result is
// certain. The changes are those of the first. Where [Function.Registers] says
// no, it is [Function.Outcome].
func (f *Function) Register() Outcome {
	if !f.Registers() {
		return f.Outcome()
	}
	o := Outcome{Function: f, Registered: true, Sets: map[feature.Field]Value{}}
	var low, high feature.Device
	for field, v := range f.Sets {
		low.Sets[field], high.Sets[field] = v.On, v.Can().Intersect(feature.All)
	}
	low, o.Changes = low.Register()
	high, _ = high.Register()
	for _, field := range feature.Fields() {
		o.Sets[field] = known(low.Get(field)).join(known(high.Get(field)))
	}
	return o
}

// State returns what user space would see, with what is certain.
func (o Outcome) State() feature.State {
	return feature.State{
		HW: o.Sets[feature.HWFeatures].On, Wanted: o.Sets[feature.Wanted].On,
		Active: o.Sets[feature.Features].On, NoChange: feature.NeverChange,
	}
}

// Findings says what a reviewer would say of the statements.
func (o Outcome) Findings() []string {
	list := append(o.misread(), o.dead()...)
	list = append(list, o.soft()...)
	if !o.Registered {
		return list
	}
	return append(list, o.held()...)
}

// label says where a step is.
func (f *Function) label(s Step) string {
	if f.Name == "" {
		return fmt.Sprintf("%q", s.Text)
	}
	return fmt.Sprintf("line %d", s.Line)
}

// misread finds &= with a mask that has little in it: it keeps that and clears
// everything else, which is rarely meant.
func (o Outcome) misread() (list []string) {
	for _, s := range o.Function.Steps {
		lost := s.before.On.Diff(s.After.Can())
		if s.Op != "&=" || s.Named.IsZero() || strings.Contains(s.Text, "~") || lost.IsZero() {
			continue
		}
		text := fmt.Sprintf("%s clears all but %s; it does not clear %s.", o.Function.label(s), join2(s.Named), them(s.Named))
		if s.After == (Value{}) {
			text += fmt.Sprintf(" None of that was on, so %v is empty then.", s.Field)
		}
		list = append(list, text)
	}
	return list
}

func join2(s feature.Set) string { return strings.Join(s.Names(), ", ") }

func them(s feature.Set) string {
	if s.Len() == 1 {
		return "it"
	}
	return "them"
}

// dead finds features that the driver set and that are neither on nor offered
// in the end.
func (o Outcome) dead() (list []string) {
	active, offered := o.Sets[feature.Features], o.Sets[feature.HWFeatures]
	left := active.Can().Union(offered.Can())
	var ever feature.Set
	for _, s := range o.Function.Steps {
		if s.Field == feature.Features || s.Field == feature.HWFeatures {
			ever = ever.Union(s.After.On)
		}
	}
	gone := ever.Intersect(feature.All).Diff(left).Diff(feature.SoftFeatures)
	if gone.IsZero() {
		return nil
	}
	return []string{fmt.Sprintf("%s: set, then cleared, and not in hw_features: nobody can turn %s on, so the driver's code for %s is dead.",
		join2(gone), them(gone), them(gone))}
}

// soft says what becomes of the features that the core adds, if a statement
// looks as if it turned them off.
func (o Outcome) soft() (list []string) {
	var cleared feature.Set
	for _, s := range o.Function.Steps {
		if s.Op == "&=" || s.Op == "^=" || strings.Contains(s.Text, "~") {
			cleared = cleared.Union(s.Named)
		}
	}
	wanted, asked := o.Function.Sets[feature.Wanted]
	for f := range feature.SoftFeatures.Intersect(cleared).All() {
		short := map[feature.Feature]string{feature.GRO: "gro", feature.GSO: "gso"}[f]
		switch {
		case asked && !wanted.Can().Has(f) && !o.Function.Fresh:
			list = append(list, fmt.Sprintf("%v is taken out of wanted_features: after registration that turns it off, before it does not.", f))
		case o.Registered:
			list = append(list, fmt.Sprintf("%v is %s: the core adds it at registration (a soft feature), whatever the driver says. Nothing here turns it off; \"ethtool -K DEV %s off\" does.",
				f, o.State().Show(f), short))
		case o.Function.Fresh:
			list = append(list, fmt.Sprintf("%v is added by the core at registration (a soft feature), whatever the driver says. Nothing here turns it off; \"ethtool -K DEV %s off\" does.", f, short))
		}
	}
	return list
}

// held finds what a user cannot change or does not get.
func (o Outcome) held() (list []string) {
	s := o.State()
	fixed := s.Active.Diff(s.HW).Diff(s.NoChange)
	if !fixed.IsZero() && o.Sets[feature.HWFeatures].Maybe.Meets(fixed) {
		fixed = fixed.Diff(o.Sets[feature.HWFeatures].Maybe)
	}
	if !fixed.IsZero() {
		list = append(list, fmt.Sprintf("%s: on and not in hw_features, so fixed: no user can turn %s off.", join2(fixed), them(fixed)))
	}
	for f := range s.Wanted.Diff(o.Sets[feature.Features].Can()).All() {
		if why := s.Explain(f); why != "" {
			list = append(list, fmt.Sprintf("%v is %s: %s.", f, s.Show(f), why))
		}
	}
	speed := feature.AllTSO.Union(feature.CSumMask).With(feature.SG, feature.GSOUDPL4).Without(feature.TSOMangleID)
	vlan := o.Sets[feature.VLANSet].Can()
	missing := s.Active.Intersect(speed).Diff(vlan)
	if !missing.IsZero() {
		list = append(list, fmt.Sprintf("%s: not in vlan_features, so VLAN devices on top do without the hardware's.", join2(missing)))
	}
	return list
}
