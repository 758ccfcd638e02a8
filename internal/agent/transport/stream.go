package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/sys/netns"
)

// A Stream is a running child process that carries an agent.
type Stream struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	stderr *tail
	waited chan struct{}
	err    error
}

// start runs cmd as the carrier of an agent.
func start(name string, cmd *exec.Cmd) (*Stream, error) {
	s := &Stream{name: name, cmd: cmd, stderr: &tail{}, waited: make(chan struct{})}
	netns.Detach(cmd)
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// The pipe is closed by Wait, which must come after the last read: the
	// client reads until the end, so an own pipe keeps the order out of it.
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, s.stderr
	s.out = r
	if err := cmd.Start(); err != nil {
		return nil, &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("%s: %v", name, err)}
	}
	go func() {
		s.err = cmd.Wait()
		_ = w.Close() // never fails (io.PipeWriter)
		close(s.waited)
	}()
	return s, nil
}

// Pid returns the process id of the carrier.
func (s *Stream) Pid() int { return s.cmd.Process.Pid }

// Kill ends the carrier at once, as a lost connection would.
func (s *Stream) Kill() { _ = s.cmd.Process.Kill() }

// Connect greets the agent and returns a client for it.
func (s *Stream) Connect(ctx context.Context, version string) (*agent.Client, error) {
	stop := context.AfterFunc(ctx, s.Kill)
	defer stop()
	c, err := agent.Connect(ctx, s.out, s.in, agent.Hello{Version: version})
	var none *agent.NoAgentError
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &none):
		s.Close()
		return nil, s.explain(none)
	default:
		s.Close()
		return nil, err
	}
}

// explain turns "no agent answered" into what the user can do about it.
func (s *Stream) explain(none *agent.NoAgentError) error {
	code := -1
	if exit, ok := errors.AsType[*exec.ExitError](s.err); ok {
		code = exit.ExitCode()
	}
	said := strings.TrimSpace(s.stderr.String())
	text := fmt.Sprintf("%s: %v", s.name, none)
	if said != "" {
		text = fmt.Sprintf("%s: %s", s.name, said)
	}
	if code == 127 || strings.Contains(said, "command not found") || strings.Contains(said, "not found") {
		text += "\n" + s.installHint()
	}
	return &agent.Error{Kind: agent.KindEnv, Text: text}
}

// Close ends the stream: it closes the agent's input, gives it time to restore
// the host, and then kills the carrier.
func (s *Stream) Close() {
	_ = s.in.Close()                                  // a carrier that is gone has closed it
	go func() { _, _ = io.Copy(io.Discard, s.out) }() // or Wait would wait for a reader
	select {
	case <-s.waited:
		return
	case <-time.After(10 * time.Second):
	}
	s.Kill()
	<-s.waited
}

// Said returns the last lines that the carrier wrote to its standard error.
func (s *Stream) Said() string { return s.stderr.String() }

// tail keeps the last 4 KiB written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if extra := t.buf.Len() - tailSize; extra > 0 {
		t.buf.Next(extra)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
