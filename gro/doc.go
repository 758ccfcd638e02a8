// Package gro merges segments into super-packets, as Linux does.
package gro
