package knob

// For tests.
var (
	KernelFeatures = kernelFeatures
	Broken         = broken
	Run            = run
	RuleFeatures   = func() (names []string) {
		for _, r := range rules {
			names = append(names, r.without)
			for _, g := range r.needs {
				names = append(names, g...)
			}
		}
		return names
	}
)
