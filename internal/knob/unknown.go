package knob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/catalog"
)

// An UnknownError says that there is no knob of a name, and which there are.
type UnknownError struct {
	Name  string
	Near  []string // names like it
	Known []string // short names and values; features of the kernel and sysctls besides
}

func (e *UnknownError) Error() string {
	near := ""
	if len(e.Near) > 0 {
		near = "; did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	return fmt.Sprintf("unknown knob %q%s (have %s; the kernel's feature names; net.* sysctls; cmd:NAME='ON','OFF')",
		e.Name, near, strings.Join(e.Known, ", "))
}

// Unwrap lets callers treat all unknown names alike.
func (e *UnknownError) Unwrap() error {
	return &catalog.UnknownError{Kind: "knob", Name: e.Name, Known: e.Known}
}

func unknown(name string, known []string) error {
	e := &UnknownError{Name: name}
	all := slices.Concat(kernelFeatures, known)
	for _, t := range Toggles().All() {
		e.Known = append(e.Known, t.Short)
		if t.Long != "" {
			all = append(all, t.Long)
		}
	}
	e.Known = append(e.Known, ValueNames()...)
	all = append(all, e.Known...)
	slices.Sort(all)
	for _, other := range slices.Compact(all) {
		if near(name, other) {
			e.Near = append(e.Near, other)
		}
	}
	const most = 5
	slices.SortStableFunc(e.Near, func(a, b string) int { return distance(name, a) - distance(name, b) })
	e.Near = e.Near[:min(most, len(e.Near))]
	return e
}

// near reports whether one name may be meant by the other: a letter or two
// apart, or one within the other.
func near(name, other string) bool {
	const long, short = 64, 3 // longer than any knob; too short to be within another by more than chance
	if len(name) > long || name == "" {
		return false
	}
	if len(name) > short && (strings.Contains(other, name) || len(other) > short && strings.Contains(name, other)) {
		return true
	}
	return distance(name, other) <= max(1, min(2, len(name)/2))
}

// distance counts the letters to insert, drop, change or swap with a
// neighbour (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
