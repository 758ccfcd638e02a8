package packet_test

import (
	"fmt"

	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
)

func ExampleParse() {
	frame := pkttest.Build(eth{}, tag{TCI: 5}, ip4{}, pkttest.VXLAN{VNI: 42}, eth{}, ip6{}, tcp{Dst: 443, Src: 1000}, data)
	l, err := packet.Parse(frame, packet.StartEthernet)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Tags, "tag, IPv4 at", l.Network, "to", packet.IPv4(frame[l.Network:]).Destination())
	fmt.Println(l.Tunnel, packet.VXLANHeader(frame[l.TunnelAt:]).VNI())
	in := l.Innermost()
	fmt.Println("IPv6 at", in.Network, "TCP port", packet.TCP(frame[in.Transport:]).DestinationPort())
	// Output:
	// 1 tag, IPv4 at 18 to [192 0 2 2]
	// vxlan 42
	// IPv6 at 68 TCP port 443
}
