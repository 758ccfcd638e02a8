package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A bed is two network namespaces joined by a veth pair.
type bed struct{ sender, receiver string }

// The addresses are those for documentation (RFC 5737).
const senderAddr, receiverAddr = "192.0.2.1", "192.0.2.2"

const prefix = "offlab-bench-"

func newBed(ctx context.Context) (*bed, error) {
	if err := sweep(ctx); err != nil {
		return nil, err
	}
	name := prefix + strconv.Itoa(os.Getpid())
	b := &bed{name + "-a", name + "-b"}
	for _, args := range []string{
		"netns add " + b.sender,
		"netns add " + b.receiver,
		"link add v0 netns " + b.sender + " type veth peer name v0 netns " + b.receiver,
		"-n " + b.sender + " addr add " + senderAddr + "/24 dev v0",
		"-n " + b.receiver + " addr add " + receiverAddr + "/24 dev v0",
		"-n " + b.sender + " link set v0 up",
		"-n " + b.receiver + " link set v0 up",
	} {
		if err := ip(ctx, args); err != nil {
			return nil, errors.Join(err, b.close(ctx))
		}
	}
	return b, nil
}

// close deletes the namespaces, and the links with them. It does so after
// Ctrl-C as well.
func (b *bed) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	have, err := namespaces(ctx)
	for _, name := range []string{b.sender, b.receiver} {
		if have[name] {
			err = errors.Join(err, ip(ctx, "netns del "+name))
		}
	}
	return err
}

// sweep deletes what a killed benchmark has left.
func sweep(ctx context.Context) error {
	have, err := namespaces(ctx)
	for name := range have {
		pid, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "-")
		if _, e := os.Stat("/proc/" + pid); strings.HasPrefix(name, prefix) && errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, ip(ctx, "netns del "+name))
		}
	}
	return err
}

func namespaces(ctx context.Context) (map[string]bool, error) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return nil, fmt.Errorf("ip netns list: %w", err)
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			have[f[0]] = true
		}
	}
	return have, nil
}

func ip(ctx context.Context, args string) error {
	out, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// command runs a program inside a namespace.
func (b *bed) command(ctx context.Context, ns string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", ns}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	return cmd
}

func receiverIP() netip.Addr { return netip.MustParseAddr(receiverAddr) }
