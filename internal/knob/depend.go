package knob

import (
	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/internal/sys/ethtool"
)

// broken returns why the kernel itself drops a feature given what is active, or
// "".
func broken(name string, now map[string]ethtool.Bits) string {
	f, ok := feature.ByName(name)
	if !ok {
		return ""
	}
	return ethtool.Features{Bits: now}.State().Explain(f)
}

// reason says why a feature is not as asked.
func reason(name string, asked bool, now map[string]ethtool.Bits) string {
	b, known := now[name]
	switch {
	case !known:
		return "this kernel has no such feature"
	case b.Fixed():
		return "fixed"
	case b.Wanted != asked:
		return "another setting asks otherwise"
	case !asked:
		return b.String() + ": kept on by the driver"
	}
	if why := broken(name, now); why != "" {
		return b.String() + ": " + why
	}
	return b.String() + ": vetoed by the driver, or by a device stacked on it"
}
