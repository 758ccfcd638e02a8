// Package tap makes TAP devices: network devices whose other side is this
// program.
//
// [Open] makes the device in the network namespace of the calling thread; it
// may be moved to another one afterwards (package rtnl), and the queues go on
// working. The device lives as long as its queues are open.
//
// # Offloads
//
// The host hands down what the device's features allow: with TUN_F_CSUM packets
// whose checksum is not complete, with TUN_F_TSO4 and the like super-packets of
// 64 KiB. [Options.Offloads] is what is wanted, [Device.Offloads] what the
// kernel has granted; ethtool -K on the device turns each off and on within
// that. What is written may be a super-packet whatever the offloads are.
//
// # Receiving host
//
// With [Options.NAPI] what is written goes through the kernel's GRO, where it
// merges if several packets come in one poll. A plain write(2) is a poll of
// its own, so there is nothing to merge with unless the poll is delayed, by
// [Options.Threaded] or by the sysctl-like files gro_flush_timeout and
// napi_defer_hard_irqs of the device.
//
// # Calls
//
// Read and Write never block and allocate nothing. The scheduler is not told
// of them: a read lasts as long as its copy, but a write lasts until the host
// has processed the packet, its TCP included.
package tap
