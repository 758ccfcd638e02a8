// Package unit formats quantities with their units.
package unit
