// Package report renders a study: as text for a terminal, as Markdown, as a
// block for a patch mail, as a web page, as JSON and in the Go benchmark format.
//
// Every format is a pure function of the study and of [Options]: the same
// study gives the same bytes, at any time and on any machine. No figure is
// written without its unit and its n, and a warning stands next to the number
// that it concerns.
//
// Text that comes from outside - device names, errors of a remote program,
// commands - is neutralised where it is written (clean.go): it cannot move the
// cursor, change colours, leave its table cell or open a tag.
package report
