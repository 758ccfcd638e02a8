package cpu

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
)

// Steer lets one CPU process all that a device receives (receive packet steering,
// Documentation/networking/scaling.rst), as the interrupt of a card with one
// queue would. It needs a /sys of the present network namespace, and root of the
// machine.
func Steer(device string, n int) error {
	return steer("/sys/class/net", device, n)
}

func steer(root, device string, n int) error {
	files, err := filepath.Glob(filepath.Join(root, device, "queues/rx-*/rps_cpus"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("cpu: %s has no receive queues in %s: %w", device, root, os.ErrNotExist)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte(mask(n)), 0o644); err != nil {
			return fmt.Errorf("cpu: steer %s: %w", device, err)
		}
	}
	return nil
}

// mask writes one CPU as the kernel writes sets of them: words of 32 bits in
// hexadecimal, the highest first, joined by commas.
func mask(n int) string {
	hex := new(big.Int).Lsh(big.NewInt(1), uint(n)).Text(16)
	var words []string
	for len(hex) > 8 {
		words = append([]string{hex[len(hex)-8:]}, words...)
		hex = hex[:len(hex)-8]
	}
	return strings.Join(append([]string{hex}, words...), ",")
}
