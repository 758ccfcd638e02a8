// Package probe observes a host while a load runs.
//
// A snapshot before and one after give the rises that a verdict's proofs are
// made of. Nothing is read while the load is measured.
package probe
