// Package verdict turns the slots of a study into verdicts.
//
// [Make] is a pure function of plan, environment, arm checks and slots. It may
// be called after every block of a study that runs: [Decided] then says whether
// more blocks could change a verdict.
//
// # The three answers
//
// Does it act? A knob that did not move when its arm was set up does not: no
// traffic is needed for that. For one that moved, the table of promises says
// which ratio of counters must change, at which end and in which direction. A
// change of more than 1.3 times, in the median over blocks, is a yes; less than
// 1.15 times is a no where the ratio would have to show it. All else, and every
// knob that promises nothing that a counter shows, is "cannot tell".
//
// Is it right? Corrupted payload, or checksum errors, drops and resets that
// rise in one arm only, are wrong; so is a collapse: goodput below half together
// with ten times the retransmits, of at least 3 % of the segments, or with
// progress from timeout to timeout. A violation that both arms show says nothing
// about the knob. Whichever arm is broken, the answer is wrong and its text says
// which one it is.
//
// Is it worth it? Each metric is decided by [stats.Decide] at alpha/k, where k is
// the number of contrasts of the study whose arms could be set up; that number
// is known before anything is measured. Goodput decides, with two exceptions:
//
//   - when the link is saturated in both arms, goodput cannot differ, and CPU
//     per byte decides;
//   - when goodput is decided to be the same and CPU per byte is decided to be
//     better or worse, CPU decides: what an offload is worth is often CPU. Each
//     of the two metrics errs with probability alpha/k.
//
// A later answer is not given when an earlier one is no: an empty answer.
package verdict
