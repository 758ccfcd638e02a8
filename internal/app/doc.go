// Package app puts the parts together: it makes plans from what the command
// line says, builds labs, and runs studies in them.
package app
