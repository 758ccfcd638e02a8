package main

import (
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	vgro "gvisor.dev/gvisor/pkg/tcpip/stack/gro"
)

// counter counts what gVisor's GRO delivers.
type counter struct{ n int }

// DeliverNetworkPacket implements stack.NetworkDispatcher.
func (c *counter) DeliverNetworkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) { c.n++ }

// DeliverLinkPacket implements stack.NetworkDispatcher.
func (*counter) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// gvisorAnchor merges the packets with gVisor's GRO. It takes packet buffers, so
// making them, which copies the packet, belongs to the work. Flush delivers one
// packet of each bucket (gvisor#14081), so it is called until nothing is left.
func gvisorAnchor(pkts [][]byte, flows int) func() {
	c := &counter{}
	g := &vgro.GRO{Dispatcher: c}
	g.Init(true)
	return func() {
		c.n = 0
		for _, b := range pkts {
			p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
			p.NetworkProtocolNumber = header.IPv4ProtocolNumber
			g.Enqueue(p)
			p.DecRef()
		}
		for last := -1; last != c.n; {
			last = c.n
			g.Flush()
		}
		if c.n < flows {
			panic(c.n)
		}
	}
}
