// Package counters reads the network counters of the kernel.
package counters
