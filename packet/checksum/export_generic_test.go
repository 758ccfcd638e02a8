//go:build !amd64 || purego

package checksum

import "testing"

// EachLevel runs f with every loop that this machine can run.
func EachLevel(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Run("words", f)
}
