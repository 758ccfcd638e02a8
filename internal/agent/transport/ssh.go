package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/offlab/offlab/internal/agent"
)

// sshArgs are the options of every call of ssh. The rest is the user's own
// configuration. Lost connections must be noticed, or a study would hang on a
// peer that is gone.
func (t Target) sshArgs() []string {
	args := []string{"-T", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=15"}
	if t.Port != "" {
		args = append(args, "-p", t.Port)
	}
	return append(args, "--", t.Host)
}

func openSSH(ctx context.Context, t Target, exe string) (*Stream, error) {
	remote := "offlab"
	if t.Push {
		path, err := push(ctx, t, exe)
		if err != nil {
			return nil, err
		}
		remote = path
	}
	// sbin and local directories are often missing from the PATH of a
	// non-interactive login.
	line := `PATH="$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin" exec ` + remote + " agent"
	return start(t.String(), exec.CommandContext(forever, "ssh", append(t.sshArgs(), line)...))
}

// archOf maps what uname -m says to Go's names.
var archOf = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386",
	"riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x", "mips": "mips", "mipsel": "mipsle",
}

// push copies the binary for the remote's architecture into a directory of its
// own over there and returns its path.
func push(ctx context.Context, t Target, exe string) (string, error) {
	out, err := t.run(ctx, "uname -sm", nil)
	if err != nil {
		return "", err
	}
	system, machine, _ := strings.Cut(strings.TrimSpace(out), " ")
	arch, known := archOf[machine]
	if system != "Linux" || !known {
		return "", &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("%s: %q is no machine offlab runs on", t, strings.TrimSpace(out))}
	}
	bin, err := binaryFor(arch, exe)
	if err != nil {
		return "", err
	}
	f, err := os.Open(bin)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// Written beside and renamed: a copy cut short is never run.
	script := `d="${XDG_CACHE_HOME:-$HOME/.cache}/offlab"; [ -w "${d%/*/*}" ] || d=/tmp/offlab-$(id -u); ` +
		`mkdir -p -m 700 "$d" && cat >"$d/agent.$$" && chmod 755 "$d/agent.$$" && mv -f "$d/agent.$$" "$d/agent" && echo "$d/agent"`
	out, err = t.run(ctx, script, f)
	if err != nil {
		return "", fmt.Errorf("push offlab: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// binaryFor finds the binary of an architecture: this one, or one that lies
// beside it, as `make agents` leaves it.
func binaryFor(arch, exe string) (string, error) {
	if arch == runtime.GOARCH {
		return exe, nil
	}
	path := filepath.Join(filepath.Dir(exe), "offlab-linux-"+arch)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf(
			"the peer is %s and this offlab is %s: build one for it with\n  CGO_ENABLED=0 GOARCH=%s go build -o %s ./cmd/offlab", arch, runtime.GOARCH, arch, path)}
	}
	return path, nil
}

// run runs one command over there and returns its output.
func (t Target) run(ctx context.Context, command string, stdin *os.File) (string, error) {
	cmd := exec.CommandContext(ctx, "ssh", append(t.sshArgs(), command)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if err := cmd.Run(); err != nil {
		return "", &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("%s: %s (%v)", t, strings.TrimSpace(errs.String()), err)}
	}
	return out.String(), nil
}
