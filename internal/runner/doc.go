// Package runner executes a plan, slot by slot.
package runner
