//go:build !amd64 || purego

package checksum

// vectorMin is the length from which a vector loop would pay; there is none.
const vectorMin = 256

func sumLong(b []byte) uint64 { return sumWords(b) }

func copySumLong(dst, src []byte) uint64 { return copySumWords(dst, src) }
