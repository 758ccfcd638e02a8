// Package sock is the socket layer of the loads.
package sock
