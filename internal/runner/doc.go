// Package runner makes a plan and executes it, slot by slot.
//
// It knows nothing of hosts and devices: a [Rig] brings an arm about and runs a
// slot. What the runner owns is the order of things: the A/A phase, blocks of
// one slot of every arm in random order, the journal, the budget, and stopping
// as soon as every verdict is decided.
package runner
