package study

import (
	"fmt"
	"strconv"
	"strings"
)

// A PathKind is a kind of way between two hosts.
type PathKind string

// The kinds of paths.
const (
	PathBase      PathKind = "base"      // the device itself
	PathVLAN      PathKind = "vlan"      // vlan:ID, an 802.1Q tag
	PathQinQ      PathKind = "qinq"      // qinq:OUTER,INNER, an 802.1ad tag around an 802.1Q tag
	PathForwarded PathKind = "forwarded" // through the host of the device under test
)

// pathForms are how paths are written, in the order of the kinds.
const pathForms = "base, vlan:ID, qinq:OUTER,INNER, forwarded"

// A Path is a way between the hosts of a study.
type Path struct {
	Kind PathKind
	IDs  []uint16 // of VLAN tags, the outermost first
}

// A PathError says what is wrong with a path.
type PathError struct{ Path, Reason string }

func (e *PathError) Error() string { return fmt.Sprintf("path %q: %s", e.Path, e.Reason) }

// ParsePath reads a path as users write it.
func ParsePath(s string) (Path, error) {
	kind, rest, more := strings.Cut(s, ":")
	p := Path{Kind: PathKind(kind)}
	want := map[PathKind]int{PathBase: 0, PathVLAN: 1, PathQinQ: 2, PathForwarded: 0}
	n, known := want[p.Kind]
	switch {
	case !known:
		return p, &PathError{s, "unknown (have " + pathForms + ")"}
	case n == 0 && !more:
		return p, nil
	case n == 0:
		return p, &PathError{s, "takes no number"}
	}
	ids := strings.Split(rest, ",")
	if !more || len(ids) != n {
		return p, &PathError{s, fmt.Sprintf("want %s", pathForms)}
	}
	for _, id := range ids {
		v, err := strconv.ParseUint(id, 10, 16)
		if err != nil || v < 1 || v > 4094 {
			return p, &PathError{s, fmt.Sprintf("%q is no VLAN: want 1 to 4094", id)}
		}
		p.IDs = append(p.IDs, uint16(v))
	}
	return p, nil
}

// SplitPaths splits a list of paths, whose own commas are those between the
// tags of qinq: "base,qinq:5,10,vlan:10".
func SplitPaths(list string) []string {
	var out []string
	for part := range strings.SplitSeq(list, ",") {
		_, err := strconv.Atoi(part)
		if n := len(out); err == nil && n > 0 && strings.HasPrefix(out[n-1], string(PathQinQ)+":") && !strings.Contains(out[n-1], ",") {
			out[n-1] += "," + part
			continue
		}
		out = append(out, part)
	}
	return out
}
