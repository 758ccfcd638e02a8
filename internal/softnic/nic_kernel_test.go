package softnic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/sys/tap"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
)

// A rig is a card between two namespaces.
type rig struct {
	t     *testing.T
	hosts [2]*netnstest.NS
	nic   *softnic.NIC
	stop  func() // ends Run and checks that it ended well
}

// addresses of the hosts, from the ranges for documentation.
var addresses = map[int][2]string{4: {"192.0.2.1/24", "192.0.2.2/24"}, 6: {"2001:db8::1/64", "2001:db8::2/64"}}

func newRig(t *testing.T, c softnic.Config, o softnic.TapOptions) *rig {
	t.Helper()
	need.Root(t)
	need.NetNS(t)
	need.TUN(t)
	r := &rig{t: t}
	var pids [2]int
	for i := range r.hosts {
		r.hosts[i] = netnstest.New(t)
		pids[i] = r.process(i)
	}
	var taps *softnic.Taps
	if err := netnstest.New(t).Do(func() (err error) {
		taps, err = softnic.OpenTaps(c, []softnic.Host{{Device: "p0", PID: pids[0]}, {Device: "p0", PID: pids[1]}}, o)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	nic, err := softnic.New(c, taps.Ports)
	if err != nil {
		t.Fatal(err)
	}
	r.nic = nic
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- nic.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, nic.Close(), taps.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	for i := range r.hosts {
		for _, args := range []string{
			"ip addr add " + addresses[4][i] + " dev p0",
			"ip addr add " + addresses[6][i] + " dev p0 nodad",
			"ip link set p0 up",
		} {
			r.run(i, strings.Fields(args)...)
		}
	}
	return r
}

// process starts one in a host, to name its namespace by.
func (r *rig) process(i int) int {
	r.t.Helper()
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.hosts[i].Do(cat.Start); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := errors.Join(in.Close(), cat.Wait()); err != nil {
			r.t.Error(err)
		}
	})
	return cat.Process.Pid
}

func (r *rig) run(i int, args ...string) string {
	r.t.Helper()
	need.Tool(r.t, args[0])
	var out []byte
	if err := r.hosts[i].Do(func() (err error) {
		out, err = exec.Command(args[0], args[1:]...).CombinedOutput()
		return err
	}); err != nil {
		r.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// transfer moves n bytes from host 0 to host 1, each compared.
func (r *rig) transfer(family int, n uint64) {
	r.t.Helper()
	r.move(family, netip.MustParsePrefix(addresses[family][1]).Addr(), n)
}

// move is transfer to an address of host 1.
func (r *rig) move(family int, to netip.Addr, n uint64) {
	r.t.Helper()
	s := load.Spec{Load: "bulk", Family: family, Streams: 2, Verify: true, Token: load.NewToken()}
	var rcv *load.Receiver
	var snd *load.Sender
	if err := r.hosts[1].Do(func() (err error) { rcv, err = load.Listen(r.t.Context(), s, to); return err }); err != nil {
		r.t.Fatal(err)
	}
	defer rcv.Stop()
	if err := r.hosts[0].Do(func() (err error) { snd, err = load.Dial(r.t.Context(), s, rcv.Addr()); return err }); err != nil {
		r.t.Fatal(err)
	}
	defer snd.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(30 * time.Second)
	for rcv.Snapshot().Bytes < n {
		select {
		case <-tick.C:
		case <-timeout:
			r.t.Fatalf("%d of %d bytes in 30 s: %v", rcv.Snapshot().Bytes, n, r.counters())
		}
	}
	if got := rcv.Snapshot(); got.Corrupt != 0 || len(got.Dead) != 0 {
		r.t.Errorf("receiver %+v", got)
	}
}

// counters returns those that are not 0.
func (r *rig) counters() map[string]uint64 {
	m := r.nic.Counters()
	maps.DeleteFunc(m, func(_ string, n uint64) bool { return n == 0 })
	return m
}

// wireCheck looks at every frame on the wire.
type wireCheck struct {
	mu                sync.Mutex
	frames, data, bad int
	first             string
	longest           int
}

func (w *wireCheck) tap(f softnic.Tapped) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames++
	l, err := packet.Parse(f.Data, packet.StartEthernet)
	if err != nil {
		w.complain("%v", err)
		return
	}
	w.longest = max(w.longest, l.Length)
	w.stack(f.Data, &l.Stack)
	if l.Tunnel != packet.NoTunnel {
		w.stack(f.Data, &l.Inner)
	}
	st := l.Innermost()
	if st.Proto == packet.ProtoTCP && st.Payload > 0 && st.Network+st.Length > st.Payload {
		w.data++
	}
}

// stack checks the checksums of one run of headers.
func (w *wireCheck) stack(b []byte, st *packet.Stack) {
	if st.Version == 4 && !packet.IPv4(b[st.Network:]).ChecksumValid() {
		w.complain("IPv4 checksum")
	}
	if st.Transport == 0 || st.Proto != packet.ProtoTCP && st.Proto != packet.ProtoUDP {
		return
	}
	seg := b[st.Transport : st.Network+st.Length]
	if st.Proto == packet.ProtoUDP && packet.UDP(seg).Checksum() == 0 {
		return
	}
	if pkttest.Sum(seg, uint32(pkttest.Pseudo(b[st.Network:], st.Proto, len(seg)))) != 0xffff {
		w.complain("checksum of protocol %d", st.Proto)
	}
}

func (w *wireCheck) complain(format string, a ...any) {
	if w.bad++; w.bad == 1 {
		w.first = fmt.Sprintf("frame %d: ", w.frames) + fmt.Sprintf(format, a...)
	}
}

func generic(merge bool) softnic.Model {
	m := healthy()
	if merge {
		m.RX.Merge = func(int) gro.Options { return gro.Options{Policy: gro.Hardware} }
	}
	return m
}

// inline is for tests, which do not run in a process of the card's own: they
// have no /sys of its namespace.
var inline = softnic.TapOptions{NAPI: softnic.NAPIInline}

// TestKernelTransfer moves real TCP over cards and wires of several kinds: all
// payload arrives, the frames on the wire are right, nothing is lost without a
// counter.
func TestKernelTransfer(t *testing.T) {
	through := softnic.Wire{PassThrough: true}
	for _, tt := range []struct {
		name   string
		model  softnic.Model
		wire   softnic.Wire
		o      softnic.TapOptions
		family int
		tapped bool
	}{
		{name: "cut-ipv4", model: generic(false), family: 4, tapped: true},
		{name: "cut-ipv6", model: generic(false), family: 6, tapped: true},
		{name: "merged-ipv4", model: generic(true), family: 4, tapped: true},
		{name: "merged-ipv6", model: generic(true), family: 6, tapped: true},
		{name: "no-napi", model: generic(true), family: 4, o: softnic.TapOptions{NAPI: softnic.NAPIOff}},
		{name: "queues", model: generic(true), family: 4, o: softnic.TapOptions{NAPI: softnic.NAPIInline, Queues: 2}, tapped: true},
		{name: "through", model: generic(true), wire: through, family: 4},
		{name: "lossy", model: generic(true), wire: softnic.Wire{
			Rate: 1e9, Delay: 100 * time.Microsecond, Loss: 0.002, Dup: 0.01, Reorder: 0.01, Corrupt: 0.002,
		}, family: 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.o == (softnic.TapOptions{}) {
				tt.o = inline
			}
			c := cfg(tt.model, tt.wire)
			var w wireCheck
			if tt.tapped {
				c.Tap = w.tap
			}
			r := newRig(t, c, tt.o)
			r.transfer(tt.family, 20<<20)
			r.stop()
			if err := r.nic.Balance(); err != nil {
				t.Errorf("%v: %v", err, r.counters())
			}
			sent, got := r.nic.Counts(0), r.nic.Counts(1)
			if sent[softnic.TXSuper] == 0 || sent[softnic.TXGarbage] != 0 || got[softnic.RXRefused] != 0 {
				t.Errorf("counters %v", r.counters())
			}
			if merged := got[softnic.RXSuper] > 0; merged != (tt.model.RX.Merge != nil) {
				t.Errorf("%d aggregates", got[softnic.RXSuper])
			}
			if tt.tapped && (w.bad > 0 || w.longest > 1500 || w.data < 20<<20/1448) {
				t.Errorf("%d of %d frames are bad, first %s; longest %d; %d with data", w.bad, w.frames, w.first, w.longest, w.data)
			}
		})
	}
}

// TestKernelVXLAN moves TCP inside a tunnel: the kernel hands down one
// super-packet with the headers of both, the card cuts it and merges it again.
func TestKernelVXLAN(t *testing.T) {
	for _, tt := range []struct {
		name  string
		csum  string
		merge bool
	}{
		{"cut", "noudpcsum", false},
		{"cut-outer-checksum", "udpcsum", false},
		{"merged", "noudpcsum", true},
		{"merged-outer-checksum", "udpcsum", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := healthy()
			if tt.merge {
				m.RX.Merge = func(int) gro.Options { return gro.Options{Policy: gro.Hardware, VXLANPort: packet.PortVXLAN} }
			}
			c := cfg(m, softnic.Wire{})
			var w wireCheck
			c.Tap = w.tap
			r := newRig(t, c, inline)
			for i := range r.hosts {
				r.run(i, "ip", "link", "add", "x0", "type", "vxlan", "id", "42", "dev", "p0", "dstport", "4789",
					"local", fmt.Sprint("192.0.2.", i+1), "remote", fmt.Sprint("192.0.2.", 2-i), tt.csum)
				r.run(i, "ip", "addr", "add", fmt.Sprintf("198.51.100.%d/24", i+1), "dev", "x0")
				r.run(i, "ip", "link", "set", "x0", "up")
			}
			r.move(4, netip.MustParseAddr("198.51.100.2"), 8<<20)
			r.stop()
			sent, got := r.nic.Counts(0), r.nic.Counts(1)
			if err := r.nic.Balance(); err != nil || sent[softnic.TXSuper] == 0 || got[softnic.RXSuper] > 0 != tt.merge || got[softnic.RXRefused] > 0 || got[softnic.RXBad] > 0 {
				t.Errorf("%v: %v", err, r.counters())
			}
			if w.bad > 0 || w.longest > 1500 || w.data < 8<<20/1448 {
				t.Errorf("%d of %d frames are bad, first %s; longest %d; %d with data", w.bad, w.frames, w.first, w.longest, w.data)
			}
		})
	}
}

// TestKernelTSO turns TSO off with ethtool: the kernel hands down single
// segments, and super-packets again when it is on.
func TestKernelTSO(t *testing.T) {
	r := newRig(t, cfg(generic(true), softnic.Wire{}), inline)
	// supers returns how many super-packets came per 100 packets with data.
	supers := func() uint64 {
		before := r.nic.Counts(0)
		r.transfer(4, 4<<20)
		after := r.nic.Counts(0)
		return 100 * (after[softnic.TXSuper] - before[softnic.TXSuper]) / (after[softnic.TXPackets] - before[softnic.TXPackets])
	}
	on := supers()
	r.run(0, "ethtool", "-K", "p0", "tso", "off")
	off := supers()
	r.run(0, "ethtool", "-K", "p0", "tso", "on")
	again := supers()
	if on < 20 || off != 0 || again < 20 {
		t.Errorf("super-packets per 100: %d with TSO, %d without, %d with", on, off, again)
	}
	r.run(0, "ethtool", "-K", "p0", "tx", "off")
	before := r.nic.Counts(1)[softnic.RXBad]
	r.transfer(4, 1<<20)
	if n := r.nic.Counts(1)[softnic.RXBad] - before; n != 0 {
		t.Errorf("%d bad checksums when the host computes them", n)
	}
}

// TestKernelModel shows that what a model offers and bounds is what the host's
// device has.
func TestKernelModel(t *testing.T) {
	m := healthy()
	m.Offloads = softnic.Checksum | softnic.TSO4
	m.TX.MaxSegs, m.TX.MaxSize = 10, 20_000
	c := cfg(m, softnic.Wire{})
	c.Cards[0].MTU = 1400
	longest := 0
	c.Tap = func(f softnic.Tapped) {
		if f.Port == 0 {
			longest = max(longest, len(f.Data))
		}
	}
	r := newRig(t, c, inline)
	shown := r.run(0, "ethtool", "-k", "p0")
	for _, want := range []string{"tx-checksum-ip-generic: on", "tx-tcp-segmentation: on", "tx-tcp6-segmentation: off", "tx-udp-segmentation: off", "tx-scatter-gather: off"} {
		// Without SG the kernel takes TSO away (netdev_fix_features).
		if want == "tx-tcp-segmentation: on" {
			want = "tx-tcp-segmentation: off [requested on]"
		}
		if !strings.Contains(shown, want) {
			t.Errorf("ethtool does not say %q:\n%s", want, shown)
		}
	}
	if l := r.run(0, "ip", "-d", "link", "show", "p0"); !strings.Contains(l, "gso_max_segs 10 ") || !strings.Contains(l, "gso_max_size 20000") || !strings.Contains(l, "mtu 1400") {
		t.Errorf("ip says\n%s", l)
	}
	r.transfer(4, 1<<20)
	r.stop()
	if longest != 1414 {
		t.Errorf("the longest frame has %d bytes", longest)
	}
}

// TestKernelTapFile lets tcpdump read what real TCP left in a file.
func TestKernelTapFile(t *testing.T) {
	need.Tool(t, "tcpdump")
	name := filepath.Join(t.TempDir(), "wire.pcapng")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	c := cfg(generic(true), softnic.Wire{})
	base := time.Now()
	c.Now = func() time.Duration { return time.Since(base) }
	w, err := softnic.NewCapture(file, []string{"p0", "p1"}, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	c.Tap = w.Tap
	r := newRig(t, c, inline)
	r.transfer(4, 1<<20)
	r.stop()
	frames, err := w.Close()
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "tcpdump", "-n", "-v", "-r", name).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("incorrect")) {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	if total := r.nic.Counts(0)[softnic.WireFrames] + r.nic.Counts(1)[softnic.WireFrames]; frames != total {
		t.Errorf("%d frames in the file, %d on the wire", frames, total)
	}
}

// TestKernelHostEnds removes a host's device under the card.
func TestKernelHostEnds(t *testing.T) {
	need.Root(t)
	need.TUN(t)
	a, b := netnstest.New(t), netnstest.New(t)
	c := cfg(healthy(), softnic.Wire{})
	var taps [2]*softnic.Taps
	var ports []softnic.Port
	for i, ns := range []*netnstest.NS{a, b} {
		if err := ns.Do(func() (err error) {
			taps[i], err = softnic.OpenTaps(c, []softnic.Host{{Device: fmt.Sprint("p", i)}}, inline)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		ports = append(ports, taps[i].Ports...)
	}
	n, err := softnic.New(c, ports)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- n.Run(context.Background()) }()
	r := &rig{t: t, hosts: [2]*netnstest.NS{a, b}}
	r.run(1, "ip", "link", "del", "p1")
	select {
	case err := <-done:
		if pe, ok := errors.AsType[*softnic.PortError](err); !ok || pe.Port != "p1" || !errors.Is(err, softnic.ErrGone) {
			t.Errorf("Run: %v, want port p1 gone", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Run does not notice")
	}
	for _, d := range taps {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestKernelOpenTapsFails cleans up when the second device cannot be made.
func TestKernelOpenTapsFails(t *testing.T) {
	need.Root(t)
	need.TUN(t)
	ns := netnstest.New(t)
	c := cfg(healthy(), softnic.Wire{})
	r := &rig{t: t, hosts: [2]*netnstest.NS{ns}}
	for _, hosts := range [][]softnic.Host{
		{{Device: "p0"}, {Device: "p0"}},
		{{Device: "p0"}, {Device: "p1", PID: 1<<22 + 1}},
	} {
		err := ns.Do(func() error {
			_, err := softnic.OpenTaps(c, hosts, inline)
			return err
		})
		if err == nil {
			t.Fatalf("%+v: no error", hosts)
		}
		if _, ok := errors.AsType[*tap.OpenError](err); ok != (hosts[1].PID == 0) {
			t.Errorf("%+v: %v", hosts, err)
		}
		if links := r.run(0, "ip", "-o", "link"); strings.Count(links, "\n") != 1 {
			t.Errorf("left behind:\n%s", links)
		}
	}
	if slices.Contains(strings.Fields(r.run(0, "ip", "-o", "link")), "p0:") {
		t.Error("p0 is still there")
	}
}
