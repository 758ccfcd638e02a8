package checksum_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/offlab/offlab/packet/checksum"
)

// slowSum is the loop of RFC 1071 section 4.1, one word at a time.
func slowSum(b []byte, s uint32) uint16 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
		s = s&0xffff + s>>16
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// lengths holds every small length and the edges of each loop's turn.
func lengths() []int {
	var n []int
	for i := range 700 {
		n = append(n, i)
	}
	for _, e := range []int{1024, 1448, 1472, 1500, 4096, 9000, 65160, 65535, 65536} {
		for d := -3; d <= 3; d++ {
			n = append(n, e+d)
		}
	}
	return append(n, 1<<20, 1<<20+1, 3<<20) // where lanes would overflow
}

func TestSumMatchesSlowReference(t *testing.T) { checksum.EachLevel(t, checkSumMatchesSlowReference) }

func checkSumMatchesSlowReference(t *testing.T) {
	t.Helper()
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	buf := random(r, 3<<20+64)
	for _, n := range lengths() {
		for _, off := range []int{0, 1, 7} {
			if n > 70000 && off > 0 {
				continue
			}
			b := buf[off : off+n]
			if got, want := checksum.Sum(b).Fold(), slowSum(b, 0); got != want {
				t.Fatalf("Sum(%d bytes at %d) = %#04x, want %#04x (seed %d)", n, off, got, want, seed)
			}
		}
	}
}

// TestSumExtremes has the most carries and the fewest: all ones, all zero, and
// one bit at each place.
func TestSumExtremes(t *testing.T) { checksum.EachLevel(t, checkSumExtremes) }

func checkSumExtremes(t *testing.T) {
	t.Helper()
	for _, n := range lengths() {
		if n > 70000 && n != 1<<20 {
			continue
		}
		b := make([]byte, n)
		if got := checksum.Sum(b).Fold(); got != 0 {
			t.Errorf("Sum(%d zero bytes) = %#04x, want 0", n, got)
		}
		for i := range b {
			b[i] = 0xff
		}
		if got, want := checksum.Sum(b).Fold(), slowSum(b, 0); got != want {
			t.Errorf("Sum(%d bytes of 0xff) = %#04x, want %#04x", n, got, want)
		}
	}
	for _, n := range []int{1, 31, 64, 127, 129, 300, 521} {
		b := make([]byte, n)
		for i := range b {
			b[i] = 0x80
			if got, want := checksum.Sum(b).Fold(), slowSum(b, 0); got != want {
				t.Errorf("Sum(%d bytes, 0x80 at %d) = %#04x, want %#04x", n, i, got, want)
			}
			b[i] = 0
		}
	}
}

func TestCopySumCopiesAndSums(t *testing.T) { checksum.EachLevel(t, checkCopySumCopiesAndSums) }

func checkCopySumCopiesAndSums(t *testing.T) {
	t.Helper()
	const seed = 2
	r := rand.New(rand.NewPCG(seed, 0))
	src := random(r, 3<<20+64)
	dst := make([]byte, len(src)+16)
	for _, n := range lengths() {
		for _, off := range []int{0, 1, 3} {
			if n > 70000 && off > 0 {
				continue
			}
			for i := range dst[:min(len(dst), n+off+16)] {
				dst[i] = 0xa5
			}
			s, d := src[off:off+n], dst[off:off+n+8]
			if got, want := checksum.CopySum(d, s).Fold(), slowSum(s, 0); got != want {
				t.Fatalf("CopySum(%d bytes at %d) = %#04x, want %#04x (seed %d)", n, off, got, want, seed)
			}
			if string(d[:n]) != string(s) {
				t.Fatalf("CopySum(%d bytes at %d) copied wrong bytes (seed %d)", n, off, seed)
			}
			for i, v := range d[n:] {
				if v != 0xa5 {
					t.Fatalf("CopySum(%d bytes at %d) wrote %d bytes behind the end", n, off, i+1)
				}
			}
			if off > 0 && dst[off-1] != 0xa5 {
				t.Fatalf("CopySum(%d bytes at %d) wrote before the start", n, off)
			}
		}
	}
}

func TestCopySumInPlace(t *testing.T) { checksum.EachLevel(t, checkCopySumInPlace) }

func checkCopySumInPlace(t *testing.T) {
	t.Helper()
	b := random(rand.New(rand.NewPCG(3, 0)), 1449)
	want := string(b)
	if got := checksum.CopySum(b, b).Fold(); got != slowSum(b, 0) || string(b) != want {
		t.Errorf("CopySum(b, b) = %#04x and changed b: %v", got, string(b) != want)
	}
}

func TestCopySumPanicsOnShortDestination(t *testing.T) {
	for _, n := range []int{1, 40, 600} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("CopySum of %d bytes into %d did not panic", n, n-1)
				}
			}()
			checksum.CopySum(make([]byte, n-1), make([]byte, n))
		}()
	}
}

// TestKnownValues has values that others published.
func TestKnownValues(t *testing.T) {
	// RFC 1071 section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
	if got := checksum.Sum([]byte{0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7}).Fold(); got != 0xddf2 {
		t.Errorf("RFC 1071 example: %#04x, want 0xddf2", got)
	}
	// RFC 1624 section 4: with the field dd2f a word changes from 5555 to
	// 3285; the field becomes 0000, not ffff.
	if got := checksum.Update(0xdd2f, 0x5555, 0x3285); got != 0 {
		t.Errorf("RFC 1624 example: %#04x, want 0", got)
	}
}

func TestZeroChecksumOfUDPIsWrittenAsOnes(t *testing.T) {
	p := checksum.Sum([]byte{0xff, 0xff})
	if got := p.Checksum(); got != 0 {
		t.Errorf("Checksum = %#04x, want 0", got)
	}
	if got := p.UDP(); got != 0xffff {
		t.Errorf("UDP = %#04x, want 0xffff", got)
	}
	if got := checksum.Sum([]byte{1, 2}).UDP(); got != 0xfefd {
		t.Errorf("UDP = %#04x, want 0xfefd", got)
	}
}

func TestPseudoHeaders(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 20, 1480, 65515, 65536, 1 << 19} {
		for range 200 {
			a := random(r, 32)
			p4 := append(append([]byte{}, a[:8]...), 0, 17, 0, 0, 0, 0)
			binary.BigEndian.PutUint32(p4[10:], uint32(n))
			if got := checksum.PseudoIPv4([4]byte(a), [4]byte(a[4:]), 17, n).Fold(); got != slowSum(p4, 0) {
				t.Fatalf("PseudoIPv4(%x, %d) = %#04x, want %#04x", a[:8], n, got, slowSum(p4, 0))
			}
			p6 := append(append([]byte{}, a...), 0, 0, 0, 0, 0, 0, 0, 6)
			binary.BigEndian.PutUint32(p6[32:], uint32(n))
			if got := checksum.PseudoIPv6((*[16]byte)(a), (*[16]byte)(a[16:]), 6, n).Fold(); got != slowSum(p6, 0) {
				t.Fatalf("PseudoIPv6(%x, %d) = %#04x, want %#04x", a, n, got, slowSum(p6, 0))
			}
		}
	}
	ones := [16]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if got := checksum.PseudoIPv6(&ones, &ones, 6, 1).Fold(); got != 7 {
		t.Errorf("PseudoIPv6(all ones, 6, 1) = %#04x, want 7", got)
	}
}

// TestUpdateEqualsRecompute changes one word of a packet and compares the
// updated field with a fresh one.
func TestUpdateEqualsRecompute(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		b := random(r, 2+2*r.IntN(12))
		b[0] |= 1 // a sum of nothing but zero has no unique complement
		at := 2 * r.IntN(len(b)/2)
		field := checksum.Sum(b).Checksum()
		old, next := binary.BigEndian.Uint16(b[at:]), uint16(r.Uint32())
		if at == 0 {
			next |= 0x100
		}
		was := append([]byte{}, b...)
		binary.BigEndian.PutUint16(b[at:], next)
		want := checksum.Sum(b).Checksum()
		if got := checksum.Update(field, old, next); got != want {
			t.Fatalf("Update(%#04x, %#04x, %#04x) = %#04x, want %#04x (seed %d)", field, old, next, got, want, seed)
		}
		if got := checksum.UpdateBytes(field, was, b); got != want {
			t.Fatalf("UpdateBytes(%#04x, %x, %x) = %#04x, want %#04x (seed %d)", field, was, b, got, want, seed)
		}
		if got := checksum.Sum(was).Sub16(old).Add16(next).Checksum(); got != want {
			t.Fatalf("Sub16 and Add16: %#04x, want %#04x (seed %d)", got, want, seed)
		}
	}
}

func TestNoAllocs(t *testing.T) {
	b, d := make([]byte, 4096), make([]byte, 4096)
	var sink checksum.Partial
	if n := testing.AllocsPerRun(100, func() {
		sink += checksum.Sum(b) + checksum.Sum(b[:20]) + checksum.CopySum(d, b)
		sink += checksum.PseudoIPv6((*[16]byte)(b), (*[16]byte)(b[16:]), 6, 20)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzSum holds three laws: Sum and CopySum equal the slow loop of RFC 1071;
// the sums of two parts combine to the sum of the whole wherever it is cut;
// an incremental update equals a new computation.
func FuzzSum(f *testing.F) {
	f.Add([]byte{}, 0, uint16(0))
	f.Add([]byte{1, 2, 3}, 1, uint16(7))                        // odd cut, odd length
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff"), 3, uint16(1)) // carries at every step
	f.Add(make([]byte, 257), 128, uint16(0xffff))               // one more than two vector turns
	f.Fuzz(func(t *testing.T, b []byte, cut int, next uint16) {
		want := slowSum(b, 0)
		if got := checksum.Sum(b).Fold(); got != want {
			t.Fatalf("Sum(%x) = %#04x, want %#04x", b, got, want)
		}
		d := make([]byte, len(b))
		if got := checksum.CopySum(d, b).Fold(); got != want || string(d) != string(b) {
			t.Fatalf("CopySum(%x) = %#04x %x, want %#04x", b, got, d, want)
		}
		if cut < 0 || cut > len(b) {
			return
		}
		if got := checksum.Sum(b[:cut]).Combine(checksum.Sum(b[cut:]), cut).Fold(); got != want {
			t.Fatalf("Sum(%x) + Sum(%x) = %#04x, want %#04x", b[:cut], b[cut:], got, want)
		}
		at := cut &^ 1
		if at+2 > len(b) {
			return
		}
		old := binary.BigEndian.Uint16(d[at:])
		binary.BigEndian.PutUint16(d[at:], next)
		if now := slowSum(d, 0); want != 0 && now != 0 {
			if got := checksum.Update(^want, old, next); got != ^now {
				t.Fatalf("Update(%#04x, %#04x, %#04x) = %#04x, want %#04x", ^want, old, next, got, ^now)
			}
		}
	})
}

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{20, 64, 256, 1448, 65160} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			buf := make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				checksum.Sum(buf)
			}
		})
	}
}

func BenchmarkCopySum(b *testing.B) {
	for _, n := range []int{20, 64, 256, 1448, 65160} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			buf, dst := make([]byte, n), make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				checksum.CopySum(dst, buf)
			}
		})
	}
}
