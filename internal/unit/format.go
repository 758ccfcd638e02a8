package unit

import (
	"math"
	"strconv"
	"strings"
)

// Number formats v with three significant digits, without an exponent, and
// with separators from 1,000 on: 0.61, 18.4, 899, 1,400,584. From 1000 on all
// digits of the integer part are kept.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "?"
	case a == 0:
		return "0"
	case a < 1e-6 || a >= 1e15: // out of what a reader can count
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 999.5:
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	}
	// The exponent is taken after rounding: 9.996 has to become 10.0.
	e := strconv.FormatFloat(v, 'e', 2, 64)
	exp, err := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if err != nil {
		return e
	}
	return strconv.FormatFloat(v, 'f', 2-exp, 64)
}

// Count formats a number of things, with separators: 1,400,584.
func Count(n int64) string { return group(strconv.FormatInt(n, 10)) }

// Plural formats n things: "1 block", "1,200 blocks".
func Plural(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Count(n) + " " + thing
}

// group puts separators into the integer part of a decimal number.
func group(s string) string {
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	whole, frac := s, ""
	if i := strings.IndexByte(s, '.'); i >= 0 {
		whole, frac = s[:i], s[i:]
	}
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return sign + b.String() + frac
}

// Percent formats a fraction as an effect: 0.712 is "+71.2 %". What rounds to
// nothing has no sign.
func Percent(fraction float64) string { return signed(fraction, percentDigits(fraction)) + " %" }

// Effect formats an effect with its interval, all of them fractions:
// "+30.1 % [+28.4, +32.0]". A nil bound is one that the data do not give yet.
func Effect(effect float64, low, high *float64) string {
	return interval(effect, low, high, percentDigits(effect, deref(low), deref(high)))
}

// ShortEffect is Effect with fewer digits, for a line that changes while it is
// read: "+71 % [+52, +90]".
func ShortEffect(effect float64, low, high *float64) string {
	digits := max(0, percentDigits(effect, deref(low), deref(high))-1)
	if math.Abs(effect) < 0.0995 {
		digits = 1
	}
	return interval(effect, low, high, digits)
}

func interval(effect float64, low, high *float64, digits int) string {
	s := signed(effect, digits) + " % "
	if low == nil && high == nil {
		return s + "[no bound yet]"
	}
	bound := func(f *float64) string {
		if f == nil {
			return "no bound"
		}
		return signed(*f, digits)
	}
	return s + "[" + bound(low) + ", " + bound(high) + "]"
}

func deref(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

// percentDigits returns the decimals that give the largest of the fractions
// three digits, and the others the same number of decimals.
func percentDigits(fractions ...float64) int {
	largest := 0.0
	for _, f := range fractions {
		largest = max(largest, math.Abs(100*f))
	}
	switch {
	case largest < 0.995:
		return 2
	case largest < 99.95:
		return 1
	}
	return 0
}

func signed(fraction float64, digits int) string {
	v := 100 * fraction
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "?"
	case math.Abs(v) >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', digits, 64)
	switch {
	case strings.Trim(s, "0.") == "":
		return s
	case v < 0:
		return "-" + group(s)
	}
	return "+" + group(s)
}

// A step is one unit of a family, and how many of the family's base units it
// is.
type step struct {
	name string
	size float64
}

// families gives for each unit of the study file the units it is shown in.
var families = map[string][]step{
	"bit/s": {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12}},
	"B":     {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}},
	"1/s":   {{"/s", 1}, {"k/s", 1e3}, {"M/s", 1e6}, {"G/s", 1e9}},
	"ns":    {{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}},
	"s":     {{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}},
}

// stepFor returns the largest unit of which v has at least one, after
// rounding to three digits.
func stepFor(v float64, unit string) step {
	steps := families[unit]
	if v == 0 {
		for _, s := range steps {
			if s.name == unit || s.size == 1 {
				return s
			}
		}
	}
	best := step{unit, 1}
	for i, s := range steps {
		if i == 0 || math.Abs(v)/s.size >= 0.9995 {
			best = s
		}
	}
	return best
}

// Value formats v, given in one of the units of the study file, with three
// digits: "18.4 Gbit/s", "0.61 ns/B", "1.23 µs". The unit "1" is that of a
// count and is not written: the caller names what is counted.
func Value(v float64, unit string) string {
	if unit == "1" || unit == "" {
		return count(v)
	}
	s := stepFor(v, unit)
	return Number(v/s.size) + " " + s.name
}

func count(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return Count(int64(v))
	}
	return Number(v)
}

// Pair formats a change, with the unit once where both values can share it:
// "11.9 -> 20.4 Gbit/s", but "43.8 Mbit/s -> 20.4 Gbit/s".
func Pair(from, to float64, unit string) string {
	if unit == "1" || unit == "" {
		return count(from) + " -> " + count(to)
	}
	s := stepFor(max(math.Abs(from), math.Abs(to)), unit)
	for _, v := range []float64{from, to} {
		if v != 0 && math.Abs(v)/s.size < 0.0995 && len(families[unit]) > 0 {
			return Value(from, unit) + " -> " + Value(to, unit)
		}
	}
	return Number(from/s.size) + " -> " + Number(to/s.size) + " " + s.name
}

// Range formats the ends of a range, with the unit once: "11.6 .. 12.2 Gbit/s".
func Range(low, high float64, unit string) string {
	return strings.Replace(Pair(low, high, unit), " -> ", " .. ", 1)
}

// Seconds formats a stretch of time for people: "250 ms", "2.5 s", "37 s",
// "3 min 20 s", "2 h 5 min".
func Seconds(s float64) string {
	switch {
	case math.IsNaN(s), math.IsInf(s, 0), s < 0:
		return "?"
	case s < 0.9995:
		return Value(s, "s")
	case s < 9.95:
		return strings.TrimSuffix(strconv.FormatFloat(s, 'f', 1, 64), ".0") + " s"
	case s < 119.5:
		return strconv.FormatFloat(s, 'f', 0, 64) + " s"
	case s >= 1e12:
		return Number(s) + " s"
	case s < 3599.5:
		return twoParts(int64(math.Round(s)), "min", "s")
	}
	return twoParts(int64(math.Round(s/60)), "h", "min")
}

// twoParts splits n into sixties and the rest.
func twoParts(n int64, large, small string) string {
	s := Count(n/60) + " " + large
	if n%60 != 0 {
		s += " " + strconv.FormatInt(n%60, 10) + " " + small
	}
	return s
}
