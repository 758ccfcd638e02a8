package knob

import (
	"path"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/sys/ethtool"
)

// A family is what stands behind one name on one device.
type family struct {
	pattern string
	members []string // all its features that the kernel has
	targets []string // those that "on" asks for: wanted before, else all that can be changed
}

// A group is the families of a factor, which change together.
type group []family

func match(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

// state returns what the group is: on when all that "on" asks for is active,
// off when nothing is, else mixed.
func (g group) state(f ethtool.Features) string {
	var states []string
	for _, fam := range g {
		states = append(states, fam.state(f))
	}
	slices.Sort(states)
	if states = slices.Compact(states); len(states) == 1 {
		return states[0]
	}
	return mixed
}

func (fam family) state(f ethtool.Features) string {
	active := func(name string) bool { return f.Bits[name].Active }
	inactive := func(name string) bool { return !active(name) }
	switch {
	case !slices.ContainsFunc(fam.members, active):
		return off
	case !slices.ContainsFunc(fam.targets, inactive): // none, where all are fixed
		return on
	}
	return mixed
}

// ask adds what a value of the group wants to a request.
func (g group) ask(value string, want map[string]bool) {
	for _, fam := range g {
		names := fam.members
		if value == on {
			names = fam.targets
		}
		for _, name := range names {
			want[name] = value == on
		}
	}
}

// reasons says why the group is not as asked: one reason where all features at
// fault share it, else one for each.
func (g group) reasons(value string, f ethtool.Features) string {
	var names, why []string
	for _, fam := range g {
		blamed := fam.members
		if value == on && len(fam.targets) > 0 {
			blamed = fam.targets
		}
		if len(fam.members) == 0 {
			blamed = []string{fam.pattern}
		}
		for _, name := range blamed {
			if f.Bits[name].Active != (value == on) {
				names = append(names, name)
				why = append(why, reason(name, value == on, f.Bits))
			}
		}
	}
	if distinct := slices.Compact(slices.Clone(why)); len(distinct) == 1 {
		return distinct[0]
	}
	for i := range why {
		why[i] = names[i] + " " + why[i]
	}
	return strings.Join(why, "; ")
}
