package fault

import "github.com/offlab/offlab/internal/softnic"

// mergeFixed never lets go of aggregation: the request succeeds and nothing
// changes.
var mergeFixed = softnic.Fault{
	Name:  "merge-fixed",
	About: "aggregation of received frames can be turned on, and not off",
	Source: "frank-w/BPI-Router-Linux#195 (mtk_eth_soc turns LRO on again); cloud-hypervisor#2528; " +
		"netmap (virtio in a guest: [fixed])",
	Hooks: func(softnic.Env) softnic.Hooks {
		return softnic.Hooks{Setting: func(s softnic.Setting, present, wanted int) int {
			if s == softnic.SetMerge {
				return max(present, wanted)
			}
			return wanted
		}}
	},
}
