// Package netns starts processes inside namespaces of their own.
//
// No thread of this program ever enters another namespace: a host is a process
// that is born in its namespace, so /proc/net, /sys and the sysctls are right
// for all of it, and the namespace ends with the process, whatever killed it.
package netns
