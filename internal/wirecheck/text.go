package wirecheck

import (
	"fmt"

	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
)

// The sentences about the first offender of each kind.

func textTooLong(n, mtu int) string { return fmt.Sprintf("%d bytes on a wire of %d", n, mtu) }

func textTruncated(claims, has int) string {
	return fmt.Sprintf("the IP header claims %d bytes, and %d are there", claims, has)
}

func textHeader(n int) string {
	return fmt.Sprintf("the IP header claims %d bytes, fewer than its headers have", n)
}

func textTrailer(b []byte) string {
	const most = 8
	if len(b) > most {
		return fmt.Sprintf("%d bytes behind the packet: % x ...", len(b), b[:most])
	}
	return fmt.Sprintf("%d bytes behind the packet: % x", len(b), b)
}

func textTags(was, is uint8) string {
	return fmt.Sprintf("%d tags, the segment before has %d", is, was)
}

func textChange(was, is uint8) string { return fmt.Sprintf("%d behind %d", is, was) }

func textOrder(segments, bytes int) string {
	return fmt.Sprintf("out of order by %d × MSS: behind %d bytes that follow it", segments, bytes)
}

func textOverlap(n int) string { return fmt.Sprintf("its first %d bytes were sent before", n) }

func textBig(size, limit int) string {
	return fmt.Sprintf("%d bytes of data, at most %d fit", size, limit)
}

func textSmall(size, limit, n int) string {
	return fmt.Sprintf("%d segments in a row of %d bytes, and %d would fit", n, size, limit)
}

func textID(id uint16, n int) string { return fmt.Sprintf("ID %d on %d segments in a row", id, n) }

func textFin(n int) string { return fmt.Sprintf("%d bytes behind the end of the stream", n) }

func textHeaderSum(b []byte, s *packet.Stack) string {
	ip := packet.IPv4(b[s.Network:])
	return fmt.Sprintf("0x%04x, right is 0x%04x", ip.Checksum(), ip.ComputeChecksum())
}

// textSum says what a checksum is instead of what it should be, and why if that
// is one of the known mistakes. The sum is that of segmentSum.
func textSum(b []byte, s *packet.Stack, end int, sum checksum.Partial) string {
	seg := b[s.Transport:end]
	field, right := packet.TCP(seg).Checksum, checksum.Partial.Checksum
	name := "TCP"
	if s.Proto == packet.ProtoUDP {
		field, right, name = packet.UDP(seg).Checksum, checksum.Partial.UDP, "UDP"
	}
	is := field()
	want := right(sum.Sub16(is))
	pseudo := packet.Pseudo(b[s.Network:], s.Proto, len(seg)).Fold()
	text := fmt.Sprintf("%s checksum 0x%04x, right is 0x%04x", name, is, want)
	switch {
	case is == pseudo || pseudo == 0 && is == 0xffff:
		return text + ": never completed, it is the sum of the pseudo-header"
	case checksum.Update(want, 0, pseudo) == is:
		return text + ": the field was not cleared before it was completed"
	}
	if low := int(want) - int(is); low > 0 && low < 64 && end < minFrame {
		return text + fmt.Sprintf(": %d too low, with %d bytes of padding", low, minFrame-end)
	}
	return text
}
