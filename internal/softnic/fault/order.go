package fault

import "github.com/offlab/offlab/internal/softnic"

// segmentOrder sends the segments of a super-packet out of order: the second
// behind the third, and so on by threes.
var segmentOrder = softnic.Fault{
	Name:  "segment-order",
	About: "segments of a super-packet leave out of order",
	Source: "ublue-os/bazzite#4664: RTL8126 with r8169, 3 to 4 MSS out of order, " +
		"688 bit/s with TSO and 983 Mbit/s without",
	Hooks: func(softnic.Env) softnic.Hooks {
		return segment(func(f *softnic.Frame) softnic.Action {
			if f.Index%3 == 1 {
				return softnic.Later
			}
			return softnic.Pass
		})
	},
}
