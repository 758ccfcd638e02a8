package knob

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/sys/proc"
)

// commandTimeout is how long a command may take.
const commandTimeout = 30 * time.Second

// run runs a command of the user in the shell, here: in the namespace of the
// calling thread. What fails is reported with the last lines it wrote. The
// terminal's signals do not reach it, so that a command that restores is not
// cut short. Something it leaves running in the background is not waited for.
func run(command string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var stdout, stderr tail
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	proc.Group(cmd)
	err := cmd.Run()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("did not end within %v", timeout)
	}
	said := stderr.lines()
	if said == "" {
		said = stdout.lines()
	}
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}

// A tail keeps the end of what is written to it.
type tail struct{ data []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 64 << 10
	t.data = append(t.data, p...)
	if cut := len(t.data) - most; cut > 0 {
		t.data = append(t.data[:0], t.data[cut:]...)
	}
	return len(p), nil
}

// lines returns the last lines, as one.
func (t *tail) lines() string {
	const most, wide = 3, 200
	lines := strings.FieldsFunc(string(t.data), func(r rune) bool { return r == '\n' || r == '\r' })
	lines = lines[max(0, len(lines)-most):]
	for i, l := range lines {
		lines[i] = strings.ToValidUTF8(l[:min(len(l), wide)], "?")
	}
	return strings.Join(lines, "; ")
}
