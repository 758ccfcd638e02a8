// Package ethtool reads and changes the features, coalescing and rings of a network device.
package ethtool
