// Package unit writes quantities with their units, and reads them.
//
// Two kinds of text are made here. What people read is short: three significant
// digits, a decimal prefix, a blank before the unit ([Value], [Pair],
// [Effect]). What flags and files hold is exact: for every [Bytes] and [Rate],
// parsing its String gives it back.
//
// All text is ASCII but for "µs", so that a figure can be searched for and
// pasted. A value that is not a number is written "?".
package unit
