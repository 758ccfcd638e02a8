package knob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/offlab/offlab/internal/sys/proc"
)

// GuardCommand is the argument with which [Session.StartGuard] runs a program;
// the state file follows. The program is to call [RunGuard] with its standard
// input.
const GuardCommand = "agent-guard"

// A guard is the child process that restores when this one cannot.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File // its end is the guard's signal
}

// StartGuard starts a program as the guard of this session: a child in a
// session of its own, which Ctrl-C does not reach, that inherits the lock and
// the reading end of a pipe. This process holds the other end, so that its
// death, by SIGKILL too, is what the guard sees. The lock is free when both are
// gone. It writes nothing: its output would keep an ssh connection open.
func (s *Session) StartGuard(exe string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.guard != nil {
		return errors.New("the session has a guard")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	// It must outlive any context of this process.
	cmd := exec.CommandContext(context.Background(), exe, GuardCommand, s.file)
	cmd.Stdin, cmd.ExtraFiles, cmd.Dir = r, []*os.File{s.lock}, "/"
	proc.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start guard: %w", err), w.Close())
	}
	s.guard = &guard{cmd, w}
	return nil
}

// end lets the guard go, and waits for it.
func (g *guard) end() error {
	err := g.pipe.Close()
	if werr := g.cmd.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("guard: %w", werr))
	}
	return err
}

// RunGuard waits for the end of r and then puts back what the state file
// holds, if it is still there. It runs in the guard process, which holds the
// lock by inheritance.
func RunGuard(r io.Reader, stateFile string) error {
	// A read error is an end as well: nobody is there any more.
	_, readErr := io.Copy(io.Discard, r)
	if _, err := os.Stat(stateFile); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	res := restoreOpen(stateFile)
	if res.Outcome == Failed {
		return errors.Join(errors.New(res.String()), readErr)
	}
	// The lock's file would be taken again as it is; it is only litter.
	if err := os.Remove(lockOf(stateFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
