package checksum

import (
	"encoding/binary"
	"math/bits"
)

// A Partial is an unfinished ones' complement sum of big-endian 16-bit words.
// The zero value is the sum of nothing.
//
// What the functions of this package return is below 1<<33, so billions of
// values can be joined with + before the 64 bits overflow.
type Partial uint64

// Sum returns the sum of b. A last odd byte counts as the high half of a word
// (RFC 1071 section 2), so a sum that more bytes will follow must be of even
// length, or be joined with Combine.
func Sum(b []byte) Partial { return Partial(sum(b)) }

// CopySum copies src to dst and returns the sum of src, reading src only once.
// It panics if dst is shorter than src. The two must not overlap, unless they
// begin at the same byte.
func CopySum(dst, src []byte) Partial { return Partial(copySum(dst[:len(src)], src)) }

// Add16 adds one 16-bit header field.
func (p Partial) Add16(v uint16) Partial { return p + Partial(v) }

// Add32 adds one 32-bit header field.
func (p Partial) Add32(v uint32) Partial { return p + Partial(v>>16) + Partial(v&0xffff) }

// Sub16 removes a 16-bit field that the sum contains.
func (p Partial) Sub16(v uint16) Partial { return p + Partial(^v) }

// Sub removes the sum q, which p contains.
func (p Partial) Sub(q Partial) Partial { return p + Partial(^q.Fold()) }

// Combine joins p with q, the sum of bytes that lie offset bytes behind the
// first byte of p. Behind an odd number of bytes each byte of q changes place
// in its word (RFC 1071 section 2, "byte order independence").
func (p Partial) Combine(q Partial, offset int) Partial {
	if offset&1 != 0 {
		q = Partial(bits.ReverseBytes16(q.Fold()))
	}
	return p + q
}

// Fold returns the sum in 16 bits, not complemented: what a sender leaves in
// the checksum field for the device to complete.
func (p Partial) Fold() uint16 { return fold(uint64(p)) }

// Checksum returns the complement of the folded sum: the value of a checksum
// field.
func (p Partial) Checksum() uint16 { return ^fold(uint64(p)) }

// UDP returns the value of a UDP checksum field: as Checksum, but 0xffff in
// place of 0, which would say that there is none.
func (p Partial) UDP() uint16 {
	if c := p.Checksum(); c != 0 {
		return c
	}
	return 0xffff
}

// PseudoIPv4 returns the sum of the pseudo-header of RFC 9293 section 3.1 and
// RFC 768. The length is that of the transport header and its payload, in
// bytes; the sum also holds for lengths above 65535 (BIG TCP).
func PseudoIPv4(src, dst [4]byte, proto uint8, length int) Partial {
	s := uint64(binary.BigEndian.Uint32(src[:])) + uint64(binary.BigEndian.Uint32(dst[:]))
	return Partial(s>>16 + s&0xffff + uint64(proto) + uint64(uint32(length)>>16) + uint64(uint16(length)))
}

// PseudoIPv6 returns the sum of the pseudo-header of RFC 8200 section 8.1. The
// length is that of the transport header and its payload, in bytes. With a
// routing header dst is the final destination.
func PseudoIPv6(src, dst *[16]byte, proto uint8, length int) Partial {
	s, c := bits.Add64(binary.BigEndian.Uint64(src[:]), binary.BigEndian.Uint64(src[8:]), 0)
	s, c = bits.Add64(s, binary.BigEndian.Uint64(dst[:]), c)
	s, c = bits.Add64(s, binary.BigEndian.Uint64(dst[8:]), c)
	s = s>>32 + s&0xffffffff + c
	return Partial(s>>16 + s&0xffff + uint64(proto) + uint64(uint32(length)>>16) + uint64(uint16(length)))
}

// Update returns the value of a checksum field after a 16-bit word under it
// changed from old to new (RFC 1624, equation 3).
func Update(field, old, new uint16) uint16 {
	return ^fold(uint64(^field) + uint64(^old) + uint64(new))
}

// UpdateBytes returns the value of a checksum field after bytes under it
// changed. Both slices begin at an even offset of what is summed and are
// equally long.
func UpdateBytes(field uint16, old, new []byte) uint16 {
	return (Partial(^field) + Sum(new)).Sub(Sum(old)).Checksum()
}

// fold brings a sum to 16 bits, adding the carries back in. Only 0 folds to 0.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff // at most 33 bits
	s = s>>16 + s&0xffff     // at most 18 bits
	s = s>>16 + s&0xffff     // at most 0x10001
	return uint16(s>>16 + s&0xffff)
}

// swap turns a sum of little-endian words into one of big-endian words.
func swap(v uint16) uint16 { return bits.ReverseBytes16(v) }

// sumWords is the portable loop. It sums little-endian 64-bit words with
// end-around carry: the sum modulo 1<<64-1, which is also right modulo 65535.
func sumWords(b []byte) uint64 {
	var s, c uint64
	for len(b) >= 64 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[8:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[16:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[24:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[32:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[40:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[48:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[56:]), c)
		b = b[64:]
	}
	for len(b) >= 8 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), c)
		b = b[8:]
	}
	var last uint64
	if len(b) >= 4 {
		last = uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
		if len(b) > 0 {
			last |= tail3(b) << 32
		}
	} else if len(b) > 0 {
		last = tail3(b)
	}
	s, c = bits.Add64(s, last, c)
	s, c = bits.Add64(s, 0, c)
	return s + c
}

// sumShort is sumWords for less than 32 bytes, such as an IPv4 header, without
// a loop.
func sumShort(b []byte) uint64 {
	var s, c uint64
	if len(b) >= 16 {
		s, c = bits.Add64(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), 0)
		b = b[16:]
	}
	if len(b) >= 8 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), c)
		b = b[8:]
	}
	s, c = bits.Add64(s, c, 0) // c is 1 only if s is 0 now
	s += c
	var t uint64 // below 1<<34
	if len(b) >= 4 {
		t = uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) > 0 {
		t += tail3(b)
	}
	s, c = bits.Add64(s, t, 0)
	return s + c
}

// tail3 reads one to three bytes as a little-endian value.
func tail3(b []byte) uint64 {
	v := uint64(b[0])
	if len(b) > 1 {
		v |= uint64(b[1]) << 8
	}
	if len(b) > 2 {
		v |= uint64(b[2]) << 16
	}
	return v
}
