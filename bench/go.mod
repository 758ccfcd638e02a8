module github.com/offlab/offlab/bench

go 1.26.0

require (
	github.com/offlab/anchors/tailscale202603 v0.0.0
	github.com/offlab/offlab v0.0.0
	github.com/tailscale/wireguard-go v0.0.0-20260730222847-4affce44577c
	golang.org/x/sys v0.50.0
	gvisor.dev/gvisor v0.0.0-20260224225140-573d5e7127a8
)

require (
	golang.org/x/exp v0.0.0-20231110203233-9a3e6036ecaa // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/time v0.12.0 // indirect
	golang.zx2c4.com/wintun v0.0.0-20230126152724-0fa3db229ce2 // indirect
)

replace github.com/offlab/offlab => ../

// The last version whose GRO copies; the current one gathers.
replace github.com/offlab/anchors/tailscale202603 => github.com/tailscale/wireguard-go v0.0.0-20260304043104-4184faf59e56
