package gro

import (
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// complete lets f leave the engine: napi_gro_complete. A packet that nothing
// was merged with leaves as it came.
func (e *Engine) complete(f *flow, why Reason) {
	e.unlink(f)
	e.done = append(e.done, f)
	e.counts[why]++
	o := e.output()
	o.Segments, o.Reason = f.count, why
	switch {
	case !e.opt.Gather:
		o.Data = f.buf[:f.size]
	case f.pushed == 1 && !f.parts:
		o.Data = f.first
	default:
		o.Data, o.Payload = f.buf[:f.pay], f.refs
	}
	switch {
	case f.pushed == 1:
		o.Header = f.in
		if f.count == 1 {
			o.Header.GSOType, o.Header.GSOSize = vnet.GSONone, 0
		}
		if f.valid && f.in.Flags&vnet.NeedsCsum == 0 {
			o.Header.Flags |= vnet.DataValid
		}
	case e.opt.Policy == LRO:
		f.rewriteLRO(o)
	default:
		f.rewrite(o, e.opt.Semantics)
	}
}

// output returns a cleared one at the end of e.out.
func (e *Engine) output() *Output {
	if n := len(e.out); n < cap(e.out) {
		e.out = e.out[:n+1]
		e.out[n] = Output{}
	} else {
		e.out = append(e.out, Output{})
	}
	return &e.out[len(e.out)-1]
}

// rewrite makes the headers and the virtio_net_hdr of an aggregate.
func (f *flow) rewrite(o *Output, sem Semantics) {
	o.FixedID = f.fixed&fixedInner != 0
	if f.o4 != 0 {
		o.FixedID, o.FixedInnerID = f.fixed&fixedOuter != 0, o.FixedID
	}
	v := &o.Header
	v.Flags = vnet.NeedsCsum
	v.HdrLen, v.GSOSize, v.CsumStart = uint16(f.pay), uint16(f.gso), uint16(f.l4)
	if f.o4 != 0 {
		o.Tunnel = f.tunnel()
		f.setLength(f.o3)
		if o.Tunnel == packet.VXLAN || o.Tunnel == packet.Geneve {
			f.outerUDP(v)
		}
	}
	f.setLength(f.l3)
	t := f.buf[f.l4:]
	sum := pseudo(f.buf[f.l3:], f.proto(), f.size-f.l4).Fold()
	if f.proto() == packet.ProtoUDP {
		u := packet.UDP(t)
		u.SetLength(f.size - f.l4)
		u.SetChecksum(sum)
		v.GSOType |= vnet.GSOUDPL4
		v.CsumOffset = packet.UDPChecksumOffset
		return
	}
	packet.TCP(t).SetChecksum(sum)
	v.CsumOffset = packet.TCPChecksumOffset
	if f.buf[f.l3]>>4 == 6 {
		v.GSOType |= vnet.GSOTCPv6
	} else {
		v.GSOType |= vnet.GSOTCPv4
	}
	if t[13]&packet.CWR != 0 && sem != Linux72 {
		v.GSOType |= vnet.GSOECN
	}
}

// outerUDP sets length and checksum of the UDP header around VXLAN or Geneve: a
// checksum that is there becomes the pseudo-header's sum.
func (f *flow) outerUDP(v *vnet.Header) {
	u := packet.UDP(f.buf[f.o4:])
	n := f.size - f.o4
	u.SetLength(n)
	v.GSOType = vnet.GSOUDPTunnel4
	if f.buf[f.o3]>>4 == 6 {
		v.GSOType = vnet.GSOUDPTunnel6
	}
	if u.Checksum() != 0 {
		u.SetChecksum(pseudo(f.buf[f.o3:], packet.ProtoUDP, n).Fold())
		v.Flags |= vnet.UDPTunnelCsum
	}
	v.OuterTransport, v.InnerNetwork = uint16(f.o4), uint16(f.l3)
}

// setLength makes the IP header at l3 fit what is behind it. A length that
// does not fit in 16 bits is 0 (BIG TCP: Linux's iph_set_totlen, and the IPv6
// form without jumbo option of 7.x).
func (f *flow) setLength(l3 int) {
	n := f.size - l3
	if f.buf[l3]>>4 == 6 {
		if n -= packet.IPv6Len; n > 0xffff {
			n = 0
		}
		packet.IPv6(f.buf[l3:]).SetPayloadLen(n)
		return
	}
	if n > 0xffff {
		n = 0
	}
	ip := packet.IPv4(f.buf[l3 : l3+packet.IPv4MinLen])
	ip.SetTotalLen(n)
	ip.SetChecksum(0)
	ip.SetChecksum(headerSum(ip).Checksum())
}

func (f *flow) tunnel() packet.Tunnel { return packet.Tunnel(f.sig >> 52 & 7) }

func (f *flow) proto() uint8 { return uint8(f.sig >> 56) }

// appendRefs appends what lies behind the first skip bytes of the packet.
func appendRefs(refs [][]byte, pk *Packet, skip int) [][]byte {
	if len(pk.Rest) == 0 {
		return append(refs, pk.Data[skip:len(pk.Data):len(pk.Data)])
	}
	part := pk.Data
	for i := -1; ; {
		if skip < len(part) {
			refs = append(refs, part[skip:len(part):len(part)])
			skip = 0
		} else {
			skip -= len(part)
		}
		if i++; i == len(pk.Rest) {
			return refs
		}
		part = pk.Rest[i]
	}
}
