package transport

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/sys/netns"
)

// A Target says how to reach an agent. The zero Target is a child process in
// this namespace.
type Target struct {
	Kind    string // child, exec or ssh
	Command string // of exec
	Host    string // of ssh: [user@]host
	Port    string // of ssh; empty: the user's configuration decides
	Net     bool   // child: in a network namespace of its own
	CPU     int    // child: CPU number + 1 that the agent stays on; 0: any
	Push    bool   // ssh: copy this program over first
	State   string // directory for the agent's state files; empty: its own choice
}

// Kinds of targets, and how they are written.
const (
	Child = "child"
	Exec  = "exec"
	SSH   = "ssh"
)

// forever is the context of carriers: they end with their stream, after the
// agent has put things back, and not with whatever opened them.
var forever = context.Background()

// forms is the help shown for a target that is not understood.
const forms = "exec:'COMMAND' (for instance exec:'ip netns exec b offlab agent') or ssh://[user@]host[:port]"

// Parse reads a target as users write it.
func Parse(s string) (Target, error) {
	if cmd, ok := strings.CutPrefix(s, "exec:"); ok && strings.TrimSpace(cmd) != "" {
		return Target{Kind: Exec, Command: strings.TrimSpace(cmd)}, nil
	}
	if rest, ok := strings.CutPrefix(s, "ssh://"); ok {
		return parseSSH(s, strings.TrimSuffix(rest, "/"))
	}
	return Target{}, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("peer %q is not known: want %s", s, forms)}
}

func parseSSH(whole, rest string) (Target, error) {
	t := Target{Kind: SSH, Host: rest}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		t.Host, t.Port = rest[:i], rest[i+1:]
		if n, err := strconv.ParseUint(t.Port, 10, 16); err != nil || n == 0 {
			return Target{}, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("peer %q: %q is no port", whole, t.Port)}
		}
	}
	// An address in brackets is how URLs write IPv6; ssh wants it bare.
	if user, host, ok := strings.Cut(t.Host, "["); ok {
		t.Host = user + strings.TrimSuffix(host, "]")
	}
	if t.Host == "" || strings.HasPrefix(t.Host, "-") || strings.ContainsAny(t.Host, " \t\n'\"/") {
		return Target{}, &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf("peer %q: want ssh://[user@]host[:port]", whole)}
	}
	return t, nil
}

// String returns the target as users write it.
func (t Target) String() string {
	switch t.Kind {
	case Exec:
		return "exec:" + t.Command
	case SSH:
		if t.Port != "" {
			return "ssh://" + t.Host + ":" + t.Port
		}
		return "ssh://" + t.Host
	default:
		return "a child process"
	}
}

// Open starts the carrier of the target's agent. Exe is this program.
func Open(ctx context.Context, t Target, exe string) (*Stream, error) {
	switch t.Kind {
	case Exec:
		// A shell of its own splits the words as the user's would.
		return start(t.String(), exec.CommandContext(forever, "/bin/sh", "-c", "exec "+t.Command))
	case SSH:
		return openSSH(ctx, t, exe)
	default:
		cmd := exec.CommandContext(forever, exe, t.agentArgs()...)
		netns.Prepare(cmd, netns.Options{Net: t.Net})
		return start("agent", cmd)
	}
}

func (t Target) agentArgs() []string {
	args := []string{"agent"}
	if t.Net {
		args = append(args, "--own-namespace")
	}
	if t.CPU > 0 {
		args = append(args, "--cpu", strconv.Itoa(t.CPU-1))
	}
	if t.State != "" {
		args = append(args, "--state", t.State)
	}
	return args
}

// installHint says how a host without offlab gets it.
func (s *Stream) installHint() string {
	exe, err := os.Executable()
	if err != nil {
		exe = "offlab"
	}
	if host, ok := strings.CutPrefix(s.name, "ssh://"); ok {
		return fmt.Sprintf("offlab is not installed there. Install it with\n  scp %s %s:/usr/local/bin/offlab\nor let --push copy it for this run", exe, host)
	}
	return fmt.Sprintf("the command found no offlab. Install it where the command runs, or give the path of this one: %s", exe)
}
