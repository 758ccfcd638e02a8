// Package load holds the traffic that a study measures.
package load
