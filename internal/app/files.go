package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/sys/proc"
)

// StateDir returns the directory for state files and studies, and makes it: the
// first of $XDG_STATE_HOME, /var/lib for root, ~/.local/state and the directory
// for temporary files that can be written to.
func StateDir(xdg, home string, uid int) (string, error) {
	var tries []string
	if xdg != "" {
		tries = append(tries, filepath.Join(xdg, "offlab"))
	}
	if uid == 0 {
		tries = append(tries, "/var/lib/offlab")
	}
	if home != "" {
		tries = append(tries, filepath.Join(home, ".local/state/offlab"))
	}
	tries = append(tries, filepath.Join(os.TempDir(), fmt.Sprintf("offlab-%d", uid)))
	var errs []error
	for _, dir := range tries {
		err := writable(dir)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("no directory for state files: %v", errors.Join(errs...))}
}

func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// An Output is where a study goes. While it runs, its journal lies beside the
// file that it becomes: a killed study is read, reported and resumed from there.
type Output struct {
	path    string // of the study or report; empty: the study is kept in the state directory
	journal string
	file    *os.File
	*study.Writer
}

const journalSuffix = ".journal"

// Create makes sure, before anything is measured, that the output can be
// written, and starts the journal.
func Create(path, state string, now time.Time, label string) (*Output, error) {
	o := &Output{path: path}
	if path == "" {
		dir := filepath.Join(state, "studies")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		prune(dir)
		o.path = filepath.Join(dir, fmt.Sprintf("%s-%s-%d.json", now.Format("20060102-150405"), fileName(label), os.Getpid()))
	}
	o.journal = o.path + journalSuffix
	if err := CanWrite(o.path); err != nil {
		return nil, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("cannot write %s: %v", o.path, err)}
	}
	f, err := os.OpenFile(o.journal, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf(
			"%s holds a study that did not end: continue it with --resume %s, look at it with offlab report %s, or remove it", o.journal, o.journal, o.journal)}
	}
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("cannot write %s: %v", o.journal, err)}
	}
	o.file, o.Writer = f, study.NewWriter(f)
	return o, proc.LockOpen(f)
}

// CanWrite tries to open the file for writing and leaves it as it was.
func CanWrite(path string) error {
	_, err := os.Lstat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	if fresh {
		return os.Remove(path)
	}
	return nil
}

// fileName keeps what a file name may well hold.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.,", r) {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 40)]
}

// kept is how many studies without a name of their own are kept.
const kept = 50

// prune removes the oldest studies beyond kept. Their names begin with the
// time.
func prune(dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) < kept {
		return
	}
	slices.Sort(names)
	for _, n := range names[:len(names)-kept+1] {
		_ = os.Remove(n) // the next study tries again
	}
}

// Finish writes the study beside its journal and removes the journal. Render
// writes it in the form that the name asks for.
func (o *Output) Finish(render func(io.Writer) error) (string, error) {
	if err := WriteFile(o.path, render); err != nil {
		return o.journal, fmt.Errorf("%w; what was measured is in %s", err, o.journal)
	}
	o.file.Close()
	return o.path, os.Remove(o.journal)
}

// Drop gives up an output in which nothing was measured.
func (o *Output) Drop() error { return errors.Join(o.file.Close(), os.Remove(o.journal)) }

// Journal returns the path of the journal.
func (o *Output) Journal() string { return o.journal }

// WriteFile writes a file whole or not at all.
func WriteFile(path string, render func(io.Writer) error) error {
	if i, err := os.Stat(path); err == nil && !i.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // /dev/stdout and the like
		if err != nil {
			return err
		}
		defer f.Close()
		return render(f)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(render(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// Load reads a study from a file, from the journal beside it when the study has
// not ended, or, by the name "last", the newest study of the state directory.
func Load(path, state string) (*study.Study, string, error) {
	if path == "last" {
		newest, err := newest(filepath.Join(state, "studies"))
		if err != nil {
			return nil, "", err
		}
		path = newest
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if j, jerr := os.Open(path + journalSuffix); jerr == nil {
			f, err, path = j, nil, path+journalSuffix
		}
	}
	if err != nil {
		return nil, path, &agent.Error{Kind: agent.KindUsage, Text: err.Error()}
	}
	defer f.Close()
	s, err := study.Read(f)
	if err != nil {
		return s, path, fmt.Errorf("%s: %w", path, err)
	}
	return s, path, nil
}

func newest(dir string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json*"))
	if err != nil || len(names) == 0 {
		return "", &agent.Error{Kind: agent.KindUsage, Text: "no study in " + dir}
	}
	return slices.Max(names), nil
}

// Reopen opens the journal of a study that did not end, to go on with it. A
// last line that was cut off by the end of the program is cut off.
func Reopen(path, state string) (*Output, *study.Study, error) {
	s, at, err := Load(path, state)
	var cut *study.TruncatedError
	switch {
	case errors.As(err, &cut) && s != nil:
	case err != nil:
		return nil, nil, err
	}
	target := strings.TrimSuffix(at, journalSuffix)
	if target == at {
		return nil, nil, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf(
			"%s is a study that has ended (%s); offlab report %s shows it", at, s.Ended.Why, at)}
	}
	f, err := os.OpenFile(at, os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := proc.LockOpen(f); err != nil {
		return nil, nil, errors.Join(&agent.Error{Kind: agent.KindBusy, Text: fmt.Sprintf("the study of %s still runs (%v)", at, err)}, f.Close())
	}
	if cut != nil {
		if err := f.Truncate(cut.Offset); err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &Output{path: target, journal: at, file: f, Writer: study.NewWriter(f)}, s, nil
}
