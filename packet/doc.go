// Package packet finds the headers of a frame and gives views of them.
//
// [Parse] walks a frame once and returns a [Layout]: where each header begins,
// outer and, behind one level of tunnel, inner. A view ([IPv4], [TCP], …) is a
// byte slice with methods for the fields of its header; nothing is copied, and
// a setter writes to the frame itself:
//
//	l, err := packet.Parse(frame, packet.StartIP)
//	if err == nil && l.Proto == packet.ProtoTCP {
//		tcp := packet.TCP(frame[l.Transport:])
//		tcp.SetWindow(0)
//	}
//
// # What is understood
//
// Ethernet with any number of 802.1Q and 802.1ad tags; IPv4 with options; IPv6
// with hop-by-hop, routing, destination and fragment headers; TCP with
// options; UDP. As tunnels VXLAN (RFC 7348), Geneve (RFC 8926), GRE with
// checksum, key and sequence number (RFC 2784, RFC 2890), and IP in IP: IPIP,
// SIT, 4in6, 6in6. A tunnel inside a tunnel stays unparsed: Inner.Proto names
// it.
//
// # What is trusted
//
// Nothing. No offset is beyond the frame, whatever the bytes say. Lengths in
// headers are reported, not followed: [Stack.Length] may disagree with the
// frame (padding, truncation, a super-packet whose length does not fit), and
// the caller decides. Checksums are not looked at.
//
// Views do not check their length either; they are for frames that Parse
// accepted. A method called on a slice shorter than its header panics, as
// indexing does.
package packet
