// Package cpu reads the CPU time spent by a host, and what the host is.
//
// The host's figures are those of /proc/stat: all of user, nice, system, irq,
// softirq and steal. The time of a process alone would miss the softirqs, which
// is what receive offloads change.
package cpu
