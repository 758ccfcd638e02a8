//go:build !amd64 || purego

package checksum

// sum returns the folded sum of b.
func sum(b []byte) uint16 {
	if len(b) < 32 {
		return swap(fold(sumShort(b)))
	}
	return swap(fold(sumWords(b)))
}

// copySum copies src to dst, which is as long, and returns the folded sum.
func copySum(dst, src []byte) uint16 { return swap(fold(copySumWords(dst, src))) }
