//go:build !purego

package checksum

import "testing"

// EachLevel runs f with every loop that this machine can run.
func EachLevel(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	best := level
	t.Cleanup(func() { level = best })
	names := []string{levelWords: "words", levelAVX2: "avx2", levelAVX512: "avx512"}
	for l := range best + 1 {
		t.Run(names[l], func(t *testing.T) {
			level = l
			f(t)
		})
	}
}
