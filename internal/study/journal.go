package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// JournalVersion is the version of the journal's lines. It rises with a kind of
// record that an older program cannot leave out.
const JournalVersion = 1

// Bounds of what is read, so that a file that is no study cannot take the
// machine's memory. An hour of two-second slots is a few megabytes.
const (
	MaxLine    = 16 << 20  // bytes of a journal's line
	MaxBytes   = 256 << 20 // bytes of a file
	maxObjects = 1 << 20   // JSON objects in a file: bounds what bytes become in memory
)

// A File is where a journal goes: an *os.File, as a rule.
type File interface {
	io.Writer
	Sync() error // returns when what was written survives a crash
}

// A Writer appends a study to a journal, one line for each Write call, synced
// before the next. After an error it takes nothing more: a line that was
// written in part must stay the last one, where [Read] can tell it.
type Writer struct {
	f   File
	err error
}

// NewWriter returns a writer that appends to f. A new journal starts with
// [Writer.Begin]; one that is continued, at the end of the last whole line
// (see [TruncatedError]), has its header already.
func NewWriter(f File) *Writer { return &Writer{f: f} }

// journalLine is one line: exactly one of its members is set. The header is
// the line that has Version and Study.
type journalLine struct {
	Version *int   `json:"offlab_journal,omitempty"`
	Study   *Study `json:"study,omitempty"`
	Slot    *Slot  `json:"slot,omitempty"`
	Noise   *Noise `json:"noise,omitempty"`
	Event   *Event `json:"event,omitempty"`
	Ended   *End   `json:"ended,omitempty"`
}

// Begin writes the first line, the header: all of s that is known before the
// first slot. Its slots, noise, events, verdicts and end are left out.
func (w *Writer) Begin(s *Study) error {
	head := *s
	head.Schema, head.Blocks, head.Ended = Schema, 0, End{}
	head.Slots, head.Noise, head.Events, head.Verdicts = nil, nil, nil, nil
	v := JournalVersion
	return w.append(journalLine{Version: &v, Study: finiteStudy(&head)})
}

// Slot appends a slot. Metrics and evidence that are not finite are left out:
// JSON has no infinity, and an absent figure is not 0.
func (w *Writer) Slot(s Slot) error {
	s = finiteSlot(s)
	return w.append(journalLine{Slot: &s})
}

// Noise appends what the A/A phase found in one cell.
func (w *Writer) Noise(n Noise) error {
	n.SD = finite(n.SD)
	return w.append(journalLine{Noise: &n})
}

// Event appends an event.
func (w *Writer) Event(e Event) error { return w.append(journalLine{Event: &e}) }

// End appends the end of the study. A study that is continued later gets
// further lines, and the last end is the one that counts.
func (w *Writer) End(e End) error { return w.append(journalLine{Ended: &e}) }

func (w *Writer) append(l journalLine) error {
	if w.err == nil {
		w.err = w.write(l)
	}
	return w.err
}

func (w *Writer) write(l journalLine) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return fmt.Errorf("journal: encode line: %w", err)
	}
	if b.Len() > MaxLine {
		return fmt.Errorf("journal: line of %d bytes exceeds the limit of %d", b.Len(), MaxLine)
	}
	if n, err := w.f.Write(b.Bytes()); err != nil {
		return fmt.Errorf("journal: write: %w", err)
	} else if n != b.Len() {
		return fmt.Errorf("journal: write: %w", io.ErrShortWrite)
	}
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("journal: sync: %w", err)
	}
	return nil
}

// Encode writes the study file: one JSON document, indented, its keys in the
// order of [Study], with no infinite number in it. Equal studies give equal
// bytes.
func Encode(w io.Writer, s *Study) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(finiteStudy(s)); err != nil {
		return fmt.Errorf("study: encode: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("study: write: %w", err)
	}
	return nil
}

// finiteStudy returns a copy of s in which every number can be written as JSON
// and every list that programs iterate over is one, empty rather than null.
func finiteStudy(s *Study) *Study {
	c := *s
	p := &c.Plan
	p.Factors, p.Arms, p.Cells, p.Contrast = list(p.Factors), list(p.Arms), list(p.Cells), list(p.Contrast)
	c.Environment.Hosts, c.Checks = list(s.Environment.Hosts), list(s.Checks)
	c.Slots = make([]Slot, len(s.Slots))
	for i, slot := range s.Slots {
		c.Slots[i] = finiteSlot(slot)
	}
	c.Noise = slices.Clone(s.Noise)
	for i := range c.Noise {
		c.Noise[i].SD = finite(c.Noise[i].SD)
	}
	c.Verdicts = make([]Verdict, len(s.Verdicts))
	for i, v := range s.Verdicts {
		c.Verdicts[i] = finiteVerdict(v)
	}
	return &c
}

// list returns a copy of x that JSON writes as a list even if it is empty.
func list[E any](x []E) []E { return append(make([]E, 0, len(x)), x...) }

func finiteSlot(s Slot) Slot {
	s.Metrics, s.Evidence = finiteMap(s.Metrics), finiteMap(s.Evidence)
	s.SettleS, s.MeasuredS = finite(s.SettleS), finite(s.MeasuredS)
	if slices.ContainsFunc(s.Samples, infinite) {
		s.Samples = slices.DeleteFunc(slices.Clone(s.Samples), infinite)
	}
	return s
}

func finiteVerdict(v Verdict) Verdict {
	v.Acts.Proof, v.Right.Proof = finiteProof(v.Acts.Proof), finiteProof(v.Right.Proof)
	metrics := list(v.Worth.Metrics)
	for i := range metrics {
		m := &metrics[i]
		m.Baseline, m.Arm, m.Effect = finite(m.Baseline), finite(m.Arm), finite(m.Effect)
		if m.Low != nil && infinite(*m.Low) {
			m.Low = nil
		}
		if m.High != nil && infinite(*m.High) {
			m.High = nil
		}
	}
	v.Worth.Metrics = metrics
	return v
}

func finiteProof(proof []Proof) []Proof {
	c := list(proof)
	for i := range c {
		for _, x := range []*any{&c[i].Baseline, &c[i].Arm} {
			if f, ok := (*x).(float64); ok && infinite(f) {
				*x = nil
			}
		}
	}
	return c
}

func finiteMap(m map[string]float64) map[string]float64 {
	c := make(map[string]float64, len(m))
	for k, v := range m {
		if !infinite(v) {
			c[k] = v
		}
	}
	return c
}

// infinite reports whether JSON cannot hold x.
func infinite(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) }

func finite(x float64) float64 {
	if infinite(x) {
		return 0
	}
	return x
}

// A FormatError says that a file is not a study, or where it stops being one.
type FormatError struct {
	Line int    // from 1
	Text string // what was expected, and what is there
	Err  error  // the cause, if there is one
}

func (e *FormatError) Error() string {
	s := fmt.Sprintf("line %d: %s", e.Line, e.Text)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// A TruncatedError says that the last line of a journal is cut off: the program
// that wrote it was killed within the write. All before it is good. To continue
// the journal, cut the file at Offset first.
type TruncatedError struct {
	Line   int   // number of the cut line, from 1
	Offset int64 // of its first byte
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("line %d: the journal is cut off within this line (from byte %d on)", e.Line, e.Offset)
}

// A VersionError says that a file was written by a newer offlab.
type VersionError struct {
	What       string // "study schema" or "journal"
	Have, Know int    // version of the file, newest version that is understood
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s version %d is newer than version %d, which this offlab reads: use a newer offlab", e.What, e.Have, e.Know)
}

// errLimit is the cause of a FormatError for a file that is too large.
var errLimit = errors.New("larger than any study")
