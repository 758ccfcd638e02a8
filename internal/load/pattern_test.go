package load

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// slow is the payload by its definition, one byte at a time: the oracle of
// source and checker.
func slow(key, off uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		at := off + uint64(i)
		var w [8]byte
		if at%gap < 8 {
			binary.LittleEndian.PutUint64(w[:], key+at/gap*stride)
			b[i] = w[at%gap]
			continue
		}
		p := at % period
		binary.LittleEndian.PutUint64(w[:], mix(p-p%8+1))
		b[i] = w[p%8]
	}
	return b
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestSourceAndChecker(t *testing.T) {
	rng := seeded(t)
	const most = 100_000
	src, chk := newSource(make([]byte, sourceSize(most))), newChecker()
	key := streamKey(Token{1}, 0)
	for range 300 {
		off, n := rng.Uint64N(1<<40), 1+rng.IntN(most)
		switch rng.IntN(4) {
		case 0:
			off -= off % period
		case 1:
			off -= off % gap
		case 2:
			n = 1 + rng.IntN(200)
		}
		want := slow(key, off, n)
		if got := src.next(key, off, n); !bytes.Equal(got, want) {
			t.Fatalf("next(%d, %d) differs from the definition", off, n)
		}
		if bad, _ := chk.check(key, off, want); bad != 0 {
			t.Fatalf("check(%d, %d) finds %d wrong bytes in right ones", off, n, bad)
		}
	}
}

// TestNoPieceMoves checks what pattern.go promises: no piece of the stream is
// the same as another one at a different place, whatever the distance.
func TestNoPieceMoves(t *testing.T) {
	rng := seeded(t)
	chk := newChecker()
	key, other := streamKey(Token{1}, 0), streamKey(Token{1}, 1)
	distances := []uint64{1, 8, 48, 64, 88, 536, 1388, 1448, 4096, 8192, 16384, 32768, 65536, 1 << 20, 1 << 30, period, 2 * period, 64 * period}
	for k := range 200 {
		distances = append(distances, uint64(k+1)*1448, uint64(k+1)*4096, 1+rng.Uint64N(1<<36))
	}
	for _, d := range distances {
		off := rng.Uint64N(1 << 38)
		for _, n := range []int{71, 88, 536, 1448, 4096, 65536} {
			if bad, _ := chk.check(key, off, slow(key, off+d, n)); bad == 0 {
				t.Errorf("%d bytes from %d+%d pass at %d", n, off, d, off)
			}
		}
		if bad, _ := chk.check(key, off, slow(other, off, 71)); bad == 0 {
			t.Errorf("bytes of another stream pass at %d", off)
		}
	}
	if n := testing.AllocsPerRun(10, func() { chk.check(key, 77, chk.buf[:100]) }); n != 0 {
		t.Errorf("check allocates %v times", n)
	}
}

func TestCheckerCounts(t *testing.T) {
	rng := seeded(t)
	chk := newChecker()
	key := streamKey(Token{7}, 3)
	for range 200 {
		off, n := rng.Uint64N(1<<38), 1+rng.IntN(50_000)
		data := slow(key, off, n)
		first, bad := n, 0
		for _, at := range rng.Perm(n)[:min(n, 1+rng.IntN(9))] {
			data[at] ^= byte(1 + rng.IntN(255))
			first, bad = min(first, at), bad+1
		}
		gotBad, gotFirst := chk.check(key, off, data)
		if gotBad != bad || gotFirst != first {
			t.Fatalf("check = %d wrong from %d on, want %d from %d on", gotBad, gotFirst, bad, first)
		}
		c := chk.describe(key, off, data, first)
		if c.Offset != off+uint64(first) || !bytes.Equal(c.Got, data[first:min(n, first+16)]) ||
			!bytes.Equal(c.Want, slow(key, c.Offset, len(c.Got))) {
			t.Fatalf("describe = %+v, want offset %d", c, off+uint64(first))
		}
	}
}

func TestDescribeOrigin(t *testing.T) {
	chk := newChecker()
	key := streamKey(Token{9}, 0)
	for _, tt := range []struct {
		name string
		data []byte
		want Origin
		move int64
	}{
		{"lost", slow(key, 100_000+1448, 3000), Elsewhere, 1448},
		{"doubled", slow(key, 100_000-4096, 3000), Elsewhere, -4096},
		{"zeros", make([]byte, 3000), Unknown, 0},
		{"other-stream", slow(key+12345, 100_000, 3000), Unknown, 0},
	} {
		bad, first := chk.check(key, 100_000, tt.data)
		c := chk.describe(key, 100_000, tt.data, first)
		if bad == 0 || c.Origin != tt.want || c.Shift != tt.move {
			t.Errorf("%s: %d wrong, %s, shift %d, want %s, %d", tt.name, bad, c.Origin, c.Shift, tt.want, tt.move)
		}
	}
	flipped := slow(key, 100_000, 3000)
	flipped[1000] ^= 0x40
	if c := chk.describe(key, 100_000, flipped, 1000); c.Origin != InPlace || c.Shift != 0 {
		t.Errorf("flip: %s, shift %d, want in-place", c.Origin, c.Shift)
	}
}

func TestStampInverse(t *testing.T) {
	var k uint64 = inverse // not constants: their product overflows
	if k*stride != 1 {
		t.Fatal("inverse is not the inverse of stride")
	}
	rng := seeded(t)
	for range 1000 {
		key, line := rng.Uint64(), rng.Uint64N(1<<40)
		if got, ok := unstamp(key+line*stride, key); !ok || got != line {
			t.Fatalf("unstamp(stamp(%d)) = %d, %v", line, got, ok)
		}
	}
}

// FuzzHello: a message that parses is the one that the sender of its fields
// writes, any other is an error, and none panics.
func FuzzHello(f *testing.F) {
	token := Token{0xAA, 15: 0x55}
	good := hello{token, 3, 8}.bytes()
	f.Add(good, uint8(8))                             // right
	f.Add(good, uint8(7))                             // another number of streams
	f.Add(good[:31], uint8(8))                        // short
	f.Add(append(bytes.Clone(good), 0), uint8(8))     // long
	f.Add([]byte("GET / HTTP/1.1\r\n"), uint8(1))     // foreign
	f.Add(bytes.Repeat([]byte{0xFF}, 32), uint8(255)) // numbers out of range
	f.Fuzz(func(t *testing.T, b []byte, streams uint8) {
		h, err := parseHello(b, token, int(streams))
		if err != nil {
			if again := (hello{token, 0, 1}); bytes.Equal(b, again.bytes()) && streams == 1 {
				t.Fatalf("a right hello is refused: %v", err)
			}
			return
		}
		if !bytes.Equal(h.bytes(), b) || h.stream < 0 || h.stream >= int(streams) || h.token != token {
			t.Fatalf("parseHello(%x, %d) = %+v", b, streams, h)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	const n = 64 << 10
	key := streamKey(Token{1}, 0)
	chk, data := newChecker(), slow(key, 0, n)
	b.SetBytes(n)
	for b.Loop() {
		if bad, _ := chk.check(key, 0, data); bad != 0 {
			b.Fatal(bad)
		}
	}
}

func BenchmarkSource(b *testing.B) {
	const n = 64 << 10
	key := streamKey(Token{1}, 0)
	src, off := newSource(make([]byte, sourceSize(n))), uint64(0)
	b.SetBytes(n)
	for b.Loop() {
		src.next(key, off, n)
		off += n
	}
}
