// Package vnet encodes and decodes virtio_net_hdr.
package vnet
