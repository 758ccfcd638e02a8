package main_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/offlab/offlab/internal/testutil/need"
)

// build makes the command that the scripts run: the program as users have it,
// since it starts itself as agent and guardian.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", filepath.Join(dir, "offlab"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") //nolint:forbidigo // the go command needs the environment
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for scripts that run it as nobody
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, pattern string) {
	t.Helper()
	bin := build(t)
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no script matches %s (%v)", pattern, err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH")+":/usr/sbin:/sbin")
			e.Setenv("XDG_STATE_HOME", e.Getenv("WORK"))
			return nil
		},
	})
}

// TestScripts runs what needs no rights.
func TestScripts(t *testing.T) { run(t, "testdata/script/*.txtar") }

// TestKernelScripts runs studies on the built-in lab and on hosts made with ip.
func TestKernelScripts(t *testing.T) {
	need.Root(t)
	need.NetNS(t)
	need.Tool(t, "ip")
	need.Tool(t, "ethtool")
	run(t, "testdata/kernel/*.txtar")
}

// status runs a program and checks its exit status: "status 2 offlab ...". A
// leading "!" is allowed for readers and changes nothing.
func status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v: exit status %d, want %d", args[1:], got, want)
	}
}
