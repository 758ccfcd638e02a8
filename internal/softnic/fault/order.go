package fault

import "github.com/offlab/offlab/internal/softnic"

// segmentOrder sends the segments of a super-packet out of order: the second
// behind the third, and so on by threes.
var segmentOrder = softnic.Fault{
	Name:   "segment-order",
	About:  "segments of a super-packet leave out of order",
	Source: "reordering inside TSO bursts, seen in captures as distances of one MSS (cases of several drivers)",
	Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Segment: func(f *softnic.Frame) softnic.Action {
			if f.Index%3 == 1 {
				return softnic.Later
			}
			return softnic.Pass
		}}
	},
}
