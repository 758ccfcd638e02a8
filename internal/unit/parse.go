package unit

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// A ParseError says what could not be read as a quantity, and what would do.
type ParseError struct {
	Kind, Text, Want string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("%s %q: want %s", e.Kind, e.Text, e.Want)
}

// Bytes is a number of bytes.
type Bytes int64 //nolint:recvcheck // a flag is set through a pointer and printed by value

const wantBytes = "a number of bytes such as 1500, 64K, 16MiB or 10MB (K and KiB are 1024, kB is 1000)"

// byteUnits follow GNU usage: one letter and "iB" are powers of 1024, "B" after
// a letter a power of 1000. The larger of each kind come first.
var byteUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"B", 1},
}

// ParseBytes reads a size: "1500", "64K", "1.5 GiB", "10MB". It has to be a
// whole number of bytes, and not negative.
func ParseBytes(s string) (Bytes, error) {
	bad := &ParseError{"size", s, wantBytes}
	num, name, ok := split(s)
	if !ok {
		return 0, bad
	}
	size := int64(0)
	for _, u := range byteUnits {
		if strings.EqualFold(name, u.name) || strings.EqualFold(name+"iB", u.name) || name == "" && u.size == 1 {
			size = u.size
			break
		}
	}
	num.Mul(num, new(big.Rat).SetInt64(size))
	if size == 0 || !num.IsInt() || !num.Num().IsInt64() {
		return 0, bad
	}
	return Bytes(num.Num().Int64()), nil
}

// String returns the exact size in the unit that makes it shortest, as
// ParseBytes reads it: "64 KiB", "10 MB", "1500 B".
func (b Bytes) String() string {
	best := strconv.FormatInt(int64(b), 10) + " B"
	for _, u := range byteUnits {
		if b != 0 && int64(b)%u.size == 0 {
			if s := strconv.FormatInt(int64(b)/u.size, 10) + " " + u.name; len(s) < len(best) {
				best = s
			}
		}
	}
	return best
}

// Set parses s into b: a *Bytes is a flag's value.
func (b *Bytes) Set(s string) (err error) {
	*b, err = ParseBytes(s)
	return err
}

// Type names the kind of value in the help of a flag.
func (*Bytes) Type() string { return "size" }

// Rate is a bit rate, in bits a second.
type Rate float64 //nolint:recvcheck // a flag is set through a pointer and printed by value

const wantRate = "a bit rate such as 100Mbit, 2.5 Gbit/s or 64k (k, M, G, T are powers of 1000; bits, never bytes)"

var rateUnits = []struct {
	name string
	size int64
}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}}

// ParseRate reads a bit rate: "100M", "2.5Gbit", "64 kbit/s". It does not read
// "bps", which is bits to some programs and bytes to tc.
func ParseRate(s string) (Rate, error) {
	bad := &ParseError{"rate", s, wantRate}
	num, name, ok := split(s)
	if !ok {
		return 0, bad
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "/s"), "bit")
	for _, u := range rateUnits {
		if strings.EqualFold(name, u.name) {
			f, _ := num.Mul(num, new(big.Rat).SetInt64(u.size)).Float64()
			return Rate(f), nil
		}
	}
	return 0, bad
}

// String returns the exact rate in the largest unit of which it has one, as
// ParseRate reads it: "2.5 Gbit/s".
func (r Rate) String() string {
	for _, u := range rateUnits {
		s := strconv.FormatFloat(float64(r)/float64(u.size), 'f', -1, 64) + " " + u.name + "bit/s"
		if back, err := ParseRate(s); float64(r) >= float64(u.size) && err == nil && back == r {
			return s
		}
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64) + " bit/s"
}

// Set parses s into r: a *Rate is a flag's value.
func (r *Rate) Set(s string) (err error) {
	*r, err = ParseRate(s)
	return err
}

// Type names the kind of value in the help of a flag.
func (*Rate) Type() string { return "rate" }

// ParseDuration reads a stretch of time as people write it: what
// [time.ParseDuration] reads, with blanks and "min" too: "40s", "1m30s",
// "1.5 min". A bare number is refused, since it has no unit, and so is a
// negative one.
func ParseDuration(s string) (time.Duration, error) {
	t := strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "min", "m")
	d, err := time.ParseDuration(t)
	if err != nil || d < 0 {
		return 0, &ParseError{"duration", s, "a time with its unit such as 40s, 2m, 1m30s or 250ms"}
	}
	return d, nil
}

// maxNumber bounds the digits of a quantity, so that hostile text costs
// nothing: 1e300 has no place on a command line.
const maxNumber = 32

// split separates a decimal number that is not negative from the unit after
// it.
func split(s string) (num *big.Rat, name string, ok bool) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	if i == 0 || i > maxNumber {
		return nil, "", false
	}
	num, ok = new(big.Rat).SetString(s[:i])
	return num, strings.TrimSpace(s[i:]), ok
}
