package report_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/offlab/offlab/internal/report"
	"github.com/offlab/offlab/internal/study"
)

// pageElements are all that a page consists of, with their attributes. Nothing
// among them loads or runs anything.
var pageElements = map[string][]string{
	"html": {"lang"}, "head": nil, "meta": {"charset", "http-equiv", "name", "content"}, "title": nil, "style": nil,
	"body": nil, "main": nil, "div": {"class"}, "span": {"class"}, "a": {"href"}, "p": {"class"}, "pre": nil,
	"h1": nil, "h2": {"id"}, "h3": nil, "table": {"class"}, "tr": nil, "th": nil, "td": {"class"},
	"figure": nil, "figcaption": nil, "svg": {"viewBox", "role"}, "text": {"x", "y", "text-anchor"},
	"rect": {"class", "x", "y", "width", "height"}, "line": {"class", "x1", "y1", "x2", "y2"},
	"circle": {"class", "cx", "cy", "r"}, "polygon": {"class", "points"}, "polyline": {"class", "points"},
}

// readPage reads a page strictly, as XML, checks every element and attribute,
// and returns the text.
func readPage(tb testing.TB, page string) string {
	tb.Helper()
	var text strings.Builder
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return text.String()
		case err != nil:
			tb.Fatalf("%v in:\n%s", err, page)
		}
		switch token := token.(type) {
		case xml.CharData:
			text.Write(token)
		case xml.StartElement:
			allowed, known := pageElements[token.Name.Local]
			if !known {
				tb.Errorf("element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				if !slices.Contains(allowed, a.Name.Local) || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#v") {
					tb.Errorf("attribute %s=%q of %s", a.Name.Local, a.Value, token.Name.Local)
				}
			}
		case xml.Comment, xml.ProcInst:
			tb.Errorf("a comment or instruction: %v", token)
		}
	}
}

// TestHTMLIsInert: whatever strings a study holds, the page consists of the known
// elements, loads nothing, and shows the strings.
func TestHTMLIsInert(t *testing.T) {
	for name := range results {
		page := render(t, load(t, name), "html", report.Options{})
		text := readPage(t, page)
		if name == "hostile" && strings.Count(text, "<script>alert(1)</script>") < 30 {
			t.Errorf("hostile strings are not shown:\n%s", text)
		}
		for _, bad := range []string{"url(", "@import", "\x1b", "\u202e"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: %q in the page", name, bad)
			}
		}
	}
}

// TestChart: there is a dot for each block that counts, all within the drawing,
// and the area narrows.
func TestChart(t *testing.T) {
	page := render(t, load(t, "better"), "html", report.Options{})
	dots := regexp.MustCompile(`<circle class="block" cx="([0-9.]+)" cy="([0-9.]+)"`).FindAllStringSubmatch(page, -1)
	if len(dots) != 8 {
		t.Errorf("%d dots, want 8", len(dots))
	}
	for _, d := range dots {
		if x, y := number(t, d[1]), number(t, d[2]); x < 64 || x > 704 || y < 12 || y > 244 {
			t.Errorf("a dot at %v, %v", x, y)
		}
	}
	area := strings.Fields(regexp.MustCompile(`<polygon class="interval" points="([^"]+)"`).FindStringSubmatch(page)[1])
	if len(area) != 16 {
		t.Fatalf("%d corners, want 16: %v", len(area), area)
	}
	last := math.Inf(1)
	for i := range 8 {
		_, high, _ := strings.Cut(area[i], ",")
		_, low, _ := strings.Cut(area[15-i], ",")
		height := number(t, low) - number(t, high)
		if height > last || height <= 0 {
			t.Errorf("after block %d the interval is %v high, before %v", i+1, height, last)
		}
		last = height
	}
}

func number(tb testing.TB, s string) float64 {
	tb.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// A benchResult is a line of the Go benchmark format.
type benchResult struct {
	name    string
	figures map[string]float64
}

// readBench reads the Go benchmark format by its specification,
// golang.org/design/14313-benchmark-format, and the Unit lines of
// golang.org/x/perf/benchfmt.
func readBench(tb testing.TB, out string) (results []benchResult, units map[string]string) {
	tb.Helper()
	units = map[string]string{}
	config := regexp.MustCompile(`^[a-z][^\sA-Z]*: \S.*$`)
	name := regexp.MustCompile(`^BenchmarkOfflab(/[a-z]+=[^/\s]+)+$`)
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Fields(line)
		switch {
		case config.MatchString(line):
		case len(fields) == 3 && fields[0] == "Unit":
			if units[fields[1]] != "" {
				tb.Errorf("unit %s is named twice", fields[1])
			}
			units[fields[1]] = fields[2]
		case len(fields) >= 4 && len(fields)%2 == 0 && name.MatchString(fields[0]) && fields[1] == "1":
			r := benchResult{fields[0], map[string]float64{}}
			for i := 2; i < len(fields); i += 2 {
				r.figures[fields[i+1]] = number(tb, fields[i])
			}
			results = append(results, r)
		default:
			tb.Errorf("not a line of the format: %q", line)
		}
	}
	return results, units
}

// TestBench: each slot that counts is a line, with its figures, and no string
// makes a line of its own.
func TestBench(t *testing.T) {
	for name := range results {
		s := load(t, name)
		got, units := readBench(t, render(t, s, "bench", report.Options{}))
		n := 0
		for _, slot := range s.Slots {
			for _, c := range s.Plan.Contrast {
				if slices.Contains(append(c.ArmNames(true), c.ArmNames(false)...), slot.Arm) && c.Cell == slot.Cell && !c.Interaction && slot.Void == "" {
					n++
				}
			}
		}
		if len(got) != n || len(units) != len(study.Metrics) {
			t.Errorf("%s: %d lines and %d units, want %d and %d", name, len(got), len(units), n, len(study.Metrics))
		}
	}
	s := load(t, "better")
	got, units := readBench(t, render(t, s, "bench", report.Options{}))
	for i, slot := range s.Slots {
		value := map[string]string{study.Current: "on", "tso=off": "off"}[slot.Arm]
		want := fmt.Sprintf("BenchmarkOfflab/knob=tso/value=%s/path=base/family=ipv4/load=bulk/direction=tx", value)
		if got[i].name != want || got[i].figures["bit/s"] != slot.Metrics[study.Goodput] || got[i].figures["ns/B"] != slot.Metrics[study.CPUPerByte] {
			t.Errorf("line %d is %+v, want %s with %v", i, got[i], want, slot.Metrics)
		}
	}
	if units["bit/s"] != "better=higher" || units["ns/B"] != "better=lower" {
		t.Errorf("units %v", units)
	}
}

// FuzzPage: no string breaks out of its place.
func FuzzPage(f *testing.F) {
	f.Add("<script>", `" onload="x`)
	f.Add("&lt;]]>", "\x00\xff\u202e\ufffe")
	f.Add("a/b c", "--> <!--\nBenchmarkX 1 2 ns")
	base := better()
	f.Fuzz(func(t *testing.T, a, b string) {
		s := *base
		s.Plan.Contrast = slices.Clone(base.Plan.Contrast)
		c := &s.Plan.Contrast[0]
		c.Knob, c.Baseline, c.Arm = a, b, a
		s.Verdicts = []study.Verdict{base.Verdicts[0], base.Verdicts[0]}
		v := &s.Verdicts[0]
		v.Knob, v.Baseline, v.Arm, v.Acts.Text, v.Advice.Command, v.Worth.Why = a, b, a, a+b, a+b, b+a
		s.Ended.Text, s.Warnings, s.Plan.Command, s.Environment.Kernel = b, []string{a, b}, b+" "+a, b
		readPage(t, render(t, &s, "html", report.Options{}))
		readBench(t, render(t, &s, "bench", report.Options{}))
	})
}
