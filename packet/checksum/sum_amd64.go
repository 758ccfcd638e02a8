//go:build amd64 && !purego

package checksum

import "unsafe"

// vectorMin is the length from which the vector loops are used; they need 32
// bytes.
const vectorMin = 32

// The vector units that a loop exists for.
const (
	levelWords = iota
	levelAVX2
	levelAVX512
)

var level = detect()

//go:noescape
func sumAVX2(src *byte, n int) uint16

//go:noescape
func copySumAVX2(dst, src *byte, n int) uint16

//go:noescape
func sumAVX512(src *byte, n int) uint16

//go:noescape
func copySumAVX512(dst, src *byte, n int) uint16

//nolint:revive // the processor returns four registers
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

func xgetbv() uint32

// detect asks the processor what it has and the operating system what it
// saves (Intel SDM volume 1, 13.3 and 14.3): a vector unit whose registers are
// lost at a task switch must not be used.
func detect() int {
	const (
		osxsave, avx = 1 << 27, 1 << 28      // leaf 1, ecx
		avx2         = 1 << 5                // leaf 7, ebx
		avx512       = 1<<16 | 1<<30 | 1<<31 // F, BW, VL
		ymm          = 1<<1 | 1<<2           // XCR0
		zmm          = ymm | 7<<5
	)
	if most, _, _, _ := cpuid(0, 0); most < 7 {
		return levelWords
	}
	if _, _, c, _ := cpuid(1, 0); c&(osxsave|avx) != osxsave|avx {
		return levelWords
	}
	_, b, _, _ := cpuid(7, 0)
	saved := xgetbv()
	switch {
	case b&avx2 == 0 || saved&ymm != ymm:
		return levelWords
	case b&avx512 != avx512 || saved&zmm != zmm:
		return levelAVX2
	}
	if !agree512() {
		return levelAVX2
	}
	return levelAVX512
}

// agree512 compares the AVX-512 loops with the portable one on a few lengths
// before they are trusted: processors that have the unit are rare where this
// is developed, and a microsecond at start is cheaper than a wrong checksum.
func agree512() bool {
	var src, dst [777]byte
	for i := range src {
		src[i] = byte(i*7 + i>>3)
	}
	for _, n := range []int{32, 63, 64, 65, 255, 256, 300, 513, 777} {
		want := swap(fold(sumWords(src[:n])))
		if sumAVX512(&src[0], n) != want || copySumAVX512(&dst[0], &src[0], n) != want || dst[n-1] != src[n-1] {
			return false
		}
	}
	return dst == src
}

// sumMax is the most that sumAVX2 takes, in bytes: its 32-bit lanes grow by
// 1<<16 for 128 bytes and must stay below 1<<31. It is even, so that the next
// part begins with a word.
const sumMax = 1 << 20

// sum returns the folded sum of b.
func sum(b []byte) uint16 {
	if len(b) < vectorMin {
		return swap(fold(sumShort(b)))
	}
	switch level {
	case levelAVX512:
		return sumAVX512(unsafe.SliceData(b), len(b))
	case levelAVX2:
		if len(b) > sumMax {
			return (Partial(sum(b[:sumMax])) + Partial(sum(b[sumMax:]))).Fold()
		}
		return sumAVX2(unsafe.SliceData(b), len(b))
	}
	return swap(fold(sumWords(b)))
}

// copySum copies src to dst, which is as long, and returns the folded sum.
func copySum(dst, src []byte) uint16 {
	if len(src) < vectorMin {
		copy(dst, src)
		return swap(fold(sumShort(src)))
	}
	switch level {
	case levelAVX512:
		return copySumAVX512(unsafe.SliceData(dst), unsafe.SliceData(src), len(src))
	case levelAVX2:
		return copySumAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), len(src))
	}
	return swap(fold(copySumWords(dst, src)))
}
