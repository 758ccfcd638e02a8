package ethtool_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

// device makes a namespace with a veth pair v0, v1 and a TAP t0.
func device(t *testing.T) *netnstest.NS {
	t.Helper()
	need.Root(t)
	need.TUN(t)
	ns := netnstest.New(t)
	err := ns.Do(func() error {
		tap := &netlink.Tuntap{LinkAttrs: netlink.NewLinkAttrs(), Mode: netlink.TUNTAP_MODE_TAP}
		tap.Name = "t0"
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "v1"}
		veth.Name = "v0"
		return errors.Join(netlink.LinkAdd(veth), netlink.LinkAdd(tap))
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func open(t *testing.T, ns *netnstest.NS, o ethtool.Options) (h *ethtool.Handle) {
	t.Helper()
	if err := ns.Do(func() (err error) { h, err = o.Open(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// run runs a program in the namespace.
func run(t *testing.T, ns *netnstest.NS, name string, args ...string) (out []byte) {
	t.Helper()
	need.Tool(t, name)
	if err := ns.Do(func() (err error) { out, err = exec.Command(name, args...).CombinedOutput(); return err }); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// legacy are the names under which ethtool(8) prints some features.
var legacy = map[string]string{
	"rx-checksum": "rx-checksumming", "tx-generic-segmentation": "generic-segmentation-offload",
	"rx-gro": "generic-receive-offload", "rx-lro": "large-receive-offload", "rx-vlan-hw-parse": "rx-vlan-offload",
	"tx-vlan-hw-insert": "tx-vlan-offload", "rx-ntuple-filter": "ntuple-filters", "rx-hashing": "receive-hashing",
}

// TestKernelFeaturesAsEthtool compares with ethtool(8), by either interface.
func TestKernelFeaturesAsEthtool(t *testing.T) {
	ns := device(t)
	run(t, ns, "ethtool", "-K", "v0", "sg", "off")
	for _, o := range []ethtool.Options{{}, {Ioctl: true}} {
		h := open(t, ns, o)
		for _, dev := range []string{"v0", "t0", "lo"} {
			f, err := h.Features(dev)
			if err != nil {
				t.Fatal(err)
			}
			var out []map[string]any
			if err := json.Unmarshal(run(t, ns, "ethtool", "--json", "-k", dev), &out); err != nil {
				t.Fatal(err)
			}
			if len(f.Names) != len(f.Bits) || len(f.Names) < 40 {
				t.Errorf("%s %s: %d names, %d bits", h.Interface(), dev, len(f.Names), len(f.Bits))
			}
			for _, name := range f.Names {
				b, shown := f.Bits[name], name
				if long, ok := legacy[name]; ok {
					shown = long
				}
				got := map[string]any{"active": b.Active, "fixed": b.Fixed(), "requested": b.Wanted}
				if want, ok := out[0][shown]; ok && !cmp.Equal(want, any(got)) {
					t.Errorf("%s %s %s = %v, ethtool says %v", h.Interface(), dev, name, got, want)
				} else if !ok {
					t.Logf("ethtool does not show %s", name)
				}
			}
		}
	}
}

// TestKernelInterfacesAgree sets random features by each interface in turn and
// reads them by both.
func TestKernelInterfacesAgree(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ns := device(t)
	nl, io := open(t, ns, ethtool.Options{}), open(t, ns, ethtool.Options{Ioctl: true})
	if nl.Interface() != "netlink" || io.Interface() != "ioctl" {
		t.Fatalf("interfaces %s and %s", nl.Interface(), io.Interface())
	}
	for i := range 60 {
		h := []*ethtool.Handle{nl, io}[i%2]
		start, err := h.Features("v0")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, name := range start.Names { // fixed ones too: asking is harmless
			if rng.IntN(4) == 0 {
				want[name] = rng.IntN(2) == 0
			}
		}
		after, err := h.Set("v0", want)
		if err != nil {
			t.Fatalf("%s: Set(%v): %v", h.Interface(), want, err)
		}
		for name, b := range after.Bits {
			expect := start.Bits[name].Wanted
			if on, ok := want[name]; ok && !b.Fixed() {
				expect = on
			}
			if b.Wanted != expect {
				t.Fatalf("%s: %s wanted %v, want %v", h.Interface(), name, b.Wanted, expect)
			}
		}
		for _, h := range []*ethtool.Handle{nl, io} {
			got, err := h.Features("v0")
			if diff := cmp.Diff(after, got); diff != "" || err != nil {
				t.Fatalf("%s reads otherwise: %v\n%s", h.Interface(), err, diff)
			}
		}
	}
}

// TestKernelDrag is about a change that drags others along, and back again.
func TestKernelDrag(t *testing.T) {
	ns := device(t)
	for _, o := range []ethtool.Options{{}, {Ioctl: true}} {
		h := open(t, ns, o)
		before, err := h.Features("v0")
		if err != nil {
			t.Fatal(err)
		}
		off, err := h.Set("v0", map[string]bool{"tx-scatter-gather": false})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tx-scatter-gather", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation"} {
			if !before.Bits[name].Active || off.Bits[name].Active {
				t.Errorf("%s: before %v, without scatter-gather %v", name, before.Bits[name], off.Bits[name])
			}
		}
		after, err := h.Set("v0", before.Wanted())
		if diff := cmp.Diff(before, after); diff != "" || err != nil {
			t.Errorf("the wanted set does not put v0 back: %v\n%s", err, diff)
		}
	}
}

func TestKernelCoalesce(t *testing.T) {
	ns := device(t)
	for _, o := range []ethtool.Options{{}, {Ioctl: true}} {
		h := open(t, ns, o)
		for _, want := range []uint32{16, 0} {
			if err := h.SetCoalesce("t0", map[string]uint32{"rx-frames": want}); err != nil {
				t.Fatal(err)
			}
			got, err := h.Coalesce("t0")
			if err != nil || got["rx-frames"] != want {
				t.Errorf("%s: rx-frames = %v, %v; want %d", h.Interface(), got, err, want)
			}
			if _, ok := got["rx-usecs"]; ok != o.Ioctl {
				t.Errorf("%s: a parameter that TAP lacks is reported: %v", h.Interface(), ok)
			}
		}
		if err := h.SetCoalesce("t0", map[string]uint32{"tx-usecs": 1}); !errors.Is(err, ethtool.ErrUnsupported) {
			t.Errorf("%s: tx-usecs of a TAP: %v", h.Interface(), err)
		}
		if _, err := h.Coalesce("v0"); !errors.Is(err, ethtool.ErrUnsupported) {
			t.Errorf("%s: coalescing of a veth: %v", h.Interface(), err)
		}
		if _, err := h.Rings("v0"); !errors.Is(err, ethtool.ErrUnsupported) {
			t.Errorf("%s: rings of a veth: %v", h.Interface(), err)
		}
	}
}

func TestKernelInfo(t *testing.T) {
	ns := device(t)
	h := open(t, ns, ethtool.Options{})
	for dev, want := range map[string]string{"v0": "veth", "t0": "tun"} {
		d, err := h.Driver(dev)
		if err != nil || d.Name != want {
			t.Errorf("Driver(%s) = %+v, %v; want %s", dev, d, err, want)
		}
		if out := string(run(t, ns, "ethtool", "-i", dev)); !strings.Contains(out, "\nversion: "+d.Version+"\n") ||
			!strings.Contains(out, "\nbus-info: "+d.Bus+"\n") {
			t.Errorf("%+v, ethtool says\n%s", d, out)
		}
	}
	if l, err := h.Link("v0"); err != nil || l != (ethtool.Link{SpeedMbit: 10000, Duplex: "full"}) {
		t.Errorf("Link(v0) = %+v, %v", l, err)
	}
	if l, err := h.Link("lo"); err != nil || l != (ethtool.Link{}) {
		t.Errorf("Link(lo) = %+v, %v; want unknown", l, err)
	}
	stats, err := h.Stats("v0")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(run(t, ns, "ethtool", "-S", "v0")), "\n")[1:] {
		name, _, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if _, have := stats[name]; ok && !have {
			t.Errorf("no %s in %v", name, stats)
		}
	}
	if stats["peer_ifindex"] == 0 {
		t.Errorf("peer_ifindex = 0 in %v", stats)
	}
	if _, err := h.Stats("lo"); !errors.Is(err, ethtool.ErrUnsupported) {
		t.Errorf("Stats(lo): %v", err)
	}
}

func TestKernelBadInput(t *testing.T) {
	ns := device(t)
	for _, o := range []ethtool.Options{{}, {Ioctl: true}} {
		h := open(t, ns, o)
		start, err := h.Features("v0")
		if err != nil {
			t.Fatal(err)
		}
		for _, dev := range []string{"nope", "", "a-name-that-is-far-too-long"} {
			_, err := h.Features(dev)
			_, err2 := h.Driver(dev)
			if err == nil || !errors.Is(err2, ethtool.ErrNoDevice) || len(dev) < 16 && dev != "" && !errors.Is(err, ethtool.ErrNoDevice) {
				t.Errorf("%s: device %q: %v, %v", h.Interface(), dev, err, err2)
			}
		}
		want := maps.Clone(start.Wanted())
		want["tx-scatter-gather"] = false
		want["tx-teleport"] = true
		if _, err := h.Set("v0", want); !errors.Is(err, ethtool.ErrUnsupported) || !strings.Contains(err.Error(), "tx-teleport") {
			t.Errorf("%s: unknown feature: %v", h.Interface(), err)
		}
		if got, _ := h.Features("v0"); !cmp.Equal(start, got) {
			t.Errorf("%s: a refused request changed something", h.Interface())
		}
	}
}

// TestKernelNoRight asks for a change without the right to make one.
func TestKernelNoRight(t *testing.T) {
	ns := device(t)
	h := open(t, ns, ethtool.Options{})
	_ = ns.Do(func() error { // the thread, and its lost capabilities, end here
		dropCapabilities(t)
		if _, err := h.Features("v0"); err != nil {
			t.Errorf("reading needs no right: %v", err)
		}
		if _, err := h.Set("v0", map[string]bool{"rx-gro": true}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Set without CAP_NET_ADMIN: %v", err)
		}
		return nil
	})
}

// TestKernelConcurrent uses one handle from many goroutines.
func TestKernelConcurrent(t *testing.T) {
	ns := device(t)
	h := open(t, ns, ethtool.Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := h.Set("v0", map[string]bool{"rx-gro": i%2 == 0}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkFeatures(b *testing.B) {
	h, err := ethtool.Open()
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	for b.Loop() {
		if _, err := h.Features("lo"); err != nil {
			b.Fatal(err)
		}
	}
}
