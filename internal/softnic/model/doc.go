// Package model holds the cards that the soft NIC can be: one file for each,
// with the source that its figures come from.
package model
