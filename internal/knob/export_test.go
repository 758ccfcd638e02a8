package knob

// For tests.
var (
	KernelFeatures = kernelFeatures
	Broken         = broken
	Run            = run
)
