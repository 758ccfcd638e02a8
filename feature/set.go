package feature

import (
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// A Feature is a bit of netdev_features_t, by its number in Linux 6.18. The
// numbers differ between kernels: user space goes by the names.
type Feature uint8

// A Set is a set of features. It can be compared with ==. Linux 6.18 uses 64
// bits, all there are in its u64; the second word is for what comes next.
type Set [2]uint64

// Of returns the set of the given features.
func Of(fs ...Feature) Set { return Set{}.With(fs...) }

// Has reports whether f is in the set.
func (s Set) Has(f Feature) bool { return f < 128 && s[f/64]>>(f%64)&1 != 0 }

// With returns the set and the given features.
func (s Set) With(fs ...Feature) Set {
	for _, f := range fs {
		if f < 128 {
			s[f/64] |= 1 << (f % 64)
		}
	}
	return s
}

// Without returns the set without the given features.
func (s Set) Without(fs ...Feature) Set { return s.Diff(Of(fs...)) }

// Union returns what is in s or in t.
func (s Set) Union(t Set) Set { return Set{s[0] | t[0], s[1] | t[1]} }

// Intersect returns what is in s and in t. The kernel's rule for two devices is
// another one, since it counts checksumming of all protocols as checksumming of
// each: [IntersectFeatures].
func (s Set) Intersect(t Set) Set { return Set{s[0] & t[0], s[1] & t[1]} }

// Diff returns what is in s and not in t.
func (s Set) Diff(t Set) Set { return Set{s[0] &^ t[0], s[1] &^ t[1]} }

// IsZero reports whether the set is empty.
func (s Set) IsZero() bool { return s == Set{} }

// Contains reports whether all of t is in s.
func (s Set) Contains(t Set) bool { return t.Diff(s).IsZero() }

// Meets reports whether s and t have a feature in common.
func (s Set) Meets(t Set) bool { return !s.Intersect(t).IsZero() }

// Len returns the number of features.
func (s Set) Len() int { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// All yields the features by number.
func (s Set) All() iter.Seq[Feature] {
	return func(yield func(Feature) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(Feature(64*i + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// Names returns the names as ethtool -k prints them, by number.
func (s Set) Names() []string {
	names := make([]string, 0, s.Len())
	for f := range s.All() {
		names = append(names, f.String())
	}
	return names
}

// C writes the set as a C expression, "0" for the empty one.
func (s Set) C() string {
	if s.IsZero() {
		return "0"
	}
	var b strings.Builder
	for f := range s.All() {
		if b.Len() > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(f.C())
	}
	return b.String()
}

// String writes the names with commas, "none" for the empty set. [Parse] reads
// it.
func (s Set) String() string {
	b, _ := s.AppendText(nil)
	return string(b)
}

// AppendText appends what [Set.String] writes. The error is nil.
func (s Set) AppendText(b []byte) ([]byte, error) {
	if s.IsZero() {
		return append(b, "none"...), nil
	}
	first := true
	for f := range s.All() {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = f.append(b)
	}
	return b, nil
}

// MarshalText returns what [Set.String] writes. The error is nil.
func (s Set) MarshalText() ([]byte, error) { return s.AppendText(nil) }

// UnmarshalText sets the set to what [Parse] reads.
func (s *Set) UnmarshalText(text []byte) (err error) {
	*s, err = Parse(string(text))
	return err
}

// A ParseError is a word that names no feature.
type ParseError struct{ Word string }

func (e *ParseError) Error() string { return fmt.Sprintf("no feature is called %q", e.Word) }

// Parse reads names with commas, bars or blanks between them: the kernel's
// (rx-gro), the C ones with or without NETIF_F_ (NETIF_F_GRO, GRO) and those of
// [Masks] (ALL_TSO). "none" and "" are the empty set.
func Parse(text string) (Set, error) {
	var s Set
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n|", r) }) {
		t, ok := Lookup(word)
		if !ok && word != "none" {
			return Set{}, &ParseError{word}
		}
		s = s.Union(t)
	}
	return s, nil
}

// MustParse is [Parse] for constants: it panics on an error.
func MustParse(text string) Set {
	s, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// Lookup returns what one name means: a feature by its kernel or C name, or a
// mask.
func Lookup(word string) (Set, bool) {
	if f, ok := ByName(word); ok {
		return Of(f), true
	}
	short := strings.TrimPrefix(word, prefix)
	if f, ok := byC[short]; ok {
		return Of(f), true
	}
	if m, ok := masksByName[short]; ok {
		return m, true
	}
	if n, ok := strings.CutPrefix(word, "bit"); ok {
		if i, err := strconv.ParseUint(n, 10, 7); err == nil && n == strconv.FormatUint(i, 10) {
			return Of(Feature(i)), true
		}
	}
	return Set{}, false
}
