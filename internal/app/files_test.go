package app_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/app"
	"github.com/offlab/offlab/internal/study"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// begin starts a journal with one slot in it.
func begin(t *testing.T, path, state string) *app.Output {
	t.Helper()
	o, err := app.Create(path, state, noon, "tso")
	if err != nil {
		t.Fatal(err)
	}
	s := &study.Study{Schema: study.Schema, Plan: study.Plan{Lab: "veth", Factors: []string{"tso"}}}
	if err := errors.Join(o.Begin(s), o.Slot(study.Slot{Phase: study.PhaseAB, Arm: study.Current, Metrics: map[string]float64{"goodput": 1}})); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutput(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	o := begin(t, path, dir)

	// While it runs, the study is read from the journal and by nobody resumed.
	if s, at, err := app.Load(path, ""); err != nil || len(s.Slots) != 1 || at != path+".journal" {
		t.Errorf("Load while it runs = %v from %s, want one slot from the journal", err, at)
	}
	if _, _, err := app.Reopen(path, ""); agent.KindOf(err) != agent.KindBusy {
		t.Errorf("Reopen while it runs = %v, want busy", err)
	}
	if _, err := app.Create(path, dir, noon, "tso"); agent.KindOf(err) != agent.KindUsage || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("Create beside a journal = %v, want a usage error that names --resume", err)
	}

	s := &study.Study{Schema: study.Schema, Plan: study.Plan{Factors: []string{"tso"}}, Ended: study.End{Why: study.EndDecided}}
	if _, err := o.Finish(func(w io.Writer) error { return study.Encode(w, s) }); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 || left[0] != path {
		t.Errorf("after the end there is %v, want the study alone", left)
	}
	if _, _, err := app.Reopen(path, ""); agent.KindOf(err) != agent.KindUsage {
		t.Errorf("Reopen of a study that has ended = %v, want a usage error", err)
	}
}

// TestReopenCutsTheTornLine checks that a journal whose last line was torn by
// the end of the program is continued without it, and loses nothing else.
func TestReopenCutsTheTornLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	begin(t, path, dir)
	journal := path + ".journal"
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	// The copy stands for a journal whose writer is gone.
	torn := filepath.Join(dir, "torn.json.journal")
	if err := os.WriteFile(torn, append(whole, `{"slot":{"phase":"ab","blo`...), 0o600); err != nil {
		t.Fatal(err)
	}
	var cut *study.TruncatedError
	if _, _, err := app.Load(torn, ""); !errors.As(err, &cut) {
		t.Errorf("Load of a torn journal = %v, want it said", err)
	}
	o, s, err := app.Reopen(torn, "")
	if err != nil || len(s.Slots) != 1 {
		t.Fatalf("Reopen = %v with %d slots, want one", err, len(s.Slots))
	}
	if err := o.Slot(study.Slot{Phase: study.PhaseAB, Order: 1}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(torn)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(got), string(whole)) || strings.Count(string(got), "\n") != strings.Count(string(whole), "\n")+1 {
		t.Errorf("the continued journal is\n%s", got)
	}
}

func TestForeignJournalIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json.journal")
	foreign := []byte("{\"name\": \"x\"}\n")
	if err := os.WriteFile(path, foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := app.Reopen(path, ""); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("Reopen of a foreign file = %v, want an error that names the line", err)
	}
	if got, _ := os.ReadFile(path); string(got) != string(foreign) {
		t.Errorf("the foreign file now holds %q", got)
	}
}

func TestWriteFileIsWholeOrNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.md")
	put := func(text string, fail error) error {
		return app.WriteFile(path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fail)
		})
	}
	if err := put("first", nil); err != nil {
		t.Fatal(err)
	}
	if err := put("sec", errors.New("disk full")); err == nil {
		t.Error("a failed write was taken")
	}
	if got, _ := os.ReadFile(path); string(got) != "first" {
		t.Errorf("after a failed write the file holds %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStateDir(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ xdg, home, want string }{
		"xdg":  {dir, "/nonexistent", filepath.Join(dir, "offlab")},
		"home": {"", dir, filepath.Join(dir, ".local/state/offlab")},
		"none": {"/proc/no", "/proc/no", filepath.Join(os.TempDir(), "offlab-4711")},
	} {
		got, err := app.StateDir(tt.xdg, tt.home, 4711)
		if err != nil || got != tt.want {
			t.Errorf("%s: StateDir = %s, %v, want %s", name, got, err, tt.want)
		}
	}
	_ = os.Remove(filepath.Join(os.TempDir(), "offlab-4711"))
}
