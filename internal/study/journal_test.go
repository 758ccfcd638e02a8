package study_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/study"
)

// file is a File in memory that knows its lines and syncs.
type file struct {
	bytes.Buffer
	writes, syncs int
	fail          error
	short         bool
}

func (f *file) Write(b []byte) (int, error) {
	f.writes++
	if f.fail != nil {
		return 0, f.fail
	}
	if f.short {
		b = b[:len(b)/2]
	}
	return f.Buffer.Write(b)
}

func (f *file) Sync() error { f.syncs++; return nil }

var when = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func cell() study.Cell {
	return study.Cell{Path: "base", Family: "ipv4", Load: "bulk", Direction: "tx"}
}

// sample returns a study that has something in every member.
func sample() *study.Study {
	low := 0.28
	s := &study.Study{
		Schema: study.Schema, Version: "0.1.0", Created: when, Seed: 42, Blocks: 1,
		Plan: study.Plan{
			Lab: "veth", Side: "device", Factors: []string{"tso"}, Alpha: 0.05,
			Arms:  []study.Arm{{Name: study.Current}, {Name: "tso=off", Settings: []study.Setting{{Knob: "tso", Value: "off"}}}},
			Cells: []study.Cell{cell()},
			Contrast: []study.Contrast{{
				Knob: "tso", Baseline: "off", Arm: "on", Cell: cell(),
				Terms: []study.Term{{Arm: study.Current, Weight: 1}, {Arm: "tso=off", Weight: -1}},
			}},
		},
		Environment: study.Environment{Kernel: "6.18.0", CPUs: 2, Hosts: []study.Host{{
			Name: "a", Role: "device", Device: "off0", MTU: 1500, Features: map[string]string{"tx-tcp-segmentation": "on"},
		}}},
		Checks: []study.ArmCheck{{Arm: "tso=off", Knobs: []study.Moved{{Knob: "tso", Asked: "off", Got: "off", Was: "on", Moved: true}}}},
		Noise:  []study.Noise{{Cell: cell(), Metric: study.Goodput, SD: 0.01, Pairs: 4}},
		Events: []study.Event{{At: when, Kind: "resumed"}},
		Verdicts: []study.Verdict{{
			Knob: "tso", Baseline: "off", Arm: "on", Cell: cell(),
			Acts:  study.Answer{Answer: study.Yes, Proof: []study.Proof{{Layer: study.LayerCounters, Source: "x", Baseline: 1.0, Arm: 39.3, Text: "<segments> & packets"}}},
			Right: study.Answer{Answer: study.Yes, Proof: []study.Proof{}},
			Worth: study.Worth{Answer: study.Better, Primary: study.Goodput, Metrics: []study.Metric{
				{Name: study.Goodput, Unit: "bit/s", Baseline: 1e9, Arm: 1.3e9, Effect: 0.3, Low: &low, Blocks: 1, Answer: study.Better},
			}},
			Advice: study.Advice{Action: study.KeepOn, Text: "keep on"},
		}},
		Ended: study.End{Why: study.EndDecided, Elapsed: 12.5},
	}
	for i, arm := range []string{study.Current, "tso=off"} {
		s.Slots = append(s.Slots, study.Slot{
			Phase: study.PhaseAB, Order: i, Arm: arm, Cell: cell(), Started: when, MeasuredS: 1,
			Metrics:  map[string]float64{study.Goodput: 1e9},
			Evidence: map[string]float64{"device.Tcp.OutSegs": 1000},
			Findings: []study.Finding{{Kind: "payload", Source: "load", Text: "byte 17"}},
			Samples:  []float64{1, 2}, ReadSizes: []int64{1, 0, 3},
		})
	}
	return s
}

// journal writes a study as a run does, line by line.
func journal(tb testing.TB, s *study.Study) *file {
	tb.Helper()
	f := &file{}
	w := study.NewWriter(f)
	errs := []error{w.Begin(s)}
	for _, slot := range s.Slots {
		errs = append(errs, w.Slot(slot))
	}
	for _, n := range s.Noise {
		errs = append(errs, w.Noise(n))
	}
	for _, e := range s.Events {
		errs = append(errs, w.Event(e))
	}
	if err := errors.Join(append(errs, w.End(s.Ended))...); err != nil {
		tb.Fatal(err)
	}
	return f
}

func document(tb testing.TB, s *study.Study) string {
	tb.Helper()
	var b bytes.Buffer
	if err := study.Encode(&b, s); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestJournalRoundTrip(t *testing.T) {
	want := sample()
	f := journal(t, want)
	lines := strings.Count(f.String(), "\n")
	if lines != 6 || f.writes != lines || f.syncs != lines {
		t.Errorf("%d lines took %d writes and %d syncs, want 6 of each", lines, f.writes, f.syncs)
	}
	got, err := study.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	want.Verdicts = []study.Verdict{} // made from the slots, not kept in a journal
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Read(journal) differs (-want +got):\n%s", d)
	}
}

func TestDocumentRoundTrip(t *testing.T) {
	want := sample()
	text := document(t, want)
	got, err := study.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Read(Encode(s)) differs (-want +got):\n%s", d)
	}
	if !strings.Contains(text, "<segments> & packets") {
		t.Error("Encode escapes for HTML, want text as it is")
	}
}

func TestEncodeNeverInfinite(t *testing.T) {
	inf := math.Inf(1)
	s := sample()
	s.Slots[0].Metrics = map[string]float64{"a": inf, "b": 2}
	s.Slots[0].Evidence = map[string]float64{"a": math.NaN()}
	s.Slots[0].Samples = []float64{1, inf, 3}
	s.Noise[0].SD = math.NaN()
	m := &s.Verdicts[0].Worth.Metrics[0]
	m.Low, m.High, m.Effect = &inf, &inf, -inf
	s.Verdicts[0].Acts.Proof[0].Arm = inf
	got, err := study.Read(strings.NewReader(document(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]float64{"b": 2}, got.Slots[0].Metrics); d != "" {
		t.Errorf("metrics differ (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]float64{1, 3}, got.Slots[0].Samples); d != "" {
		t.Errorf("samples differ (-want +got):\n%s", d)
	}
	if m := got.Verdicts[0].Worth.Metrics[0]; m.Low != nil || m.High != nil {
		t.Errorf("bounds = %v, %v, want none", m.Low, m.High)
	}
	if !math.IsInf(s.Slots[0].Metrics["a"], 1) || len(s.Slots[0].Samples) != 3 {
		t.Error("Encode changed the study it was given")
	}
	if err := study.NewWriter(&file{}).Slot(s.Slots[0]); err != nil {
		t.Errorf("Slot with infinite metrics: %v", err)
	}
}

// TestEncodeLists checks that programs can iterate over an empty study.
func TestEncodeLists(t *testing.T) {
	text := document(t, &study.Study{Schema: 1})
	for _, want := range []string{`"slots": []`, `"verdicts": []`, `"arm_checks": []`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestTruncated cuts a journal at every byte.
func TestTruncated(t *testing.T) {
	whole := journal(t, sample()).String()
	for cut := range len(whole) {
		s, err := study.Read(strings.NewReader(whole[:cut]))
		start := strings.LastIndexByte(whole[:cut], '\n') + 1
		line := strings.Count(whole[:cut], "\n") + 1
		slots := strings.Count(whole[:start], `{"slot":`)
		var truncated *study.TruncatedError
		switch {
		case cut < len(`{"offlab_journal"`):
			if _, ok := errors.AsType[*study.FormatError](err); !ok {
				t.Fatalf("cut at %d: error %v, want a FormatError", cut, err)
			}
		case start == cut:
			if err != nil || len(s.Slots) != slots {
				t.Fatalf("cut at %d, the end of a line: %v", cut, err)
			}
		case !errors.As(err, &truncated):
			t.Fatalf("cut at %d: error %v, want a TruncatedError", cut, err)
		case truncated.Line != line || truncated.Offset != int64(start):
			t.Fatalf("cut at %d: %v, want line %d from byte %d", cut, truncated, line, start)
		case (s == nil) != (line == 1):
			t.Fatalf("cut in line %d: study %v", line, s)
		case s != nil && len(s.Slots) != slots:
			t.Fatalf("cut at %d: %d slots, want %d", cut, len(s.Slots), slots)
		}
	}
}

// TestContinued cuts a truncated journal where the error says, appends to it
// and reads all of it.
func TestContinued(t *testing.T) {
	f := journal(t, sample())
	f.Truncate(f.Len() - 5)
	_, err := study.Read(bytes.NewReader(f.Bytes()))
	var cut *study.TruncatedError
	if !errors.As(err, &cut) {
		t.Fatal(err)
	}
	f.Truncate(int(cut.Offset))
	w := study.NewWriter(f)
	extra := sample().Slots[0]
	extra.Block = 1
	if err := errors.Join(w.Slot(extra), w.End(study.End{Why: study.EndBudget})); err != nil {
		t.Fatal(err)
	}
	s, err := study.Read(f)
	if err != nil || len(s.Slots) != 3 || s.Blocks != 1 || s.Ended.Why != study.EndBudget {
		t.Errorf("continued: %d slots, %d blocks, ended %q, %v", len(s.Slots), s.Blocks, s.Ended.Why, err)
	}
}

func TestReadRefuses(t *testing.T) {
	j := journal(t, sample()).String()
	lines := strings.SplitAfter(j, "\n")
	doc := document(t, sample())
	for _, tt := range []struct {
		name, in string
		line     int
		want     string
	}{
		{"empty", "", 1, "the file is empty"},
		{"blank", " \n\n", 1, "the file is empty"},
		{"text", "Connecting to host\n", 1, "expected an offlab journal or study file"},
		{"binary", "\xd4\xc3\xb2\xa1\x02\x00\x04\x00", 1, "expected an offlab journal or study file"},
		{"other-json", `{"start":{"version":"iperf 3.21"}}`, 1, "JSON of some other kind"},
		{"other-json-with-schema", `{"schema":1,"rows":[]}`, 1, "JSON of some other kind"},
		{"json-list", "[]", 1, "expected an offlab journal or study file"},
		{"json-null", "null", 1, "JSON of some other kind"},
		{"json-lines", "{\"a\":1}\n{\"b\":2}\n", 2, "expected an offlab journal or study file"},
		{"cut-document", doc[:len(doc)/2], 1 + strings.Count(doc[:len(doc)/2], "\n"), "unexpected end of JSON input"},
		{"wrong-type", strings.Replace(doc, `"seed": 42`, `"seed": "x"`, 1), 1 + strings.Count(doc[:strings.Index(doc, `"seed": 42`)], "\n"), "cannot unmarshal string"},
		{"slot-without-arm", `{"schema":1,"plan":{},"slots":[{}]}`, 1, "slot 0: it names no arm"},
		{"no-schema", `{"offlab_journal":1,"study":{}}` + "\n", 1, "no study schema version"},
		{"no-study", `{"offlab_journal":1}` + "\n", 1, "no study schema version"},
		{"null-study", `{"offlab_journal":1,"study":{"schema":1},"study":null}` + "\n", 1, "bad journal header"},
		{"journal-version-0", `{"offlab_journal":0}` + "\n", 1, "no journal version"},
		{"second-header", lines[0] + lines[0], 2, "second header"},
		{"second-journal", j + j, 7, "second header"},
		{"garbage", lines[0] + lines[1] + "#!garbage\n" + lines[2], 3, "expected a journal record"},
		{"zeros", lines[0] + "\x00\x00\x00\n", 2, "expected a journal record"},
		{"blank-line", lines[0] + "\n" + lines[1], 2, "expected a journal record"},
		{"unknown-record", lines[0] + `{"sloth":{}}` + "\n", 2, "exactly one in a line; there are 0"},
		{"two-records", lines[0] + `{"ended":{},"event":{}}` + "\n", 2, "there are 2"},
		{"two-in-a-line", lines[0] + strings.TrimSpace(lines[1]) + lines[2], 2, "expected a journal record"},
		{"bad-phase", lines[0] + `{"slot":{"arm":"x","phase":"zz"}}` + "\n", 2, `phase is "zz"`},
		{"bad-block", lines[0] + `{"slot":{"arm":"x","phase":"ab","block":-1}}` + "\n", 2, "block is -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := study.Read(strings.NewReader(tt.in))
			var format *study.FormatError
			if s != nil || !errors.As(err, &format) {
				t.Fatalf("Read = %v, %v, want a FormatError", s, err)
			}
			if format.Line != tt.line || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want line %d and %q", err, tt.line, tt.want)
			}
		})
	}
}

func TestReadRefusesNewer(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"journal", `{"offlab_journal":2,"study":"anything"}`, ""},
		{"journal-version", `{"offlab_journal":2,"study":{"schema":1}}`, "journal version 2 is newer than version 1"},
		{"journal-schema", `{"offlab_journal":1,"study":{"schema":9}}`, "study schema version 9 is newer than version 1"},
		{"document", `{"schema":9,"plan":{},"slots":{}}`, "study schema version 9 is newer than version 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := study.Read(strings.NewReader(tt.in + "\n"))
			if s != nil || err == nil {
				t.Fatalf("Read = %v, %v, want an error", s, err)
			}
			var version *study.VersionError
			if tt.want != "" && (!errors.As(err, &version) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %q, want %q", err, tt.want)
			}
		})
	}
}

// TestReadNewKeys checks that keys of a later program are passed over: they do
// not raise the version.
func TestReadNewKeys(t *testing.T) {
	in := `{"offlab_journal":1,"study":{"schema":1,"later":true}}` + "\n" + `{"slot":{"arm":"x","phase":"ab","later":[1]}}` + "\n"
	if s, err := study.Read(strings.NewReader(in)); err != nil || len(s.Slots) != 1 {
		t.Errorf("Read = %v, %v, want one slot", s, err)
	}
}

// endless yields one byte for ever.
type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

func TestReadBounds(t *testing.T) {
	header, _, _ := strings.Cut(journal(t, sample()).String(), "\n")
	event := `{"event":{"kind":"` + strings.Repeat("{", 1000) + `"}}` + "\n"
	for _, tt := range []struct {
		name string
		in   io.Reader
		want string
	}{
		{"line", io.MultiReader(strings.NewReader(header+"\n"), endless('x')), "line 2: a journal's line has at most"},
		{"document", endless(' '), "a study file has at most"},
		{"journal", io.MultiReader(strings.NewReader(header+"\n"), strings.NewReader(strings.Repeat(event, 100))), "a journal has at most"},
		{"objects", strings.NewReader(`{"schema":1,"plan":{},"slots":[` + strings.Repeat("{},", 1<<20) + `{}]}`), "objects"},
		{"journal-objects", strings.NewReader(header + "\n" + strings.Repeat(event, 1100)), "objects"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limit := int64(study.MaxBytes)
			if !strings.Contains(tt.want, "objects") && tt.name != "line" {
				limit = 1 << 16
			}
			if _, err := study.ReadLimit(tt.in, limit); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	broken := errors.New("broken disk")
	for _, start := range []string{"", "{", `{"offlab_journal":1,`} {
		_, err := study.Read(io.MultiReader(strings.NewReader(start), failing{broken}))
		if !errors.Is(err, broken) {
			t.Errorf("Read after %q: %v, want %v", start, err, broken)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestWriterSticks checks that nothing follows a line that was written in part.
func TestWriterSticks(t *testing.T) {
	full := errors.New("disk full")
	for name, f := range map[string]*file{"fails": {fail: full}, "short": {short: true}} {
		w := study.NewWriter(f)
		first := w.Begin(sample())
		if first == nil {
			t.Fatalf("%s: no error", name)
		}
		f.fail, f.short = nil, false
		if err := w.End(study.End{}); !errors.Is(err, first) || f.writes != 1 {
			t.Errorf("%s: %v after %d writes, want the first error and 1 write", name, err, f.writes)
		}
	}
	long := sample().Slots[0]
	long.Void = strings.Repeat("x", study.MaxLine)
	if err := study.NewWriter(&file{}).Slot(long); err == nil || !strings.Contains(err.Error(), "exceeds the limit") {
		t.Errorf("Slot of %d bytes: %v, want an error", study.MaxLine, err)
	}
}

func TestCountBlocks(t *testing.T) {
	s := sample()
	base := s.Slots
	s.Slots = nil
	for b := range 4 {
		for _, slot := range base {
			slot.Block = b
			s.Slots = append(s.Slots, slot)
		}
	}
	s.Slots[3].Void = "peer vanished"      // block 1
	s.Slots[4].Phase = study.PhaseAA       // block 2 loses a slot
	s.Slots = append(s.Slots, s.Slots[0])  // an extra slot of block 0
	s.Slots[len(s.Slots)-1].Arm = "gro=no" // of an arm that is in no contrast
	if got := s.CountBlocks(); got != 2 {
		t.Errorf("CountBlocks = %d, want 2", got)
	}
	// A contrast whose arm is stuck is not run, so blocks are whole without it.
	stuck := s.Plan.Contrast[0]
	stuck.Terms = []study.Term{{Arm: study.Current, Weight: 1}, {Arm: "lro=on", Weight: -1}}
	s.Plan.Contrast = append(s.Plan.Contrast, stuck)
	s.Checks = append(s.Checks, study.ArmCheck{Arm: "lro=on", Knobs: []study.Moved{{Knob: "lro", Reason: "fixed"}}})
	if got := s.CountBlocks(); got != 2 {
		t.Errorf("CountBlocks with a stuck arm = %d, want 2", got)
	}
}

// FuzzRead checks that no input makes Read panic, that an error comes with a
// study only if the last line is cut off, and that what was read is written and
// read again without change.
func FuzzRead(f *testing.F) {
	j := journal(f, sample()).String()
	f.Add([]byte(j))
	f.Add([]byte(j[:len(j)-9])) // cut within the last line
	f.Add([]byte(document(f, sample())))
	f.Add([]byte(`{"schema":1,"plan":{},"slots":[]}`)) // the smallest document
	f.Add([]byte(`{"offlab_journal":1,"study":{"schema":1}}` + "\n"))
	f.Add([]byte(`{"schema":1,"plan":null,"slots":null,"created":"2026-11-30T00:00:00+23:59"}`))
	f.Add([]byte(`{"schema":1,"plan":{},"slots":[],"verdicts":[{"acts":{"proof":[{"arm":{"b":1e300,"a":[null]}}]}}]}`))
	f.Add([]byte(fmt.Sprintf(`{"schema":1,"plan":{},"slots":[{"arm":"a","phase":"ab","block":%d}]}`, math.MaxInt)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := study.Read(bytes.NewReader(b))
		if err != nil {
			var cut *study.TruncatedError
			if s != nil && !errors.As(err, &cut) {
				t.Fatalf("a study with error %v", err)
			}
			if cut != nil && (cut.Offset > int64(len(b)) || cut.Offset < 0) {
				t.Fatalf("%v of %d bytes", cut, len(b))
			}
		}
		if s == nil {
			return
		}
		once := document(t, s)
		again, err := study.Read(strings.NewReader(once))
		if err != nil {
			t.Fatalf("cannot read what Encode wrote: %v\n%s", err, once)
		}
		if twice := document(t, again); twice != once {
			t.Fatalf("Encode is not stable:\n%s\n%s", once, twice)
		}
	})
}
