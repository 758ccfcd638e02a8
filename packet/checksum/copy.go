package checksum

import (
	"encoding/binary"
	"math/bits"
)

// copySumWords is the portable form of CopySum: one pass, 32 bytes a turn.
func copySumWords(dst, src []byte) uint64 {
	dst = dst[:len(src)]
	var s, c uint64
	for len(src) >= 32 && len(dst) >= 32 {
		w0 := binary.LittleEndian.Uint64(src)
		w1 := binary.LittleEndian.Uint64(src[8:])
		w2 := binary.LittleEndian.Uint64(src[16:])
		w3 := binary.LittleEndian.Uint64(src[24:])
		binary.LittleEndian.PutUint64(dst, w0)
		binary.LittleEndian.PutUint64(dst[8:], w1)
		binary.LittleEndian.PutUint64(dst[16:], w2)
		binary.LittleEndian.PutUint64(dst[24:], w3)
		s, c = bits.Add64(s, w0, c)
		s, c = bits.Add64(s, w1, c)
		s, c = bits.Add64(s, w2, c)
		s, c = bits.Add64(s, w3, c)
		src, dst = src[32:], dst[32:]
	}
	copy(dst, src)
	s, c = bits.Add64(s, sumWords(src), c)
	s, c = bits.Add64(s, 0, c)
	return s + c
}
