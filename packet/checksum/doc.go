// Package checksum computes Internet checksums (RFC 1071): the ones'
// complement sum of big-endian 16-bit words that IPv4, TCP, UDP, ICMP and GRE
// carry.
//
// A [Partial] is a running sum. It is built from bytes ([Sum], [CopySum]) and
// from header values ([PseudoIPv4], [PseudoIPv6], [Partial.Add16]), joined with
// other sums ([Partial.Combine]) and ends as the value of a checksum field:
//
//	p := checksum.PseudoIPv4(src, dst, 6, len(segment)) + checksum.Sum(segment)
//	field := p.Checksum() // with the field itself zero while summing
//
// Two sums are joined with +, as long as both began at an even offset; for an
// odd one use [Partial.Combine].
//
// # Zero
//
// Ones' complement has two zeros. A sum of anything but zero bytes folds to
// 0xffff, never to 0, as in Linux; [Partial.Checksum] then gives 0. UDP writes
// that as 0xffff, since 0 means "no checksum" (RFC 768, RFC 8200 8.1):
// [Partial.UDP] does so.
//
// # Speed
//
// On amd64 the loops use AVX2, or AVX-512 where the processor and the
// operating system offer it; elsewhere, and with the build tag purego, 64-bit
// words. All forms give the same values. Nothing here allocates.
package checksum
