package sock

import (
	"net"
	"strconv"
)

// zone turns the zone of a link-local address into an interface index; 0, the
// kernel's "none", for a zone that names no interface.
func zone(name string) uint32 {
	if name == "" {
		return 0
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return 0 // connect then fails with EINVAL, which names the cause
	}
	return uint32(ifi.Index)
}
