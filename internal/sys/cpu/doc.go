// Package cpu reads the CPU time spent by a host and by a process.
package cpu
