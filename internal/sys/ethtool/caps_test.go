package ethtool_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// dropCapabilities takes all rights from the calling thread alone.
func dropCapabilities(t *testing.T) {
	t.Helper()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		t.Error(err)
	}
}
