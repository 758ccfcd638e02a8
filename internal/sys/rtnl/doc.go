// Package rtnl makes and reads links, addresses and routes.
//
// A [Handle] belongs to the network namespace of the thread that opened it, and
// can be used from any goroutine later. Devices are named, as in ip(8); an
// operation looks the name up first.
//
// What an old kernel does not report is absent, not zero: a size limit that is
// missing from [Link.Values] is one that the kernel does not have.
package rtnl
