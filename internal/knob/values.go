package knob

import (
	"slices"
	"strconv"
	"strings"

	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/rtnl"
)

// ringPrefix tells the ring rx from the checksum rx.
const ringPrefix = "ring-"

// switches are the values that are on or off. The drivers' numbers are 1 and 0.
var switches = []string{"adaptive-rx", "adaptive-tx", "cqe-mode-rx", "cqe-mode-tx", ringPrefix + "rx-push", ringPrefix + "tx-push"}

// ValueNames returns the names of the knobs that take numbers, sysctls apart.
func ValueNames() []string {
	names := slices.Concat(ethtool.CoalesceNames(), rtnl.ValueNames())
	for _, name := range ethtool.RingNames() {
		if !strings.HasSuffix(name, "-max") { // limits can only be read
			names = append(names, ringPrefix+name)
		}
	}
	slices.Sort(names)
	return names
}

// kindOf returns what kind of value a name is about, "" for none. The names of
// the kinds do not overlap.
func kindOf(name string) Kind {
	switch {
	case strings.Contains(name, ".") || strings.HasPrefix(name, "net/"):
		return KindSysctl
	case strings.HasPrefix(name, ringPrefix) && slices.Contains(ethtool.RingNames(), name[len(ringPrefix):]) && !strings.HasSuffix(name, "-max"):
		return KindRing
	case slices.Contains(ethtool.CoalesceNames(), name):
		return KindCoalesce
	case slices.Contains(rtnl.ValueNames(), name):
		return KindLink
	}
	return ""
}

// valueDirection returns which way data must flow for a value to matter.
func valueDirection(name string, kind Kind) Direction {
	word := strings.TrimPrefix(strings.TrimPrefix(name, ringPrefix), "adaptive-")
	switch {
	case kind == KindSysctl:
		return Both
	case strings.HasPrefix(word, "rx"), strings.HasPrefix(word, "gro_"), word == "cqe-mode-rx":
		return RX
	case strings.HasPrefix(word, "tx"), strings.HasPrefix(word, "gso_"), word == "cqe-mode-tx":
		return TX
	}
	return Both
}

// canonical checks a value and writes it as it is read back.
func canonical(name, value string) (string, string) {
	if kindOf(name) == KindSysctl {
		return strings.Join(strings.Fields(value), " "), ""
	}
	if slices.Contains(switches, name) {
		if value != on && value != off {
			return "", "is on or off"
		}
		return value, ""
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return "", "is a whole number below 2^32"
	}
	return strconv.FormatUint(n, 10), ""
}

// number and text convert between a value and the kernel's number for it.
func number(value string) (uint32, error) {
	switch value {
	case on:
		return 1, nil
	case off:
		return 0, nil
	}
	n, err := strconv.ParseUint(value, 10, 32)
	return uint32(n), err
}

func text(name string, n uint32) string {
	if slices.Contains(switches, name) && n <= 1 {
		return []string{off, on}[n]
	}
	return strconv.FormatUint(uint64(n), 10)
}
