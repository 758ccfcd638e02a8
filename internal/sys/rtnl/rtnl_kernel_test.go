package rtnl_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

func open(t *testing.T, ns *netnstest.NS) (h *rtnl.Handle) {
	t.Helper()
	need.Root(t)
	if err := ns.Do(func() (err error) { h, err = rtnl.Open(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, h.Close()) })
	return h
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ipJSON asks ip(8), the oracle, in the namespace.
func ipJSON(t *testing.T, ns *netnstest.NS, args ...string) (out []map[string]any) {
	t.Helper()
	need.Tool(t, "ip")
	check(t, ns.Do(func() error {
		text, err := exec.Command("ip", append([]string{"-d", "-j"}, args...)...).Output()
		return errors.Join(err, json.Unmarshal(text, &out))
	}))
	return out
}

// TestKernelVethIntoProcess puts the peer into the namespace of a process, as
// a lab does, and talks about both ends.
func TestKernelVethIntoProcess(t *testing.T) {
	here, there := netnstest.New(t), netnstest.New(t)
	h, far := open(t, here), open(t, there)
	cat := exec.Command("cat") // ends with its stdin
	stdin, err := cat.StdinPipe()
	check(t, err)
	check(t, there.Do(cat.Start))
	t.Cleanup(func() { check(t, errors.Join(stdin.Close(), cat.Wait())) })

	check(t, h.AddVeth("v0", "v1", cat.Process.Pid))
	for _, end := range []struct {
		h         *rtnl.Handle
		dev       string
		addr, ip6 string
	}{{h, "v0", "192.0.2.1/24", "2001:db8::1/64"}, {far, "v1", "192.0.2.2/24", "2001:db8::2/64"}} {
		check(t, end.h.AddAddress(end.dev, netip.MustParsePrefix(end.addr)))
		check(t, end.h.AddAddress(end.dev, netip.MustParsePrefix(end.ip6)))
		if l, err := end.h.Link(end.dev); err != nil || l.Up || l.Carrier != rtnl.CarrierUnknown {
			t.Errorf("%s before up: %+v, %v", end.dev, l, err)
		}
		check(t, end.h.SetUp(end.dev, true))
	}
	l, err := h.Link("v0")
	check(t, err)
	if l.Kind != "veth" || !l.Up || l.Carrier != rtnl.CarrierOn || l.Oper != "up" || !l.PeerNS || l.MTU() != 1500 || len(l.MAC) != 17 {
		t.Errorf("v0 = %+v", l)
	}
	for to, want := range map[string]rtnl.Route{
		"192.0.2.2":   {Device: "v0", Source: netip.MustParseAddr("192.0.2.1")},
		"2001:db8::2": {Device: "v0", Source: netip.MustParseAddr("2001:db8::1")},
	} {
		if got, err := h.Route(netip.MustParseAddr(to)); got != want || err != nil {
			t.Errorf("Route(%s) = %+v, %v, want %+v", to, got, err, want)
		}
	}
	if _, err := h.Route(netip.MustParseAddr("198.51.100.1")); !errors.Is(err, rtnl.ErrNoRoute) {
		t.Errorf("no route: %v", err)
	}
	addrs, err := h.Addresses("v0")
	check(t, err)
	if !slices.Contains(addrs, netip.MustParsePrefix("192.0.2.1/24")) || !slices.Contains(addrs, netip.MustParsePrefix("2001:db8::1/64")) {
		t.Errorf("Addresses(v0) = %v", addrs)
	}
	check(t, here.Do(func() error {
		out, err := exec.Command("ip", "-6", "-o", "addr", "show", "dev", "v0").Output()
		if text := string(out); !strings.Contains(text, "nodad") || strings.Contains(text, "2001:db8::1/64 scope global tentative") {
			t.Errorf("duplicate address detection is on: %s", text)
		}
		return err
	}))
	check(t, h.SetUp("v0", false))
	if l, err := far.Link("v1"); err != nil || l.Carrier != rtnl.CarrierOff {
		t.Errorf("v1 with its peer down: %+v, %v", l, err)
	}
	check(t, h.Delete("v0"))
	if _, err := far.Link("v1"); !errors.Is(err, rtnl.ErrNoDevice) {
		t.Errorf("v1 after its peer went: %v", err)
	}
}

func TestKernelValues(t *testing.T) {
	ns := netnstest.New(t)
	h := open(t, ns)
	check(t, h.AddVeth("v0", "v1", 0))
	want := map[string]int{
		"mtu": 9000, "txqueuelen": 0, "gso_max_size": 32000, "gso_max_segs": 20, "gro_max_size": 40000,
		"gso_ipv4_max_size": 31000, "gro_ipv4_max_size": 39000,
	}
	for _, name := range rtnl.ValueNames() {
		check(t, h.Set("v0", name, want[name]))
	}
	l, err := h.Link("v0")
	check(t, err)
	if diff := cmp.Diff(want, l.Values); diff != "" {
		t.Errorf("values differ from those set:\n%s", diff)
	}
	oracle := ipJSON(t, ns, "link", "show", "dev", "v0")[0]
	for name, n := range want {
		if name == "txqueuelen" {
			name = "txqlen"
		}
		if got, ok := oracle[name]; ok && got != float64(n) { // an old ip(8) lacks some
			t.Errorf("ip says %s %v, want %d", name, got, n)
		}
	}
	for _, bad := range []struct {
		name string
		n    int
		is   error
	}{{"mtu", -1, unix.ERANGE}, {"mtu", 1 << 33, unix.ERANGE}, {"mtu", 1 << 20, unix.EINVAL}, {"speed", 1, rtnl.ErrUnsupported}} {
		if err := h.Set("v0", bad.name, bad.n); !errors.Is(err, bad.is) {
			t.Errorf("Set(%s, %d): %v, want %v", bad.name, bad.n, err, bad.is)
		}
	}
}

func TestKernelLinks(t *testing.T) {
	ns := netnstest.New(t)
	h := open(t, ns)
	check(t, h.AddVeth("v0", "v1", 0))
	need.Tool(t, "ip")
	check(t, ns.Do(func() error {
		return exec.Command("ip", "link", "add", "x0", "type", "vxlan", "id", "5", "dev", "v0", "dstport", "4789").Run()
	}))
	links, err := h.Links()
	check(t, err)
	var got []string
	for _, l := range links {
		got = append(got, l.Name+" "+l.Kind)
		byIndex, err := h.LinkByIndex(l.Index)
		if diff := cmp.Diff(l, byIndex, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || err != nil {
			t.Errorf("LinkByIndex(%d) differs: %v\n%s", l.Index, err, diff)
		}
	}
	if want := []string{"lo device", "v1 veth", "v0 veth", "x0 vxlan"}; !slices.Equal(got, want) {
		t.Errorf("Links = %v, want %v", got, want)
	}
	if v0, v1 := links[2], links[1]; v0.Parent != v1.Index || v1.Parent != v0.Index || v0.PeerNS {
		t.Errorf("%+v and %+v are not a pair", v0, v1)
	}
}

func TestKernelBadInput(t *testing.T) {
	h := open(t, netnstest.New(t))
	for _, dev := range []string{"nope", "", strings.Repeat("x", 16), strings.Repeat("x", 300)} {
		_, err1 := h.Link(dev)
		_, err2 := h.Addresses(dev)
		for _, err := range []error{err1, err2, h.Set(dev, "mtu", 1500), h.SetUp(dev, true), h.Delete(dev), h.AddAddress(dev, netip.MustParsePrefix("192.0.2.1/24"))} {
			if op, ok := errors.AsType[*rtnl.Error](err); !ok || !errors.Is(err, rtnl.ErrNoDevice) || op.Device != dev {
				t.Errorf("device %q: %v", dev, err)
			}
		}
	}
	if _, err := h.LinkByIndex(12345); !errors.Is(err, rtnl.ErrNoDevice) {
		t.Errorf("index: %v", err)
	}
	check(t, h.AddVeth("v0", "v1", 0))
	if err := h.AddVeth("v0", "v2", 0); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := h.AddVeth("v4", "v5", 1<<22+1); !errors.Is(err, unix.ESRCH) {
		t.Errorf("a process that is gone: %v", err)
	}
}

// TestKernelTunnel reads where VXLAN devices send to.
func TestKernelTunnel(t *testing.T) {
	ns := netnstest.New(t)
	h := open(t, ns)
	check(t, h.AddVeth("v0", "v1", 0))
	need.Tool(t, "ip")
	for name, args := range map[string]string{"x0": "dev v0 remote 192.0.2.1", "x1": "group 239.1.1.1 dev v0", "x2": "remote 2001:db8::1", "x3": "local 192.0.2.9"} {
		id := string(name[1])
		check(t, ns.Do(func() error {
			return exec.Command("ip", strings.Fields("link add "+name+" type vxlan id 4"+id+" dstport 478"+id+" "+args)...).Run()
		}))
	}
	v0, err := h.Link("v0")
	check(t, err)
	for name, want := range map[string]*rtnl.Tunnel{
		"v0": nil,
		"x0": {Device: v0.Index, Remote: netip.MustParseAddr("192.0.2.1")},
		"x1": {Device: v0.Index, Remote: netip.MustParseAddr("239.1.1.1"), Group: true},
		"x2": {Remote: netip.MustParseAddr("2001:db8::1")},
		"x3": {},
	} {
		l, err := h.Link(name)
		check(t, err)
		if (l.Tunnel == nil) != (want == nil) || want != nil && *l.Tunnel != *want {
			t.Errorf("%s: %+v, want %+v", name, l.Tunnel, want)
		}
	}
}
