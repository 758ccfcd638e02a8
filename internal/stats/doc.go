// Package stats decides paired comparisons while they run.
package stats
