// Package cli is the command line of offlab.
package cli
