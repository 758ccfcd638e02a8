// Package knob sets, reads back and restores what can be changed on a device.
//
// # Factors
//
// [Parse] turns the words of a command line into factors: plain data that mean
// the same on every machine. What a factor comes down to on a device, such as
// which features stand behind tso, is decided where it is applied.
//
// # Sessions
//
// [Claim] takes a device for one study. Before anything is changed, a state file
// holds what the device was: the wanted set of its features (not the active
// one, which lacks what other features switched off), coalescing, rings, MTU,
// queue length, GSO and GRO limits, and later each sysctl and command that is
// used. [Session.Apply] brings the device to that state plus some settings, reads
// everything back and says what moved, what did not and why, and what moved
// although nobody asked. [Session.Restore] puts everything back.
//
// A session must end on every way out. A guard, [Session.StartGuard], is a child
// process that waits for the end of a pipe and then restores what the state
// file still holds, so that SIGKILL is covered too. [Restore] is for what even
// that left, as a power failure of half a minute ago would not: features do not
// survive a boot, and states of an earlier one are only removed.
//
// Sysctls and commands are those of the network namespace of the calling thread,
// so a session belongs in a process that lives in one.
package knob
