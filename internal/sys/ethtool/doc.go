// Package ethtool reads and changes the features, coalescing and rings of a
// network device, and reads what its driver says of itself.
//
// A [Handle] belongs to the network namespace of the thread that opened it: its
// sockets stay in that namespace, so it can be used from any goroutine later.
//
// # Two interfaces
//
// Features, coalescing and rings go over the generic netlink family "ethtool"
// (Linux 5.6 and newer), and over the SIOCETHTOOL ioctl where the family, or
// the one command, is missing. The ioctl knows fewer coalescing and ring
// parameters and reports those a driver lacks as 0, not as absent. Driver,
// link and statistics are asked by ioctl alone: that interface has all of
// them.
//
// # Three answers
//
// What the kernel does not report is absent from a map, not zero; a speed or
// duplex that the driver does not know is unknown, not 0 or half.
//
// # Features
//
// The kernel keeps four sets for each device (Documentation/networking/
// netdev-features.rst): hw, what a user may change; wanted, what the user
// asked for; active, what there is; nochange, what nobody can change. To
// restore a device, put back the wanted set: the active one lacks what another
// feature's absence switched off.
package ethtool
