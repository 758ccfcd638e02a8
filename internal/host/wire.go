package host

import (
	"net/netip"

	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/probe"
	"github.com/offlab/offlab/internal/sys/cpu"
)

// Info describes a host.
type Info struct {
	cpu.Info
	PID     int    `json:"pid"`
	NetNS   uint64 `json:"netns"`
	Root    bool   `json:"root"`
	Version string `json:"version"`
}

// Same reports whether two hosts are one machine, and whether they are even in
// one network namespace.
func (i Info) Same(o Info) (machine, namespace bool) {
	machine = i.BootID == o.BootID && i.BootID != ""
	return machine, machine && i.NetNS == o.NetNS
}

// A Device is a network device as a study records it.
type Device struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	Driver    string            `json:"driver"`
	Firmware  string            `json:"firmware,omitempty"`
	MTU       int               `json:"mtu"`
	SpeedMbit int               `json:"speed_mbit,omitempty"`
	Up        bool              `json:"up"`
	Carrier   string            `json:"carrier"`
	Addresses []netip.Prefix    `json:"addresses"`
	Features  map[string]string `json:"features"`
}

// A Veth is a pair to be made: Name here, Peer in the namespace of a process.
type Veth struct {
	Name    string `json:"name"`
	Peer    string `json:"peer"`
	PeerPID int    `json:"peer_pid"`
}

// A Setup configures a device of a lab.
type Setup struct {
	Device    string            `json:"device"`
	Addresses []netip.Prefix    `json:"addresses"`
	MTU       int               `json:"mtu,omitempty"`
	TXQueue   int               `json:"txqueuelen,omitempty"`
	Features  map[string]bool   `json:"features,omitempty"`
	Sysctls   map[string]string `json:"sysctls,omitempty"`
	Routes    []Hop             `json:"routes,omitempty"`
	Steer     int               `json:"steer,omitempty"` // CPU number + 1 that processes what the device receives
}

// A SetupResult says what of a Setup could not be had and is not needed.
type SetupResult struct {
	Without string `json:"without,omitempty"`
}

// A Hop is the way to a network by a neighbour.
type Hop struct {
	To  netip.Prefix `json:"to"`
	Via netip.Addr   `json:"via"`
}

// A Route is the way from a host to an address.
type Route struct {
	Device string     `json:"device"`
	Source netip.Addr `json:"source"`
	Local  bool       `json:"local,omitempty"`
}

// A Moment is everything that one end has counted up to now.
type Moment struct {
	Probe probe.Snapshot `json:"probe"`
	Load  load.Snapshot  `json:"load"`
}

// An End is what an end has to say when its load is over.
type End struct {
	Samples []load.Sample `json:"samples"`
}

// Claimed is what there is to say about a device that was claimed.
type Claimed struct {
	Notes []string `json:"notes,omitempty"`
}

type factors struct {
	Factors []knob.Factor `json:"factors"`
}

type named struct {
	Name string `json:"name"`
}

type listen struct {
	Spec load.Spec  `json:"spec"`
	Addr netip.Addr `json:"addr"`
}

type dial struct {
	Spec load.Spec      `json:"spec"`
	Addr netip.AddrPort `json:"addr"`
}
