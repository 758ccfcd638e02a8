// Package lab builds the hosts of a study and the links between them.
//
// A lab is two hosts, each an agent in exactly one network namespace: the one
// whose device is under test, and its peer. The built-in lab makes both and
// joins them by a veth pair; hosts takes an interface of this machine and a
// peer reached by a transport. What a lab pins or stands in for is in its
// notes, which go into the study's environment.
package lab
