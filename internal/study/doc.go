// Package study holds the data of a study: its plan, its slots, its verdicts,
// and the journal they are kept in.
//
// Data goes one way. A [Plan] is plain data that means the same on every
// machine. Executing it appends one [Slot] at a time to a journal; everything
// after the journal is a pure function of it, so that any report can be made
// again from the file.
//
// Two file forms hold a study, and [Read] takes either: the journal, one JSON
// value a line, appended and synced slot by slot; and the study file, one JSON
// document with the verdicts in it, whose keys other programs may rely on.
package study
