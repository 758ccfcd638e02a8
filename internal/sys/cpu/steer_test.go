package cpu

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMask(t *testing.T) {
	for n, want := range map[int]string{0: "1", 1: "2", 31: "80000000", 32: "1,00000000", 70: "40,00000000,00000000"} {
		if got := mask(n); got != want {
			t.Errorf("mask(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestSteer(t *testing.T) {
	root := t.TempDir()
	for _, q := range []string{"rx-0", "rx-1"} {
		dir := filepath.Join(root, "v0/queues", q)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "rps_cpus"), []byte("0"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := steer(root, "v0", 1); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"rx-0", "rx-1"} {
		if b, _ := os.ReadFile(filepath.Join(root, "v0/queues", q, "rps_cpus")); string(b) != "2" {
			t.Errorf("%s is steered to %q, want 2", q, b)
		}
	}
	if err := steer(root, "v1", 1); err == nil {
		t.Error("a device without queues was steered")
	}
}
