package load

import (
	"bytes"
	"encoding/binary"
)

// The payload of a stream is a filler of period bytes, over and over, in which
// each 8 bytes at a multiple of gap are replaced by a stamp: the number of the
// line (offset / gap), scrambled with a key of the stream. Stamps never repeat
// within a stream. Hence
//
//   - a piece of 71 bytes or more, at whatever offset, has a whole stamp in it:
//     lost, doubled, swapped or moved, it is seen always, and in full if its
//     move is no multiple of the period (251 is prime: no page, no segment of
//     the usual sizes and no power of two is one);
//   - a shorter piece escapes only if it lies between two stamps and moved by
//     an exact multiple of 16,064 bytes;
//   - a piece of another stream has stamps of another key;
//   - a stamp that is found out of its place says where it came from.
//
// Making the payload costs one store of 8 bytes for each cache line, checking
// it that and bytes.Equal (AVX2 in the runtime) against a filler that stays in
// the first-level cache: some 60 GB/s on Zen 3, where the copy out of the
// kernel makes 10.
const (
	gap    = 64
	period = 251 * gap
	stride = 0x9E3779B97F4A7C15 // odd, hence invertible modulo 2^64
)

// inverse·stride = 1 modulo 2^64.
const inverse = 0xF1DE83E19937733D

// streamKey returns the key of the stamps of a stream.
func streamKey(t Token, stream int) uint64 {
	k := binary.LittleEndian.Uint64(t[:]) ^ mix(binary.LittleEndian.Uint64(t[8:]))
	return mix(k + uint64(stream+1)*stride)
}

// mix is the finalizer of splitmix64 (Steele, Lea and Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// fill writes the filler; b may be longer than a period.
func fill(b []byte) {
	var word [8]byte
	for i := range b {
		if i%8 == 0 {
			binary.LittleEndian.PutUint64(word[:], mix(uint64(i%period)+1))
		}
		b[i] = word[i%8]
	}
}

// stamp puts the stamps of the lines from number line on into b, whose first
// byte is the first of that line.
func stamp(b []byte, key, line uint64) {
	v := key + line*stride
	for len(b) >= gap {
		binary.LittleEndian.PutUint64(b, v)
		v += stride
		b = b[gap:]
	}
}

// unstamp returns the line of which v is the stamp. ok is false if no stream
// of any real length has it: it is no stamp of this key.
func unstamp(v, key uint64) (line uint64, ok bool) {
	line = (v - key) * inverse
	return line, line < 1<<40 // 64 TiB; a random v passes once in 2^24
}

// up rounds to the end of the line.
func up(n int) int { return (n + gap - 1) &^ (gap - 1) }

// A source makes payload in a buffer of its own.
type source struct{ buf []byte }

// sourceSize is the length of the buffer that a source of pieces up to n needs.
func sourceSize(n int) int { return period + up(n) + gap }

func newSource(buf []byte) *source {
	fill(buf)
	return &source{buf}
}

// next returns the n bytes of the stream with this key from off on. They are
// good until the next call.
func (s *source) next(key, off uint64, n int) []byte {
	i := int(off % period)
	stamp(s.buf[i&^(gap-1):up(i+n)], key, off/gap)
	return s.buf[i : i+n]
}

// A checker compares payload with what it must be.
type checker struct{ buf []byte }

func newChecker() *checker {
	c := &checker{make([]byte, period)}
	fill(c.buf)
	return c
}

// check returns how many bytes of data are wrong, and the index of the first.
func (c *checker) check(key, off uint64, data []byte) (bad, first int) {
	for at := 0; at < len(data); {
		want := c.want(key, off+uint64(at), len(data)-at)
		got := data[at : at+len(want)]
		if !bytes.Equal(got, want) {
			n, i := differ(got, want)
			if bad == 0 {
				first = at + i
			}
			bad += n
		}
		at += len(want)
	}
	return bad, first
}

// want returns the bytes of the stream from off on, n or up to the end of the
// period.
func (c *checker) want(key, off uint64, n int) []byte {
	i := int(off % period)
	n = min(n, period-i)
	stamp(c.buf[i&^(gap-1):up(i+n)], key, off/gap)
	return c.buf[i : i+n]
}

func differ(a, b []byte) (n, first int) {
	first = -1
	for i := range a {
		if a[i] != b[i] {
			if n == 0 {
				first = i
			}
			n++
		}
	}
	return n, first
}

// A Corruption is the first wrong byte of a stream.
type Corruption struct {
	Stream int    `json:"stream"`
	Offset uint64 `json:"offset"` // in the payload of the stream
	Want   []byte `json:"want"`   // up to 16 bytes from Offset on
	Got    []byte `json:"got"`
	// Origin says whether the stamps found around Offset are in their place
	// (bytes were changed) or belong elsewhere (bytes were lost, doubled or
	// swapped); then Shift is how much farther on in the stream their place is.
	Origin Origin `json:"origin"`
	Shift  int64  `json:"shift,omitempty"`
}

// Origin says where wrong data comes from.
type Origin string

// The origins.
const (
	InPlace   Origin = "in-place" // the neighbourhood is right: bytes were changed
	Elsewhere Origin = "elsewhere"
	Unknown   Origin = "unknown" // no stamp of this stream is near
)

// describe says what is wrong at data[first], where data is at off.
func (c *checker) describe(key, off uint64, data []byte, first int) Corruption {
	at := off + uint64(first)
	got := data[first:min(first+16, len(data))]
	r := Corruption{Offset: at, Got: bytes.Clone(got), Origin: Unknown}
	for len(r.Want) < len(got) {
		r.Want = append(r.Want, c.want(key, at+uint64(len(r.Want)), len(got)-len(r.Want))...)
	}
	for i := first; i+8 <= len(data) && i < first+2*gap; i++ {
		line, ok := unstamp(binary.LittleEndian.Uint64(data[i:]), key)
		if !ok {
			continue
		}
		r.Shift = int64(line*gap) - int64(off) - int64(i)
		r.Origin = Elsewhere
		if r.Shift == 0 {
			r.Origin = InPlace
		}
		return r
	}
	return r
}
