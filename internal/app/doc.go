// Package app puts the parts together.
package app
