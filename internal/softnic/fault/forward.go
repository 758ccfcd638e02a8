package fault

import "github.com/offlab/offlab/internal/softnic"

// forwardedTSO gets only the first segment right of a super-packet that GRO
// built: its data lies in other pieces than that of a local sender.
var forwardedTSO = softnic.Fault{
	Name:  "forwarded-tso",
	About: "of a forwarded super-packet only the first segment has a good checksum",
	Source: "projectbluefin/lab 662, 664: thunderbolt0, 244 kB/s forwarded with TSO and 380 MB/s without, " +
		"1.10 GB/s from the host itself",
	Hooks: edit(func(f *softnic.Frame) {
		if !cut(f) || f.First() || !f.Forwarded() {
			return
		}
		if field := ordered(f); field != nil {
			spoil(field, 1)
		}
	}),
}

// forwardedDrop compares the length of the packet with the MTU, where it should
// have been that of a segment (skb_gso_validate_network_len).
var forwardedDrop = softnic.Fault{
	Name:   "forwarded-drop",
	About:  "forwarded super-packets are dropped, as longer than the MTU",
	Source: "google/gvisor 14011, 14579; FDio/vpp#3184; cloud-hypervisor#4792: 35 kB/s flat",
	Hooks: before(func(f *softnic.Frame) bool {
		return super(f) && f.Forwarded()
	}),
}
