package knob_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/sys/ethtool"
)

// TestBroken is about the reasons named; that the kernel keeps the rules is
// tested with them, in package feature.
func TestBroken(t *testing.T) {
	free, lit, fixed := ethtool.Bits{HW: true}, ethtool.Bits{HW: true, Wanted: true, Active: true}, ethtool.Bits{}
	for _, tt := range []struct {
		name, feature, want string
		now                 map[string]ethtool.Bits
	}{
		{"sg", "tx-tcp6-segmentation", "needs tx-scatter-gather, which is off (", map[string]ethtool.Bits{"tx-scatter-gather": free}},
		{"sg-fixed", "tx-tcp-segmentation", "needs tx-scatter-gather, which is off [fixed] (", nil},
		{
			"csum-possible", "tx-tcp-segmentation", "needs tx-checksum-ip-generic, which is off (",
			map[string]ethtool.Bits{"tx-scatter-gather": lit, "tx-checksum-ip-generic": free, "tx-checksum-ipv4": fixed},
		},
		{
			"csum-either", "tx-tcp6-segmentation", "needs tx-checksum-ip-generic, which is off; or tx-checksum-ipv6, which is off (",
			map[string]ethtool.Bits{"tx-scatter-gather": lit, "tx-checksum-ip-generic": free, "tx-checksum-ipv6": free},
		},
		{"csum-enough", "tx-tcp6-segmentation", "", map[string]ethtool.Bits{"tx-scatter-gather": lit, "tx-checksum-ipv6": lit}},
		{
			"csum-other-family", "tx-tcp6-segmentation", "needs tx-checksum-ip-generic",
			map[string]ethtool.Bits{"tx-scatter-gather": lit, "tx-checksum-ipv4": lit, "tx-checksum-ip-generic": free},
		},
		{
			"uso-both", "tx-udp-segmentation", "tx-checksum-ipv4, which is on, and tx-checksum-ipv6, which is off (",
			map[string]ethtool.Bits{"tx-checksum-ipv4": lit, "tx-checksum-ipv6": free},
		},
		{"uso-enough", "tx-udp-segmentation", "", map[string]ethtool.Bits{"tx-checksum-ipv4": lit, "tx-checksum-ipv6": lit}},
		{"lro", "rx-lro", "excluded by rx-gro-hw, which is on (", map[string]ethtool.Bits{"rx-gro-hw": lit}},
		{"lro-fcs", "rx-lro", "excluded by rx-fcs", map[string]ethtool.Bits{"rx-fcs": lit}},
		{"gro-hw", "rx-gro-hw", "needs rx-checksum", map[string]ethtool.Bits{"rx-checksum": free}},
		{"gro", "rx-gro", "", nil},
	} {
		got := knob.Broken(tt.feature, tt.now)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for f := range feature.All.Without(feature.GSOUDP).All() { // which has no name
		if !slices.Contains(knob.KernelFeatures, f.String()) {
			t.Errorf("a factor cannot be %v, which package feature knows", f)
		}
	}
}

func TestRun(t *testing.T) {
	for _, tt := range []struct{ command, want string }{
		{"true", ""},
		{"echo fine; echo loud >&2", ""},
		{"exit 3", "exit status 3"},
		{"echo one >&2; echo two >&2; echo three >&2; echo four >&2; exit 1", "exit status 1: two; three; four"},
		{"echo only out; exit 1", "exit status 1: only out"},
		{"kill -TERM $$", "terminated"},
		{"no-such-program", "not found"},
		{"sleep 2 & exit 0", ""}, // in the background
		{"head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1", "exit status 1: xxx"},
	} {
		err := knob.Run(tt.command, 20*time.Second)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Run(%q) = %v, want %q", tt.command, err, tt.want)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("Run(%q): %d bytes of error", tt.command, len(err.Error()))
		}
	}
	start := time.Now()
	err := knob.Run("echo stuck; sleep 60; sleep 60", 200*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not end within 200ms: stuck") || time.Since(start) > 10*time.Second {
		t.Errorf("a command that hangs: %v after %v", err, time.Since(start))
	}
}
