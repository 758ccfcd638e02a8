package knob_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/sys/proc"
	"github.com/offlab/offlab/internal/testutil/need"
)

// A holder is a child process that holds v0.
type holder struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// hold starts a child that claims v0, applies settings and says so.
func (b *bench) hold(guard bool, settings ...string) *holder {
	b.Helper()
	h := holding{Dir: b.dir, Guard: guard}
	for _, text := range settings {
		h.Settings = append(h.Settings, set(b, text))
	}
	arg, err := json.Marshal(h)
	b.ok(err)
	self, err := os.Executable()
	b.ok(err)
	child := &holder{cmd: exec.Command(self, holdCommand, string(arg))}
	child.cmd.Stderr = os.Stderr
	proc.Group(child.cmd) // a group of its own, to signal it as a terminal would
	child.cmd.Cancel = nil
	child.stdin, err = child.cmd.StdinPipe()
	b.ok(err)
	stdout, err := child.cmd.StdoutPipe()
	b.ok(err)
	child.out = bufio.NewReader(stdout)
	b.in(child.cmd.Start)
	b.Cleanup(func() { _ = child.cmd.Process.Kill() })
	if line, err := child.out.ReadString('\n'); line != "ready\n" {
		b.Fatalf("the child said %q, %v", line, err)
	}
	return child
}

// kill ends the child and waits for it.
func (b *bench) kill(h *holder, signal string) {
	b.Helper()
	b.ok(exec.Command("kill", "-"+signal, "--", fmt.Sprint(-h.cmd.Process.Pid)).Run())
	if err := h.cmd.Wait(); err == nil {
		b.Errorf("the child survived SIG%s", signal)
	}
}

// free waits until the lock of the child is free: until its guard has ended.
func (b *bench) free() {
	b.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		var results []knob.Result
		b.in(func() (err error) { results, err = knob.Restore(b.dir); return err })
		locks, _ := filepath.Glob(filepath.Join(b.dir, "*.lock"))
		if len(results) == 0 && len(locks) == 0 {
			return
		}
		if slices.ContainsFunc(results, func(r knob.Result) bool { return r.Outcome == knob.Restored }) {
			b.Fatalf("the guard left it to Restore: %v", results)
		}
		if time.Now().After(deadline) {
			b.Fatalf("not restored: %v, %v", results, locks)
		}
	}
}

// TestKernelGuard kills a study in several ways; its guard restores.
func TestKernelGuard(t *testing.T) {
	b := newBench(t)
	was := b.look("v0")
	for _, signal := range []string{"KILL", "INT", "TERM", "HUP"} {
		h := b.hold(true, "sg+tso=off", "mtu=1400", "net.ipv4.tcp_sack=0")
		if b.active("tx-tcp-segmentation") || b.look("v0").Link["mtu"] != 1400 {
			t.Fatal("nothing was changed")
		}
		b.kill(h, signal)
		b.free()
		b.same("v0", was)
	}
	// The ordinary end: closing stdin is a restore, and the guard does nothing.
	h := b.hold(true, "tso=off")
	b.ok(h.stdin.Close())
	b.ok(h.cmd.Wait())
	b.free()
	b.same("v0", was)
}

// TestKernelBusy claims a device twice.
func TestKernelBusy(t *testing.T) {
	b := newBench(t)
	h := b.hold(true, "tso=off")
	b.in(func() error {
		_, err := knob.Claim("v0", b.dir)
		if busy, ok := errors.AsType[*knob.BusyError](err); !ok || busy.PID != h.cmd.Process.Pid || !strings.Contains(err.Error(), fmt.Sprint(busy.PID)) {
			t.Errorf("second claim: %v, want busy with %d", err, h.cmd.Process.Pid)
		}
		s, err := knob.Claim("v1", b.dir) // another device is free
		b.ok(err)
		results, err := knob.Restore(b.dir)
		if len(results) != 2 || results[0].Outcome != knob.InUse || results[1].Outcome != knob.InUse || err != nil {
			t.Errorf("Restore while studies run: %v, %v", results, err)
		}
		return s.Restore()
	})
	if b.active("tx-tcp-segmentation") {
		t.Error("the running study was disturbed")
	}
	b.ok(h.stdin.Close())
	b.ok(h.cmd.Wait())
}

// TestKernelLeftover is about a study that is killed without a guard.
func TestKernelLeftover(t *testing.T) {
	b := newBench(t)
	was := b.look("v0")

	h := b.hold(false, "sg=off", "net.ipv4.tcp_sack=0")
	b.kill(h, "KILL")
	s := b.claim("v0")
	if s.Leftover == nil || s.Leftover.Outcome != knob.Restored || s.Leftover.PID != h.cmd.Process.Pid {
		t.Errorf("Leftover = %+v", s.Leftover)
	}
	b.same("v0", was)
	b.in(s.Restore)

	h = b.hold(false, "sg=off", "mtu=1400")
	b.kill(h, "KILL")
	b.in(func() error {
		b.ok(b.rt.SetUp("v0", false))
		b.ok(exec.Command("ip", "link", "set", "v0", "name", "renamed").Run())
		results, err := knob.Restore(b.dir)
		if len(results) != 1 || results[0].Outcome != knob.Restored || results[0].Device != "v0" {
			t.Errorf("Restore: %v, %v", results, err)
		}
		results, err = knob.Restore(b.dir)
		if len(results) != 0 {
			t.Errorf("Restore again: %v, %v", results, err)
		}
		return errors.Join(err, exec.Command("ip", "link", "set", "renamed", "name", "v0").Run())
	})
	b.same("v0", was)
	if results, err := knob.Restore(filepath.Join(b.dir, "none")); len(results) != 0 || err != nil {
		t.Errorf("no directory: %v, %v", results, err)
	}
}

// TestKernelStale alters what a killed study left.
func TestKernelStale(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		name  string
		alter func(map[string]any)
		want  knob.Outcome
		gone  bool
	}{
		{"boot", func(m map[string]any) { m["boot"] = "another" }, knob.Stale, true},
		{"gone", func(m map[string]any) { m["index"] = 4242 }, knob.Gone, true},
		{"reused", func(m map[string]any) { m["device"], m["mac"] = "eth9", "02:00:00:00:00:09" }, knob.Gone, true},
		{"elsewhere", func(m map[string]any) { m["netns"] = 1 }, knob.Elsewhere, false},
		{"schema", func(m map[string]any) { m["schema"] = 99 }, knob.Failed, false},
	} {
		b.kill(b.hold(false, "tso=off"), "KILL")
		files, _ := filepath.Glob(filepath.Join(b.dir, "*.json"))
		data, err := os.ReadFile(files[0])
		b.ok(err)
		var m map[string]any
		b.ok(json.Unmarshal(data, &m))
		if m["pid"] == 0.0 || m["wanted"].(map[string]any)["tx-tcp-segmentation"] != true { //nolint:errcheck // a panic fails the test
			t.Errorf("state file: %s", data)
		}
		altered := maps.Clone(m)
		tt.alter(altered)
		data, err = json.Marshal(altered)
		b.ok(err)
		b.ok(os.WriteFile(files[0], data, 0o600))
		b.in(func() error {
			results, err := knob.Restore(b.dir)
			if len(results) != 1 || results[0].Outcome != tt.want || (err != nil) != (tt.want == knob.Failed) {
				t.Errorf("%s: %v, %v; want %s", tt.name, results, err, tt.want)
			}
			return nil
		})
		if _, err := os.Stat(files[0]); errors.Is(err, os.ErrNotExist) != tt.gone {
			t.Errorf("%s: the state file: %v", tt.name, err)
		}
		if b.active("tx-tcp-segmentation") {
			t.Errorf("%s: something was put back on trust", tt.name)
		}
		data, err = json.Marshal(m)
		b.ok(err)
		b.ok(os.WriteFile(files[0], data, 0o600))
		b.in(func() error { _, err := knob.Restore(b.dir); return err })
	}
	// What is no state at all is left alone, and said.
	b.ok(os.WriteFile(filepath.Join(b.dir, "x.json"), []byte("{"), 0o600))
	b.in(func() error {
		if results, err := knob.Restore(b.dir); len(results) != 1 || err == nil || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("a broken file: %v, %v", results, err)
		}
		return nil
	})
}

// TestKernelVanish deletes the device under a session.
func TestKernelVanish(t *testing.T) {
	b := newBench(t)
	s := b.claim("v0")
	b.apply(s, "tso=off", "net.ipv4.tcp_sack=0")
	b.ok(b.rt.Delete("v0"))
	b.in(func() error {
		if _, err := s.Apply([]knob.Setting{set(t, "tso=off")}); !errors.Is(err, knob.ErrNoDevice) {
			t.Errorf("Apply: %v", err)
		}
		if _, err := s.Current(set(t, "tso=off").Factor); !errors.Is(err, knob.ErrNoDevice) {
			t.Errorf("Current: %v", err)
		}
		if err := s.Restore(); !errors.Is(err, knob.ErrNoDevice) {
			t.Errorf("Restore: %v", err)
		}
		return nil
	})
	if got := b.look("t0").Sack; got != "1" {
		t.Errorf("tcp_sack = %s: not put back for want of a device", got)
	}
	if left, _ := os.ReadDir(b.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestKernelRandom applies 500 random arms; the device ends exactly as it was.
func TestKernelRandom(t *testing.T) {
	need.Long(t)
	const seed = 20261130
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	pool := []string{
		"tso=on", "tso=off", "sg=on", "sg=off", "gso=on", "gso=off", "gro=on", "gro=off", "lro=on", "tx=on", "tx=off", "rx=on", "rx=off",
		"sg+tso=on", "sg+tso=off", "uso=on", "uso=off", "txvlan=off", "rxvlan=off", "fraglist=on", "gro-udp-fwd=on", "tx-nocache-copy=on",
		"mtu=1400", "mtu=9000", "txqueuelen=7", "gso_max_size=30000", "gso_max_segs=9", "gro_max_size=20000",
		"gso_ipv4_max_size=25000", "gro_ipv4_max_size=15000", "net.ipv4.tcp_sack=0",
	}
	b := newBench(t)
	// An origin that is nobody's default.
	b.in(func() error {
		_, err := b.et.Set("v0", map[string]bool{"tx-tcp-ecn-segmentation": false, "tx-checksum-sctp": false, "tx-tcp-mangleid-segmentation": false, "rx-gro": true})
		return errors.Join(err, b.rt.Set("v0", "gso_ipv4_max_size", 40000), b.rt.Set("v0", "mtu", 2000))
	})
	was := b.look("v0")
	for round := range 5 {
		s := b.claim("v0")
		reports := map[string]knob.Report{}
		for range 100 {
			var arm []string
			for _, i := range rng.Perm(len(pool))[:rng.IntN(5)] {
				name, _, _ := strings.Cut(pool[i], "=")
				if !slices.ContainsFunc(arm, func(a string) bool { return strings.HasPrefix(a, name+"=") }) {
					arm = append(arm, pool[i])
				}
			}
			r := b.apply(s, arm...)
			// The same arm gives the same device, whatever came before.
			key := strings.Join(arm, " ")
			if first, ok := reports[key]; ok && !cmp.Equal(first, r) {
				t.Fatalf("%s: %s", key, cmp.Diff(first, r))
			}
			reports[key] = r
			for _, name := range pool {
				if rng.IntN(40) == 0 {
					b.in(func() error { _, err := s.Current(set(b, name).Factor); return err })
				}
			}
		}
		b.in(s.Restore)
		b.same("v0", was)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}
