// Package probe observes a host while a load runs.
package probe
