package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/agent/transport"
	"github.com/offlab/offlab/internal/sys/netns"
	"github.com/offlab/offlab/internal/testutil/need"
)

// TestMain makes the test binary an agent when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(serve()) //nolint:forbidigo // a TestMain is a main
	}
	m.Run()
}

type word struct{ Text string }

func serve() int {
	version := 0
	if strings.Contains(strings.Join(os.Args, " "), "--old") {
		version = agent.Protocol + 1
	}
	mark := ""
	err := agent.Serve(context.Background(), os.Stdin, os.Stdout, map[string]agent.Method{
		"echo": agent.Func(func(_ context.Context, w word) (word, error) { return w, nil }),
		"pid":  agent.Func(func(context.Context, word) (int, error) { return os.Getpid(), nil }),
		"netns": agent.Func(func(context.Context, word) (uint64, error) {
			return netns.Inode()
		}),
		"mark": agent.Func(func(_ context.Context, w word) (word, error) { mark = w.Text; return w, nil }),
	}, agent.Options{Version: "test", Protocol: version})
	if mark != "" { // stands for the restore
		_ = os.WriteFile(mark, []byte("restored"), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// A maker opens one stream of a transport.
type maker func(t *testing.T) *transport.Stream

func open(t *testing.T, target transport.Target, exe string) *transport.Stream {
	t.Helper()
	s, err := transport.Open(t.Context(), target, exe)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKernelContract runs one suite over every transport.
func TestKernelContract(t *testing.T) {
	need.NetNS(t)
	makers := map[string]maker{
		"child": func(t *testing.T) *transport.Stream {
			t.Helper()
			return open(t, transport.Target{}, self(t))
		},
		"child-own-namespace": func(t *testing.T) *transport.Stream {
			t.Helper()
			return open(t, transport.Target{Net: true}, self(t))
		},
		"exec": func(t *testing.T) *transport.Stream {
			t.Helper()
			return open(t, transport.Target{Kind: transport.Exec, Command: self(t) + " agent"}, "")
		},
		"exec-noisy": func(t *testing.T) *transport.Stream {
			t.Helper()
			return open(t, transport.Target{Kind: transport.Exec, Command: `sh -c 'echo "Welcome to b!"; exec ` + self(t) + ` agent'`}, "")
		},
	}
	srv := startSSHD(t)
	makers["ssh"] = func(t *testing.T) *transport.Stream {
		t.Helper()
		return open(t, srv.target(t), "")
	}
	makers["ssh-push"] = func(t *testing.T) *transport.Stream {
		t.Helper()
		target := srv.target(t)
		target.Push = true
		return open(t, target, self(t))
	}
	for name, mk := range makers {
		t.Run(name, func(t *testing.T) { contract(t, mk) })
	}
}

func contract(t *testing.T, mk maker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	connect := func(t *testing.T) (*transport.Stream, *agent.Client) {
		t.Helper()
		s := mk(t)
		c, err := s.Connect(ctx, "test")
		if err != nil {
			t.Fatal(err)
		}
		return s, c
	}
	t.Run("echo", func(t *testing.T) {
		s, c := connect(t)
		big := word{strings.Repeat("x\n☃", 300_000)}
		var got word
		if err := c.Call(ctx, "echo", big, &got); err != nil || got != big {
			t.Errorf("echo of %d bytes = %d bytes, %v", len(big.Text), len(got.Text), err)
		}
		c.Close()
		s.Close()
	})
	t.Run("parallel", func(t *testing.T) {
		s, c := connect(t)
		errs := make(chan error, 50)
		for i := range 50 {
			go func() {
				w, got := word{fmt.Sprint(i)}, word{}
				err := c.Call(ctx, "echo", w, &got)
				if err == nil && got != w {
					err = fmt.Errorf("got %v, want %v", got, w)
				}
				errs <- err
			}()
		}
		for range 50 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		c.Close()
		s.Close()
	})
	t.Run("close-restores", func(t *testing.T) {
		s, c := connect(t)
		mark := filepath.Join(t.TempDir(), "mark")
		if err := c.Call(ctx, "mark", word{mark}, nil); err != nil {
			t.Fatal(err)
		}
		c.Close()
		s.Close()
		waitFor(t, mark)
	})
	t.Run("lost-restores", func(t *testing.T) {
		if strings.HasPrefix(t.Name(), "TestKernelContract/child") || strings.HasPrefix(t.Name(), "TestKernelContract/exec") {
			return // the carrier is the agent: killing it is the guardian's case
		}
		s, c := connect(t)
		mark := filepath.Join(t.TempDir(), "mark")
		if err := c.Call(ctx, "mark", word{mark}, nil); err != nil {
			t.Fatal(err)
		}
		s.Kill()
		var e *agent.Error
		if err := c.Call(ctx, "echo", word{}, nil); !errors.As(err, &e) || e.Kind != agent.KindGone {
			t.Errorf("after the connection was lost: %v, want kind gone", err)
		}
		waitFor(t, mark)
		s.Close()
	})
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		if b, err := os.ReadFile(path); err == nil && string(b) == "restored" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the agent did not restore within a minute of losing its controller")
		}
	}
}

func TestKernelOwnNamespace(t *testing.T) {
	need.NetNS(t)
	here, err := netns.Inode()
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []bool{false, true} {
		s := open(t, transport.Target{Net: own}, self(t))
		c, err := s.Connect(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		var there uint64
		if err := c.Call(t.Context(), "netns", word{}, &there); err != nil {
			t.Fatal(err)
		}
		if (there != here) != own {
			t.Errorf("own=%v: agent in namespace %d, test in %d", own, there, here)
		}
		c.Close()
		s.Close()
	}
}

func TestErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		command string
		want    []string
	}{
		"no-such-program": {"/no/such/offlab agent", []string{"not found", "Install"}},
		"fails":           {"sh -c 'echo out of paper >&2; exit 3'", []string{"out of paper"}},
		"not-an-agent":    {"echo hello", []string{"no agent answered", "hello"}},
		"other-version":   {self(t) + " agent --old", []string{"protocol 1", "protocol 2", "same offlab"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, transport.Target{Kind: transport.Exec, Command: tt.command}, "")
			_, err := s.Connect(t.Context(), "test")
			if err == nil {
				t.Fatal("Connect took it")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

// TestMuteCarrier checks that a carrier that says nothing is given up with the
// context.
func TestMuteCarrier(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	s := open(t, transport.Target{Kind: transport.Exec, Command: "sleep 60"}, "")
	if _, err := s.Connect(ctx, "test"); err == nil {
		t.Error("Connect took a mute carrier")
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]transport.Target{
		"exec:ip netns exec b offlab agent": {Kind: transport.Exec, Command: "ip netns exec b offlab agent"},
		"ssh://b":                           {Kind: transport.SSH, Host: "b"},
		"ssh://root@b:2222":                 {Kind: transport.SSH, Host: "root@b", Port: "2222"},
		"ssh://root@[2001:db8::1]:22":       {Kind: transport.SSH, Host: "root@2001:db8::1", Port: "22"},
		"ssh://[2001:db8::1]":               {Kind: transport.SSH, Host: "2001:db8::1"},
	} {
		got, err := transport.Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "b", "telnet://b", "exec:", "exec: ", "ssh://", "ssh://-oProxyCommand=x", "ssh://b:0", "ssh://b:x", "ssh://a b", "ssh://b'"} {
		_, err := transport.Parse(in)
		if agent.KindOf(err) != agent.KindUsage {
			t.Errorf("Parse(%q) = %v, want a usage error", in, err)
		}
	}
}

// sshd is a server on loopback with keys of its own.
type sshd struct{ dir, port string }

// target returns a target that reaches the server, by way of an ssh earlier in
// PATH that adds the test's configuration.
func (s *sshd) target(t *testing.T) transport.Target {
	t.Helper()
	t.Setenv("PATH", filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH")) //nolint:forbidigo // the system's ssh is found by PATH
	return transport.Target{Kind: transport.SSH, Host: "127.0.0.1", Port: s.port}
}

func startSSHD(t *testing.T) *sshd {
	t.Helper()
	need.Root(t)
	need.Tool(t, "/usr/sbin/sshd")
	need.Tool(t, "ssh")
	dir := t.TempDir()
	s := &sshd{dir: dir}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	write := func(mode os.FileMode, name, format string, args ...any) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	pub, err := os.ReadFile(filepath.Join(dir, "user.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(0o600, "keys", "%s", pub)
	write(0o755, "remote/offlab", "#!/bin/sh\nexec %s \"$@\"\n", self(t))
	write(0o755, "bin/ssh", "#!/bin/sh\nexec /usr/bin/ssh -F %s/client \"$@\"\n", dir)
	write(0o600, "client", "IdentityFile %[1]s/user\nUserKnownHostsFile %[1]s/known\nStrictHostKeyChecking accept-new\nBatchMode yes\nLogLevel ERROR\n", dir)
	write(0o600, "server", "Port %[2]s\nListenAddress 127.0.0.1\nHostKey %[1]s/host\nAuthorizedKeysFile %[1]s/keys\nStrictModes no\nPidFile none\nUsePAM no\nPermitRootLogin yes\nSetEnv PATH=%[1]s/remote:/usr/bin:/bin XDG_CACHE_HOME=%[1]s/cache\n", dir, s.port)
	write(0o644, "cache/.keep", "")
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(dir, "server"))
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ready := make(chan string, 1)
	go func() {
		buf, all := make([]byte, 4096), ""
		for {
			n, err := out.Read(buf)
			all += string(buf[:n])
			if strings.Contains(all, "Server listening") || err != nil {
				ready <- all
				_, _ = io.Copy(io.Discard, out)
				return
			}
		}
	}()
	if said := <-ready; !strings.Contains(said, "Server listening") {
		t.Fatalf("sshd: %s", said)
	}
	return s
}
