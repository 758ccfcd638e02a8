package main

import (
	"github.com/tailscale/wireguard-go/tun"
	gvisor "gvisor.dev/gvisor/pkg/tcpip/checksum"

	"github.com/offlab/offlab/packet/checksum"
)

// sink keeps results alive.
var sink uint64

func checksumRows() []row {
	var out []row
	for _, s := range []struct {
		name   string
		n      int
		target string
	}{
		{"checksum 20 B", 20, ""},
		{"checksum 1448 B", 1448, "≤ 1.00 × tailscale"},
		{"checksum 64 KB", 65160, "≤ 1.00 × tailscale"},
	} {
		b := make([]byte, s.n)
		for i := range b {
			b[i] = byte(i * 7)
		}
		ours := func() { sink += uint64(checksum.Sum(b).Fold()) }
		out = append(out,
			row{work: s.name, units: 1, unit: "ns", ours: ours, anchor: "tailscale", theirs: func() { sink += uint64(tun.Checksum(b, 0)) }, target: s.target},
			row{work: s.name, units: 1, unit: "ns", ours: ours, anchor: "gVisor", theirs: func() { sink += uint64(gvisor.Checksum(b, 0)) }})
		d := make([]byte, s.n)
		out = append(out, row{
			work: "copy and " + s.name, units: 1, unit: "ns",
			ours:   func() { sink += uint64(checksum.CopySum(d, b).Fold()) },
			anchor: "copy, then tailscale", theirs: func() { copy(d, b); sink += uint64(tun.Checksum(d, 0)) },
		})
	}
	return out
}
