// Package transport connects a controller to an agent over a byte stream.
package transport
