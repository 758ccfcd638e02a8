// Package fault holds the ways in which the soft NIC can be broken: one file
// for each kind, with the threads it was seen in. Each works on any model.
package fault
