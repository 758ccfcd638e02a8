package unit_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/unit"
)

func TestNumber(t *testing.T) {
	for _, test := range []struct {
		in   float64
		want string
	}{
		{0, "0"},
		{0.61, "0.610"},
		{0.0012345, "0.00123"},
		{9.994, "9.99"},
		{9.996, "10.0"}, // the third digit moves
		{18.44, "18.4"},
		{99.96, "100"},
		{-13.37, "-13.4"},
		{899, "899"},
		{999.4, "999"},
		{999.5, "1,000"},
		{1400584, "1,400,584"},
		{-2741.93, "-2,742"},
		{1e-9, "1e-09"},
		{math.NaN(), "?"},
		{math.Inf(1), "?"},
	} {
		if got := unit.Number(test.in); got != test.want {
			t.Errorf("Number(%v) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestPlural(t *testing.T) {
	for want, n := range map[string]int64{"0 blocks": 0, "1 block": 1, "1,200 blocks": 1200} {
		if got := unit.Plural(n, "block"); got != want {
			t.Errorf("Plural(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, test := range []struct {
		in   float64
		want string
	}{
		{0.712, "+71.2 %"},
		{-0.38, "-38.0 %"},
		{0.0042, "+0.42 %"},
		{0.9996, "+100 %"},
		{-0.9836, "-98.4 %"},
		{43.1, "+4,310 %"},
		{0, "0.00 %"},
		{-0.00001, "0.00 %"}, // no sign on what rounds to nothing
		{math.NaN(), "? %"},
	} {
		if got := unit.Percent(test.in); got != test.want {
			t.Errorf("Percent(%v) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestEffect(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for _, test := range []struct {
		effect      float64
		low, high   *float64
		want, short string
	}{
		{0.301, f(0.284), f(0.32), "+30.1 % [+28.4, +32.0]", "+30 % [+28, +32]"},
		{-0.38, f(-0.41), f(-0.352), "-38.0 % [-41.0, -35.2]", "-38 % [-41, -35]"},
		{0.004, f(-0.008), f(0.015), "+0.4 % [-0.8, +1.5]", "+0.4 % [-0.8, +1.5]"},
		{-0.0004, f(-0.0031), f(0.0022), "-0.04 % [-0.31, +0.22]", "0.0 % [-0.3, +0.2]"},
		{1.5, f(0.6), f(3), "+150 % [+60, +300]", "+150 % [+60, +300]"},
		{0.712, nil, nil, "+71.2 % [no bound yet]", "+71 % [no bound yet]"},
		{0.712, f(0.1), nil, "+71.2 % [+10.0, no bound]", "+71 % [+10, no bound]"},
	} {
		if got := unit.Effect(test.effect, test.low, test.high); got != test.want {
			t.Errorf("Effect(%v) = %q, want %q", test.effect, got, test.want)
		}
		if got := unit.ShortEffect(test.effect, test.low, test.high); got != test.short {
			t.Errorf("ShortEffect(%v) = %q, want %q", test.effect, got, test.short)
		}
	}
}

func TestValue(t *testing.T) {
	for _, test := range []struct {
		v          float64
		unit, want string
	}{
		{18.4e9, "bit/s", "18.4 Gbit/s"},
		{43.8e6, "bit/s", "43.8 Mbit/s"},
		{999.96e6, "bit/s", "1.00 Gbit/s"},
		{0, "bit/s", "0 bit/s"},
		{0.61, "ns/B", "0.610 ns/B"},
		{312, "ns", "312 ns"},
		{1234, "ns", "1.23 µs"},
		{0.0000123, "s", "12.3 µs"},
		{0, "s", "0 s"},
		{231000, "1/s", "231 k/s"},
		{18.2e9, "B", "18.2 GB"},
		{899, "1", "899"},
		{1400584, "1", "1,400,584"},
		{42.06, "1", "42.1"},
		{7.1, "furlong", "7.10 furlong"},
	} {
		if got := unit.Value(test.v, test.unit); got != test.want {
			t.Errorf("Value(%v, %q) = %q, want %q", test.v, test.unit, got, test.want)
		}
	}
}

func TestPair(t *testing.T) {
	for _, test := range []struct {
		from, to   float64
		unit, want string
	}{
		{11.9e9, 20.4e9, "bit/s", "11.9 -> 20.4 Gbit/s"},
		{818e6, 13.4e6, "bit/s", "818 -> 13.4 Mbit/s"},
		{943e6, 12.4e9, "bit/s", "0.943 -> 12.4 Gbit/s"},
		{43.8e6, 20.4e9, "bit/s", "43.8 Mbit/s -> 20.4 Gbit/s"},
		{0, 20.4e9, "bit/s", "0 -> 20.4 Gbit/s"},
		{0.61, 0.38, "ns/B", "0.610 -> 0.380 ns/B"},
		{0.01, 30, "ns/B", "0.0100 -> 30.0 ns/B"},
		{0, 899, "1", "0 -> 899"},
	} {
		if got := unit.Pair(test.from, test.to, test.unit); got != test.want {
			t.Errorf("Pair(%v, %v, %q) = %q, want %q", test.from, test.to, test.unit, got, test.want)
		}
	}
	if got, want := unit.Range(11.6e9, 12.2e9, "bit/s"), "11.6 .. 12.2 Gbit/s"; got != want {
		t.Errorf("Range = %q, want %q", got, want)
	}
}

func TestSeconds(t *testing.T) {
	for _, test := range []struct {
		in   float64
		want string
	}{
		{0, "0 s"},
		{0.25, "250 ms"},
		{1, "1 s"},
		{2.5, "2.5 s"},
		{9.96, "10 s"},
		{37.2, "37 s"},
		{119.4, "119 s"},
		{120, "2 min"},
		{200, "3 min 20 s"},
		{7500, "2 h 5 min"},
		{-1, "?"},
		{math.Inf(1), "?"},
	} {
		if got := unit.Seconds(test.in); got != test.want {
			t.Errorf("Seconds(%v) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for _, test := range []struct {
		in   string
		want unit.Bytes
		text string // "": an error
	}{
		{"0", 0, "0 B"},
		{"1500", 1500, "1500 B"},
		{"1500 B", 1500, "1500 B"},
		{"64K", 65536, "64 KiB"},
		{"64k", 65536, "64 KiB"},
		{"64 kB", 64000, "64 kB"},
		{"1.5GiB", 3 << 29, "1536 MiB"},
		{"10MB", 10e6, "10 MB"},
		{"0.5K", 512, "512 B"},
		{"9223372036854775807", math.MaxInt64, "9223372036854775807 B"},
		{in: ""},
		{in: "K"},
		{in: "-1"},
		{in: "1.5"},
		{in: "1.2.3K"},
		{in: "9223372036854775808"},
		{in: "8388608TiB"},
		{in: "1e3"},
		{in: "64Kbit"},
	} {
		got, err := unit.ParseBytes(test.in)
		if test.text == "" {
			if perr := (*unit.ParseError)(nil); !errors.As(err, &perr) {
				t.Errorf("ParseBytes(%q) = %d, %v, want a ParseError", test.in, got, err)
			}
			continue
		}
		if err != nil || got != test.want || got.String() != test.text {
			t.Errorf("ParseBytes(%q) = %v, %v, want %v", test.in, got, err, test.text)
		}
	}
}

func TestParseRate(t *testing.T) {
	for _, test := range []struct {
		in   string
		want unit.Rate
		text string // "": an error
	}{
		{"0", 0, "0 bit/s"},
		{"100M", 100e6, "100 Mbit/s"},
		{"2.5Gbit", 2.5e9, "2.5 Gbit/s"},
		{"64 kbit/s", 64e3, "64 kbit/s"},
		{"13371337", 13371337, "13.371337 Mbit/s"},
		{"0.1", 0.1, "0.1 bit/s"},
		{in: ""},
		{in: "fast"},
		{in: "-5M"},
		{in: "100Mbps"}, // bytes to tc, bits to others
		{in: "100MB/s"},
		{in: "1e9"},
	} {
		got, err := unit.ParseRate(test.in)
		if test.text == "" {
			if perr := (*unit.ParseError)(nil); !errors.As(err, &perr) {
				t.Errorf("ParseRate(%q) = %v, %v, want a ParseError", test.in, got, err)
			}
			continue
		}
		if err != nil || got != test.want || got.String() != test.text {
			t.Errorf("ParseRate(%q) = %v, %v, want %v", test.in, got, err, test.text)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for _, test := range []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"40s", 40 * time.Second, true},
		{"40 s", 40 * time.Second, true},
		{"2m", 2 * time.Minute, true},
		{"1.5 min", 90 * time.Second, true},
		{"1m30s", 90 * time.Second, true},
		{"250ms", 250 * time.Millisecond, true},
		{"0", 0, true},
		{"90", 0, false},
		{"-1s", 0, false},
		{"", 0, false},
		{"soon", 0, false},
	} {
		got, err := unit.ParseDuration(test.in)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", test.in, got, err, test.want)
		}
	}
}

func TestFlagValues(t *testing.T) {
	b, r := unit.Bytes(7), unit.Rate(7)
	if err := errors.Join(b.Set("1K"), r.Set("1k")); err != nil || b != 1024 || r != 1000 {
		t.Errorf("Set = %v, %v, %v", b, r, err)
	}
	if b.Set("x") == nil || r.Set("x") == nil {
		t.Error("Set takes nonsense")
	}
	if b.Type() != "size" || r.Type() != "rate" {
		t.Errorf("Type = %q, %q", b.Type(), r.Type())
	}
}

// FuzzParse: what can be parsed is written so that parsing gives it back, and
// the text for people is never empty.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"64K", "1.5GiB", "10 MB", "2.5Gbit/s", "100Mbps", "1m30s", "9223372036854775807", ".", "0.1", "1e9", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := unit.ParseBytes(s); err == nil {
			if back, err := unit.ParseBytes(b.String()); err != nil || back != b || b < 0 {
				t.Errorf("%q: %q reads as %d, %v, want %d", s, b, back, err, b)
			}
		}
		if r, err := unit.ParseRate(s); err == nil {
			if back, err := unit.ParseRate(r.String()); err != nil || back != r || r < 0 {
				t.Errorf("%q: %q reads as %v, %v, want %v", s, r, back, err, float64(r))
			}
		}
		if d, err := unit.ParseDuration(s); err == nil {
			if back, err := unit.ParseDuration(d.String()); err != nil || back != d || d < 0 {
				t.Errorf("%q: %q reads as %v, %v", s, d, back, err)
			}
		}
	})
}

// FuzzValue: formatting never panics, and what is shown is within half a unit
// of the third digit of what was given.
func FuzzValue(f *testing.F) {
	f.Add(18.4e9, 11.9e9)
	f.Add(0.0, -1.0)
	f.Add(math.Inf(1), math.NaN())
	f.Fuzz(func(t *testing.T, a, b float64) {
		for _, u := range []string{"bit/s", "ns/B", "ns", "s", "1/s", "1", "B", "x"} {
			if unit.Value(a, u) == "" || unit.Pair(a, b, u) == "" || unit.Range(a, b, u) == "" {
				t.Errorf("%v, %v in %s: nothing written", a, b, u)
			}
		}
		if got := unit.Effect(a, &a, &b); len(got) > 100 {
			t.Errorf("Effect(%v, %v) = %q", a, b, got)
		}
		_ = unit.ShortEffect(a, nil, &b) + unit.Seconds(a) + unit.Percent(b)
		if a < 1e3 || a > 1e15 {
			return
		}
		r, err := unit.ParseRate(unit.Value(a, "bit/s"))
		if tol := 0.00502 * a; err != nil || math.Abs(float64(r)-a) > tol {
			t.Errorf("Value(%v) = %q, read as %v, %v", a, unit.Value(a, "bit/s"), float64(r), err)
		}
	})
}
