package knob_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/offlab/offlab/internal/knob"
)

// holdCommand makes the test binary claim a device and hold it.
const holdCommand = "test-hold"

// TestMain lets the test binary be its own children: the guard of a session,
// and a process that holds one.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == knob.GuardCommand:
		err = knob.RunGuard(os.Stdin, os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == holdCommand:
		err = hold(os.Args[2])
	default:
		m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// A holding says what the child is to do.
type holding struct {
	Dir      string
	Settings []knob.Setting
	Guard    bool
}

// hold claims v0, applies settings, says so, and waits to be killed.
func hold(arg string) error {
	var h holding
	if err := json.Unmarshal([]byte(arg), &h); err != nil {
		return err
	}
	s, err := knob.Claim("v0", h.Dir)
	if err != nil {
		return err
	}
	if h.Guard {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		if err := s.StartGuard(self); err != nil {
			return errors.Join(err, s.Restore())
		}
	}
	if _, err := s.Apply(h.Settings); err != nil {
		return errors.Join(err, s.Restore())
	}
	fmt.Fprintln(os.Stdout, "ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Restore())
}
