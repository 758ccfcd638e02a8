// Package driver evaluates what the C code of a Linux driver does to the
// feature sets of its device.
//
// [Statements] takes assignments as they stand in a patch or a mail, [File] a
// whole file: the assignments to the fields of struct net_device in each
// function, in order, through macros, local variables, pointers to the device
// and calls inside the file. It is no compiler. A bit that depends on what
// cannot be seen from the text - a condition, the result of a function
// elsewhere - is neither on nor off but maybe ([Value]), and each thing that
// was not followed is in the notes, with its line.
//
// [Function.Register] then does what the kernel's core does at registration,
// and [Outcome.Findings] says what a reviewer would: flags that are cleared and
// leave dead code behind, statements that do not do what they look like.
//
// # Limits
//
// The preprocessor's conditions are conditions like others. Function-like
// macros, sets passed by pointer and loops whose number of turns matters are
// not followed. An early return or jump to the end is taken for a failure and
// left out of the result. A function that is not seen to start from a fresh device
// (.probe, .setup, alloc_etherdev, ether_setup) starts from unknown sets: what it
// adds and removes is known then, not what results.
package driver
