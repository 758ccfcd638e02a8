// Package counters reads the network counters of the kernel.
//
// All of them are per network namespace and read through /proc/thread-self or
// netlink, never through /proc/net, which shows the namespace of the process's
// first thread. A counter that the kernel lacks is absent, not 0.
package counters
