package ethtool

import "github.com/offlab/offlab/feature"

// State returns the sets as package feature has them. A feature that Linux 6.18
// does not have is left out.
func (f Features) State() feature.State {
	var s feature.State
	for name, b := range f.Bits {
		n, ok := feature.ByName(name)
		if !ok {
			continue
		}
		for _, x := range []struct {
			to *feature.Set
			on bool
		}{{&s.HW, b.HW}, {&s.Wanted, b.Wanted}, {&s.Active, b.Active}, {&s.NoChange, b.NoChange}} {
			if x.on {
				*x.to = x.to.With(n)
			}
		}
	}
	return s
}

// Ask returns the wish that [Handle.Set] takes for the features of mask: those
// in value on, the others off.
func Ask(value, mask feature.Set) map[string]bool {
	want := make(map[string]bool, mask.Len())
	for f := range mask.All() {
		want[f.String()] = value.Has(f)
	}
	return want
}
