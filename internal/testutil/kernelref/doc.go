// Package kernelref drives the running kernel as the reference for
// segmentation and coalescing: TAP devices and packet sockets in a private
// network namespace.
package kernelref
