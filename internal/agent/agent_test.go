package agent_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/offlab/offlab/internal/agent"
)

type word struct{ Text string }

var methods = map[string]agent.Method{
	"echo": agent.Func(func(_ context.Context, w word) (word, error) { return w, nil }),
	"busy": agent.Func(func(context.Context, word) (word, error) {
		return word{}, &agent.Error{Kind: agent.KindBusy, Text: "held by 12"}
	}),
	"denied": agent.Func(func(context.Context, word) (word, error) { return word{}, fs.ErrPermission }),
	"stuck": agent.Func(func(ctx context.Context, _ word) (word, error) {
		<-ctx.Done()
		return word{}, ctx.Err()
	}),
}

// pair joins an agent and a controller by pipes. Done is closed when Serve has
// returned.
func pair(t *testing.T, o agent.Options, before string) (r io.Reader, w io.WriteCloser, done chan struct{}) {
	t.Helper()
	toAgent, agentIn := io.Pipe()
	fromAgent, agentOut := io.Pipe()
	done = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		if before != "" {
			if _, err := io.WriteString(agentOut, before); err != nil {
				return
			}
		}
		_ = agent.Serve(ctx, toAgent, agentOut, methods, o)
	}()
	_ = toAgent
	t.Cleanup(func() {
		cancel()
		agentIn.Close()
		fromAgent.Close()
		<-done
	})
	return fromAgent, agentIn, done
}

func TestCalls(t *testing.T) {
	r, w, _ := pair(t, agent.Options{Version: "1.2"}, "")
	c, err := agent.Connect(t.Context(), r, w, agent.Hello{Version: "1.3"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.Agent().Version; got != "1.2" {
		t.Errorf("agent version = %q, want 1.2", got)
	}
	var got word
	long := strings.Repeat("a\nb", 100_000)
	if err := c.Call(t.Context(), "echo", word{long}, &got); err != nil || got.Text != long {
		t.Errorf("echo = %d bytes, %v, want %d", len(got.Text), err, len(long))
	}
	for method, want := range map[string]agent.Kind{
		"busy": agent.KindBusy, "denied": agent.KindEnv, "no-such": agent.KindInternal,
	} {
		err := c.Call(t.Context(), method, word{}, nil)
		var e *agent.Error
		if !errors.As(err, &e) || e.Kind != want {
			t.Errorf("%s: %v, want an error of kind %s", method, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Call(ctx, "stuck", word{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("stuck = %v, want it cancelled", err)
	}
}

func TestNoiseBeforeBanner(t *testing.T) {
	r, w, _ := pair(t, agent.Options{}, "Welcome!\r\n\x1b[2J you have mail\n")
	c, err := agent.Connect(t.Context(), r, w, agent.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestVersions(t *testing.T) {
	r, w, _ := pair(t, agent.Options{Version: "new", Protocol: 9}, "")
	_, err := agent.Connect(t.Context(), r, w, agent.Hello{Version: "old"})
	if _, ok := errors.AsType[*agent.VersionError](err); !ok {
		t.Fatalf("Connect = %v, want a VersionError", err)
	}
	for _, part := range []string{"protocol 1", "protocol 9", "old", "new"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
}

// TestAgentRefuses checks the agent's half of the handshake: a controller that
// goes on in spite of another version gets nothing.
func TestAgentRefuses(t *testing.T) {
	r, w, _ := pair(t, agent.Options{Protocol: 9}, "")
	go func() {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1}}`+"\n"+
			`{"jsonrpc":"2.0","id":2,"method":"echo","params":{"Text":"x"}}`+"\n")
	}()
	br := bufio.NewReader(r)
	var all strings.Builder
	for range 3 {
		l, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(l)
	}
	if !strings.Contains(all.String(), "no agreement on the protocol") {
		t.Errorf("the agent answered %s", all.String())
	}
}

func TestNoAgent(t *testing.T) {
	for name, said := range map[string]string{"silent": "", "chatty": "sh: 1: offlab: not found\n"} {
		t.Run(name, func(t *testing.T) {
			_, w := io.Pipe()
			_, err := agent.Connect(t.Context(), strings.NewReader(said), w, agent.Hello{})
			var none *agent.NoAgentError
			if !errors.As(err, &none) || !strings.Contains(none.Before, strings.TrimSpace(said)) {
				t.Errorf("Connect = %v, want a NoAgentError with %q", err, said)
			}
		})
	}
}

func TestGone(t *testing.T) {
	r, w, done := pair(t, agent.Options{}, "")
	c, err := agent.Connect(t.Context(), r, w, agent.Hello{})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	<-done
	var e *agent.Error
	if err := c.Call(t.Context(), "echo", word{}, nil); !errors.As(err, &e) || e.Kind != agent.KindGone {
		t.Errorf("Call = %v, want kind gone", err)
	}
}

// TestIdle checks that an agent whose controller falls silent ends, and that a
// client's pings keep it.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w, done := pair(t, agent.Options{Idle: 20 * time.Second}, "")
		c, err := agent.Connect(t.Context(), r, w, agent.Hello{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // virtual time
		if err := c.Call(t.Context(), "echo", word{}, nil); err != nil {
			t.Errorf("after 10 minutes of pings: %v", err)
		}
		c.Close()
		<-done
	})
	synctest.Test(t, func(t *testing.T) {
		r, w, done := pair(t, agent.Options{Idle: 20 * time.Second}, "")
		go func() { _, _ = io.Copy(io.Discard, r) }()
		start := time.Now()
		<-done
		w.Close()
		if d := time.Since(start); d < 20*time.Second || d > 30*time.Second {
			t.Errorf("a silent controller was given %v, want 20 to 30 s", d)
		}
	})
}

// FuzzServe feeds an agent bytes of a hostile controller. It must end with the
// stream and not panic.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"echo","params":{"Text":"x"}}` + "\n"))
	f.Add([]byte("[[[[\n"))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"echo"},{"id":null}]` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":[1,2]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, w := io.Pipe()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m := map[string]agent.Method{"echo": methods["echo"]}
		_ = agent.Serve(ctx, strings.NewReader(string(in)), w, m, agent.Options{})
	})
}

// FuzzConnect feeds a controller bytes of a hostile agent.
func FuzzConnect(f *testing.F) {
	f.Add([]byte("offlab-agent\n" + `{"jsonrpc":"2.0","id":1,"result":{"protocol":1,"version":"x"}}` + "\n"))
	f.Add([]byte("motd\nofflab-agent\n{}\n"))
	f.Add([]byte("offlab-agent\n" + `{"jsonrpc":"2.0","id":1,"error":{"code":-1}}` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		in2, w := io.Pipe()
		go func() { _, _ = io.Copy(io.Discard, in2) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, err := agent.Connect(ctx, strings.NewReader(string(in)), w, agent.Hello{})
		if err != nil {
			return
		}
		_ = c.Call(ctx, "echo", word{"x"}, nil)
		c.Close()
	})
}
