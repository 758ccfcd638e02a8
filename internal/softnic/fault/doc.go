// Package fault holds the ways in which the soft NIC can be broken, each with the
// threads it was seen in. Each works on any model.
package fault
