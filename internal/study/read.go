package study

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	journalStart = `{"offlab_journal"` // how a journal's first byte is told from a study file's
	expected     = "expected an offlab journal or study file"
)

// Read reads a study from either form, which it recognises by its content: a
// journal or a study file.
//
// A file that is neither gives a *[FormatError] that names the line, one of a
// newer version a *[VersionError]. A journal whose last line is cut off gives a
// *[TruncatedError] together with the study up to there; with any other error,
// and if the cut line is the header, the study is nil. Verdicts are in the
// study only if it comes from a study file.
func Read(r io.Reader) (*Study, error) { return read(r, MaxBytes) }

func read(r io.Reader, limit int64) (*Study, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	start, err := b.Peek(len(journalStart))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read study: %w", err)
	}
	if string(start) == journalStart {
		return readJournal(b, limit)
	}
	return readDocument(b, limit)
}

// readJournal reads lines until one is bad or there is no more.
func readJournal(b *bufio.Reader, limit int64) (*Study, error) {
	var s *Study
	l := lines{b: b, limit: limit}
	for {
		line, err := l.next()
		var cut *TruncatedError
		switch {
		case errors.Is(err, io.EOF):
			s.Blocks = s.CountBlocks()
			return s, nil
		case errors.As(err, &cut) && s != nil:
			s.Blocks = s.CountBlocks()
			return s, err
		case err != nil:
			return nil, err
		case s == nil:
			s, err = header(line)
		default:
			err = s.record(line, l.n)
		}
		if err != nil {
			return nil, err
		}
	}
}

// lines reads lines and bounds what they cost.
type lines struct {
	b       *bufio.Reader
	limit   int64 // of the file, in bytes
	n       int   // number of the line returned last, from 1
	offset  int64 // of the next line
	objects int
	buf     []byte
}

// next returns the next line without its end, valid until the call after.
func (l *lines) next() ([]byte, error) {
	l.buf = l.buf[:0]
	l.n++
	for {
		part, err := l.b.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		switch {
		case len(l.buf) > MaxLine:
			return nil, &FormatError{l.n, fmt.Sprintf("a journal's line has at most %d bytes", MaxLine), errLimit}
		case l.offset+int64(len(l.buf)) > l.limit:
			return nil, &FormatError{l.n, fmt.Sprintf("a journal has at most %d bytes", l.limit), errLimit}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(l.buf) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, &TruncatedError{l.n, l.offset}
		case err != nil:
			return nil, fmt.Errorf("read journal, line %d: %w", l.n, err)
		}
		if l.objects += bytes.Count(l.buf, []byte("{")); l.objects > maxObjects {
			return nil, &FormatError{l.n, fmt.Sprintf("a journal has at most %d objects", maxObjects), errLimit}
		}
		l.offset += int64(len(l.buf))
		return l.buf[:len(l.buf)-1], nil
	}
}

// header decodes the first line. The version is looked at before the rest,
// which may not mean the same in a newer one.
func header(line []byte) (*Study, error) {
	var v struct {
		Journal int `json:"offlab_journal"`
		Study   struct {
			Schema int `json:"schema"`
		} `json:"study"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return nil, &FormatError{1, "bad journal header", err}
	}
	if err := checkVersion("journal", v.Journal, JournalVersion); err != nil {
		return nil, err
	}
	if err := checkVersion("study schema", v.Study.Schema, Schema); err != nil {
		return nil, err
	}
	var h journalLine
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, &FormatError{1, "bad journal header", err}
	}
	if h.Study == nil || h.Slot != nil || h.Noise != nil || h.Event != nil || h.Ended != nil || len(h.Study.Slots) > 0 {
		return nil, &FormatError{1, "bad journal header: it must hold a study without slots, and nothing else", nil}
	}
	return h.Study, nil
}

// checkVersion reports a version that is newer than is known, or none.
func checkVersion(what string, have, know int) error {
	switch {
	case have > know:
		return &VersionError{what, have, know}
	case have < 1:
		return &FormatError{1, fmt.Sprintf("%s: no %s version", expected, what), nil}
	default:
		return nil
	}
}

// record adds one line to the study.
func (s *Study) record(line []byte, n int) error {
	const want = "expected a journal record: slot, noise, event or ended"
	var l journalLine
	if err := json.Unmarshal(line, &l); err != nil {
		return &FormatError{n, want, err}
	}
	if l.Version != nil || l.Study != nil {
		return &FormatError{n, want + "; this is a second header: two journals in one file", nil}
	}
	found := 0
	if l.Slot != nil {
		found++
		if err := l.Slot.check(); err != nil {
			return &FormatError{n, "bad slot", err}
		}
		s.Slots = append(s.Slots, *l.Slot)
	}
	if l.Noise != nil {
		found++
		s.setNoise(*l.Noise)
	}
	if l.Event != nil {
		found++
		s.Events = append(s.Events, *l.Event)
	}
	if l.Ended != nil {
		found++
		s.Ended = *l.Ended
	}
	if found != 1 {
		return &FormatError{n, fmt.Sprintf("%s, exactly one in a line; there are %d", want, found), nil}
	}
	return nil
}

// setNoise notes the noise of a cell. A study that was continued has measured it
// again.
func (s *Study) setNoise(n Noise) {
	for i, old := range s.Noise {
		if old.Cell == n.Cell && old.Metric == n.Metric {
			s.Noise[i] = n
			return
		}
	}
	s.Noise = append(s.Noise, n)
}

// check reports a slot that cannot be placed.
func (s *Slot) check() error {
	switch {
	case s.Arm == "":
		return errors.New("it names no arm")
	case s.Phase != PhaseAA && s.Phase != PhaseAB:
		return fmt.Errorf("phase is %q, not %q or %q", s.Phase, PhaseAA, PhaseAB)
	case s.Block < 0:
		return fmt.Errorf("block is %d", s.Block)
	default:
		return nil
	}
}

// readDocument reads the study file: one JSON object that fills the file.
func readDocument(r io.Reader, limit int64) (*Study, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read study: %w", err)
	case int64(len(data)) > limit:
		return nil, &FormatError{1, fmt.Sprintf("a study file has at most %d bytes", limit), errLimit}
	case len(bytes.TrimSpace(data)) == 0:
		return nil, &FormatError{1, expected + "; the file is empty", nil}
	case bytes.Count(data, []byte("{")) > maxObjects:
		return nil, &FormatError{1, fmt.Sprintf("a study file has at most %d objects", maxObjects), errLimit}
	}
	// Some keys tell a study file from any other JSON.
	var keys struct {
		Schema *int             `json:"schema"`
		Plan   *json.RawMessage `json:"plan"`
		Slots  *json.RawMessage `json:"slots"`
	}
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, &FormatError{lineOf(data, err), expected, err}
	}
	if keys.Schema == nil || keys.Plan == nil || keys.Slots == nil {
		return nil, &FormatError{1, expected + "; this is JSON of some other kind, without schema, plan or slots", nil}
	}
	if err := checkVersion("study schema", *keys.Schema, Schema); err != nil {
		return nil, err
	}
	s := &Study{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, &FormatError{lineOf(data, err), "bad study file", err}
	}
	for i := range s.Slots {
		if err := s.Slots[i].check(); err != nil {
			return nil, &FormatError{1, fmt.Sprintf("bad study file: slot %d", i), err}
		}
	}
	return s, nil
}

// lineOf returns the line that a decoding error is in.
func lineOf(data []byte, err error) int {
	var offset int64
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &mismatch):
		offset = mismatch.Offset
	}
	return 1 + bytes.Count(data[:min(max(offset-1, 0), int64(len(data)))], []byte("\n"))
}
