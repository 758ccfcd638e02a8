// Package checksum computes Internet checksums (RFC 1071).
package checksum
