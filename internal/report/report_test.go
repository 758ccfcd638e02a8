package report_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"github.com/offlab/offlab/internal/report"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/testutil/golden"
)

// A rendering is one golden file: a study in a format with options.
type rendering struct {
	file, study, format string
	options             report.Options
}

func renderings() []rendering {
	var rs []rendering
	for _, name := range slices.Sorted(maps.Keys(results)) {
		for _, f := range []string{"text", "md", "mail"} {
			rs = append(rs, rendering{file: name + "." + f, study: name, format: f})
		}
	}
	for _, name := range []string{"better", "collapse", "factors", "hostile", "interaction", "interrupted"} {
		rs = append(rs, rendering{file: name + ".html", study: name, format: "html"})
	}
	for _, name := range []string{"better", "factors", "void", "hostile"} {
		rs = append(rs, rendering{file: name + ".bench", study: name, format: "bench"})
	}
	return append(rs,
		rendering{"better.40.text", "better", "text", report.Options{Width: 40}},
		rendering{"hostile.40.text", "hostile", "text", report.Options{Width: 40}},
		rendering{"factors.120.text", "factors", "text", report.Options{Width: 120}},
		rendering{"better.color.text", "better", "text", report.Options{Color: true}},
		rendering{"collapse.40.mail", "collapse", "mail", report.Options{Width: 40, Color: true}},
	)
}

// load reads a recorded study.
func load(tb testing.TB, name string) *study.Study {
	tb.Helper()
	file, err := os.Open(filepath.Join("testdata", "results", name+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	s, err := study.Read(file)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func render(tb testing.TB, s *study.Study, format string, o report.Options) string {
	tb.Helper()
	f, err := report.Find(format)
	if err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Render(&b, s, o); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// TestResults keeps the recorded studies and their generator in step, and with
// them the JSON format.
func TestResults(t *testing.T) {
	for name, build := range results {
		golden.Equal(t, "results/"+name+".json", []byte(render(t, build(), "json", report.Options{})))
	}
}

func TestGolden(t *testing.T) {
	for _, r := range renderings() {
		t.Run(r.file, func(t *testing.T) {
			golden.Equal(t, "golden/"+r.file, []byte(render(t, load(t, r.study), r.format, r.options)))
		})
	}
}

// TestNoOrphans: a golden file that nothing compares itself with is a leftover.
func TestNoOrphans(t *testing.T) {
	var want []string
	for _, r := range renderings() {
		want = append(want, "golden/"+r.file)
	}
	for name := range results {
		want = append(want, "results/"+name+".json")
	}
	var got []string
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "fuzz") {
			rel, _ := filepath.Rel("testdata", path)
			got = append(got, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files under testdata (-want +got):\n%s", d)
	}
}

// TestOneScreen: a report of one verdict is read without scrolling, and a mail of
// one is short enough for a patch.
func TestOneScreen(t *testing.T) {
	for _, name := range []string{"better", "collapse", "fixed", "same", "veth-trap"} {
		for format, limit := range map[string]int{"text": 28, "mail": 30} {
			if n := strings.Count(render(t, load(t, name), format, report.Options{}), "\n"); n > limit {
				t.Errorf("%s as %s has %d lines, want at most %d", name, format, n, limit)
			}
		}
	}
	foot := strings.Count(render(t, load(t, "same"), "text", report.Options{}), "\n")
	if n := strings.Count(render(t, load(t, "factors"), "text", report.Options{}), "\n"); n > 4*14+foot {
		t.Errorf("four verdicts take %d lines", n)
	}
}

// TestEnds: machines of their own have CPU figures of their own, beneath the sum.
func TestEnds(t *testing.T) {
	s := better()
	m := &s.Verdicts[0].Worth.Metrics
	sender, receiver := (*m)[1], (*m)[1]
	sender.Name, receiver.Name = study.CPUSender, study.CPUReceiver
	*m = slices.Insert(*m, 2, sender, receiver)
	out := render(t, s, "text", report.Options{})
	for _, want := range []string{"\n    CPU/byte     better", "\n    - sender     better", "\n    - receiver   better"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if md := render(t, s, "md", report.Options{}); !strings.Contains(md, "| CPU/byte, sender |") {
		t.Errorf("no sender in:\n%s", md)
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// checkLines says what no text report may hold: a line wider than allowed,
// trailing blanks, control characters, and in a mail anything but ASCII.
func checkLines(tb testing.TB, out string, width int, ascii bool) {
	tb.Helper()
	wide := &runewidth.Condition{StrictEmojiNeutral: true}
	for i, line := range strings.Split(out, "\n") {
		switch {
		case wide.StringWidth(line) > width:
			tb.Errorf("line %d has %d columns, more than %d: %q", i+1, wide.StringWidth(line), width, line)
		case strings.HasSuffix(line, " "):
			tb.Errorf("line %d ends in a blank: %q", i+1, line)
		case !utf8.ValidString(line):
			tb.Errorf("line %d is not UTF-8: %q", i+1, line)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) || ascii && r >= utf8.RuneSelf {
				tb.Errorf("line %d holds %q: %q", i+1, r, line)
			}
		}
	}
}

// TestWidth renders everything at many widths.
func TestWidth(t *testing.T) {
	for name := range results {
		s := load(t, name)
		for width := 40; width <= 130; width += 7 {
			checkLines(t, render(t, s, "text", report.Options{Width: width}), width, false)
			checkLines(t, render(t, s, "mail", report.Options{Width: width}), min(width, 72), true)
		}
	}
}

// TestColor: colour changes how a report looks, not what it says, and only when
// it was asked for.
func TestColor(t *testing.T) {
	for name := range results {
		s := load(t, name)
		without, with := render(t, s, "text", report.Options{}), render(t, s, "text", report.Options{Color: true})
		if d := cmp.Diff(without, escapes.ReplaceAllString(with, "")); d != "" {
			t.Errorf("%s (-without +with colour):\n%s", name, d)
		}
		if with == without {
			t.Errorf("%s: no colour", name)
		}
		for _, f := range []string{"mail", "md", "html", "bench"} {
			if strings.Contains(render(t, s, f, report.Options{Color: true}), "\x1b") {
				t.Errorf("%s: %s is coloured", name, f)
			}
		}
	}
}

// TestMarkdownIsInert: nothing that came from outside means anything in
// Markdown, and every table row has as many cells as its head.
func TestMarkdownIsInert(t *testing.T) {
	for name := range results {
		out := render(t, load(t, name), "md", report.Options{})
		code := regexp.MustCompile("(?s)\n```+\n.*?\n```+\n")
		spans := regexp.MustCompile("``+ [^\n]*? ``+|`[^`\n]+`")
		prose := spans.ReplaceAllString(strings.ReplaceAll(code.ReplaceAllString(out, ""), "\\`", ""), "")
		prose = strings.ReplaceAll(prose, `\]`, "")
		for _, bad := range []string{"<", "](", "@", "://", "\x1b", "\u202e"} {
			if strings.Contains(prose, bad) {
				t.Errorf("%s: %q outside of code:\n%s", name, bad, prose)
			}
		}
		bars := regexp.MustCompile(`(^|[^\\])\|`)
		want := 0
		for line := range strings.SplitSeq(code.ReplaceAllString(out, ""), "\n") {
			n := len(bars.FindAllString(strings.ReplaceAll(line, "||", "| |"), -1))
			switch {
			case !strings.HasPrefix(line, "|"):
				want = 0
			case want == 0:
				want = n
			case n != want:
				t.Errorf("%s: %d bars, the head has %d: %s", name, n, want, line)
			}
		}
	}
}

// TestPure: rendering twice gives the same bytes, and leaves the study alone.
func TestPure(t *testing.T) {
	for name := range results {
		s := load(t, name)
		for _, f := range report.Formats.All() {
			first := render(t, s, f.Name(), report.Options{})
			if second := render(t, s, f.Name(), report.Options{}); first != second {
				t.Errorf("%s as %s: two renderings differ", name, f.Name())
			}
		}
		if d := cmp.Diff(load(t, name), s); d != "" {
			t.Errorf("%s was changed:\n%s", name, d)
		}
	}
}

// TestZeroStudy: what is missing is said, not stumbled over.
func TestZeroStudy(t *testing.T) {
	for _, s := range []*study.Study{{}, {Verdicts: []study.Verdict{{}}}, {Verdicts: make([]study.Verdict, 3)}} {
		for _, f := range report.Formats.All() {
			if out := render(t, s, f.Name(), report.Options{Width: 1}); out == "" {
				t.Errorf("%s: empty", f.Name())
			}
		}
	}
}

func TestFind(t *testing.T) {
	if _, err := report.Find("pdf"); err == nil || !strings.Contains(err.Error(), "bench, html, json, mail, md, text") {
		t.Errorf("Find(pdf) = %v, want the known names", err)
	}
	for path, want := range map[string]string{"r.txt": "text", "a/b.md": "md", "x.json": "json", "p.mail": "mail", "p.html": "html", "p.bench": "bench", "r.pdf": ""} {
		if f, ok := report.FindByPath(path); f.Name() != want || ok != (want != "") {
			t.Errorf("FindByPath(%q) = %q, %v, want %q", path, f.Name(), ok, want)
		}
	}
}

// FuzzText: whatever a string holds, the text keeps its width and prints.
func FuzzText(f *testing.F) {
	f.Add("\x1b[2J", "eth0", 40)
	f.Add("漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字", "a|b`c", 61)
	f.Add(strings.Repeat("x", 300), "\u202e\xff\x00", 80)
	base := better()
	f.Fuzz(func(t *testing.T, a, b string, width int) {
		s := *base
		s.Verdicts = []study.Verdict{base.Verdicts[0], base.Verdicts[0]}
		v := &s.Verdicts[0]
		v.Knob, v.Arm, v.Acts.Text, v.Path, v.Advice.Command, v.Worth.Why = a, b, a+b, b, a+b, b+a
		s.Ended.Text, s.Warnings, s.Plan.Command = b, []string{a, b}, b+" "+a
		width = min(max(width, 40), 200)
		checkLines(t, render(t, &s, "text", report.Options{Width: width}), width, false)
		checkLines(t, render(t, &s, "mail", report.Options{Width: width}), min(width, 72), true)
	})
}
