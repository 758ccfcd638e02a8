package load_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

// ip runs the program ip on a thread in the namespace.
func ip(ctx context.Context, ns *netnstest.NS, args string) error {
	return ns.Do(func() error {
		out, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
		return nil
	})
}

// TestKernelTwoNamespaces moves data over a veth pair, in both families and
// directions, and breaks the link.
func TestKernelTwoNamespaces(t *testing.T) {
	need.Root(t)
	need.NetNS(t)
	need.Tool(t, "ip")
	a, b := netnstest.New(t), netnstest.New(t)
	join(t, a, b)
	for _, tt := range []struct {
		name     string
		listener *netnstest.NS
		dialer   *netnstest.NS
		addr     string
		family   int
	}{
		{"a-to-b-ipv4", b, a, "192.0.2.2", 4},
		{"b-to-a-ipv4", a, b, "192.0.2.1", 4},
		{"a-to-b-ipv6", b, a, "2001:db8::2", 6},
		{"b-to-a-ipv6", a, b, "2001:db8::1", 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeaks(t)
			s := spec(4)
			s.Family = tt.family
			var r *load.Receiver
			var snd *load.Sender
			if err := tt.listener.Do(func() (err error) {
				r, err = load.Listen(t.Context(), s, netip.MustParseAddr(tt.addr))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Stop() })
			if err := tt.dialer.Do(func() (err error) {
				snd, err = load.Dial(t.Context(), s, r.Addr())
				return err
			}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { snd.Stop() })
			until(t, "each stream moves 1 MB", func() bool { return slices.Min(r.Snapshot().PerStream) > 1_000_000 })
			sent, got := snd.Snapshot(), r.Snapshot()
			mss := map[int]uint32{4: 1500 - 20, 6: 1500 - 40}[tt.family] - 20 - 12 // TCP header and timestamps
			if got.Corrupt != 0 || len(got.Dead)+len(sent.Dead) != 0 || sent.Info.SndMSS != mss || sent.Info.PMTU != 1500 {
				t.Errorf("receiver %+v, sender %+v, want an MSS of %d", got, sent, mss)
			}
		})
	}
}

// join makes a veth pair between two namespaces. The program ip names the far
// one by a process in it.
func join(t *testing.T, a, b *netnstest.NS) {
	t.Helper()
	pid := make(chan int)
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- b.Do(func() error {
			cmd := exec.CommandContext(t.Context(), "cat") // a process in b, for its pid
			in, err := cmd.StdinPipe()
			if err != nil {
				return err
			}
			if err := cmd.Start(); err != nil {
				return err
			}
			pid <- cmd.Process.Pid
			<-stop
			_ = in.Close() // ends cat
			return cmd.Wait()
		})
	}()
	var p int
	select {
	case p = <-pid:
	case err := <-done:
		t.Fatal(err)
	}
	err := ip(t.Context(), a, fmt.Sprintf("link add v0 type veth peer name v0 netns %d", p))
	close(stop)
	if e := <-done; e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, ns := range []*netnstest.NS{a, b} {
		for _, args := range []string{
			fmt.Sprintf("addr add 192.0.2.%d/24 dev v0", i+1),
			fmt.Sprintf("addr add 2001:db8::%d/64 dev v0 nodad", i+1),
			"link set v0 up",
		} {
			if err := ip(t.Context(), ns, args); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKernelFarEndVanishes takes the link away under a load: nothing is sent
// any more, no end blocks, and the window is void.
func TestKernelFarEndVanishes(t *testing.T) {
	need.Root(t)
	need.NetNS(t)
	need.Tool(t, "ip")
	a, b := netnstest.New(t), netnstest.New(t)
	join(t, a, b)
	noLeaks(t)
	s := spec(2)
	var r *load.Receiver
	var snd *load.Sender
	if err := b.Do(func() (err error) {
		r, err = load.Listen(t.Context(), s, netip.MustParseAddr("192.0.2.2"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if err := a.Do(func() (err error) {
		snd, err = load.Dial(t.Context(), s, r.Addr())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer snd.Stop()
	until(t, "data flows", func() bool { return slices.Min(r.Snapshot().PerStream) > 100_000 })
	if err := ip(t.Context(), b, "link set v0 down"); err != nil {
		t.Fatal(err)
	}
	from := r.Snapshot()
	until(t, "the receiver runs dry", func() bool {
		now := r.Snapshot()
		if now.Bytes != from.Bytes {
			from = now
		}
		return now.Elapsed-from.Elapsed > 200*time.Millisecond
	})
	if w := load.Delta(from, r.Snapshot()); w.Void != "no data moved" || w.Idle != 2 {
		t.Errorf("window = %+v, want it void and both streams idle", w)
	}
	s.SetupTimeout = 50 * time.Millisecond
	if err := a.Do(func() error {
		_, err := load.Dial(t.Context(), s, r.Addr())
		return err
	}); !errors.Is(err, load.ErrTimeout) {
		t.Errorf("Dial over a dead link = %v, want ErrTimeout", err)
	}
}
