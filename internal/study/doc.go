// Package study holds the data of a study: plan, slots, verdicts, and the journal they are kept in.
package study
