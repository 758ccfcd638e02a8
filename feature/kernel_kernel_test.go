package feature_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/tap"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

// machine is a namespace with devices, and the same devices in the algebra.
type machine struct {
	t     *testing.T
	ns    *netnstest.NS
	tool  *ethtool.Handle
	model feature.Stack
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	need.Root(t)
	need.NetNS(t)
	need.Tool(t, "ip")
	m := &machine{t: t, ns: netnstest.New(t)}
	if err := m.ns.Do(func() (err error) { m.tool, err = ethtool.Open(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.tool.Close() })
	return m
}

// run runs a program in the namespace and reports whether it worked.
func (m *machine) run(name string, args ...string) (out string, ok bool) {
	m.t.Helper()
	err := m.ns.Do(func() error {
		b, err := exec.Command(name, args...).CombinedOutput()
		out = string(b)
		return err
	})
	return out, err == nil
}

// add makes a device in the kernel and in the model. It reports false if the
// kernel does not have the kind.
func (m *machine) add(kind, name, command string, below ...string) bool {
	m.t.Helper()
	need.Tool(m.t, "ip")
	if out, ok := m.run("ip", strings.Fields(command)...); !ok {
		if strings.Contains(out, "Unknown device type") {
			m.t.Logf("this kernel has no %s", kind)
			return false
		}
		m.t.Fatalf("ip %s: %s", command, out)
	}
	m.put(kind, name, below...)
	return true
}

// put adds a device to the model.
func (m *machine) put(kind, name string, below ...string) {
	m.t.Helper()
	k, ok := feature.FindKind(kind)
	if !ok {
		m.t.Fatalf("no kind %s", kind)
	}
	if _, err := m.model.Add(name, k.New(), below...); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) state(name string) feature.State {
	m.t.Helper()
	f, err := m.tool.Features(name)
	if err != nil {
		m.t.Fatal(err)
	}
	return f.State()
}

// compare counts the devices whose sets differ, and tells them.
func (m *machine) compare(when string) (differences int) {
	m.t.Helper()
	for _, name := range m.model.Names() {
		d, _ := m.model.Device(name)
		got, want := d.State(), m.state(name)
		if got == want {
			continue
		}
		differences++
		for _, x := range []struct {
			set       string
			got, want feature.Set
		}{{"hw", got.HW, want.HW}, {"wanted", got.Wanted, want.Wanted}, {"active", got.Active, want.Active}, {"nochange", got.NoChange, want.NoChange}} {
			if x.got != x.want {
				m.t.Errorf("%s: %s of %s: the model has %v more, lacks %v", when, x.set, name, x.got.Diff(x.want), x.want.Diff(x.got))
			}
		}
	}
	return differences
}

// random asks devices for random features, about half of the requests for few
// of them and half for many, and compares all devices after each.
func (m *machine) random(seed uint64, n int, devices ...string) {
	m.t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	all := slices.Collect(feature.All.All())
	differences, moved := 0, 0
	for i := range n {
		name := devices[rng.IntN(len(devices))]
		var value, mask feature.Set
		sparse := 2 + rng.IntN(12)
		for _, f := range all {
			if f != feature.GSOUDP && rng.IntN(sparse) == 0 { // it has no name to ask by
				mask = mask.With(f)
				if rng.IntN(3) > 0 {
					value = value.With(f)
				}
			}
		}
		before := m.state(name)
		mask = mask.Diff(before.NoChange)
		if _, err := m.tool.Set(name, ethtool.Ask(value, mask)); err != nil {
			m.t.Fatal(err)
		}
		// The kernel is not asked for what is fixed: see ethtool.Handle.Set.
		if _, err := m.model.Request(name, value, mask.Intersect(before.HW)); err != nil {
			m.t.Fatal(err)
		}
		if m.state(name).Active != before.Active {
			moved++
		}
		differences += m.compare(fmt.Sprintf("seed %d, request %d of %s", seed, i, name))
		if differences > 3 {
			m.t.Fatal("and so on")
		}
	}
	m.t.Logf("seed %d: %d requests to %v, %d changed something, %d differences", seed, n, devices, moved, differences)
}

const (
	requests = 500
	addVETH  = "link add v0 type veth peer name v1"
)

// TestKernelNames compares the table with the kernel's strings.
func TestKernelNames(t *testing.T) {
	m := newMachine(t)
	names, err := m.tool.FeatureNames("lo")
	if err != nil {
		t.Fatal(err)
	}
	var here []string
	for f := range feature.All.All() {
		if _, ok := feature.ByName(f.String()); ok {
			here = append(here, f.String())
		}
	}
	slices.Sort(here)
	slices.Sort(names)
	if !slices.Equal(here, names) {
		t.Errorf("the table has %v, the kernel %v", here, names)
	}
	t.Logf("%d names", len(names))
}

// TestKernelGroups compares the headings with those that ethtool prints.
func TestKernelGroups(t *testing.T) {
	need.Tool(t, "ethtool")
	m := newMachine(t)
	out, ok := m.run("ethtool", "-k", "lo")
	if !ok {
		t.Fatal(out)
	}
	group := map[string]string{}
	heading := ""
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, ":")
		if strings.HasPrefix(name, "\t") {
			group[strings.TrimSpace(name)] = heading
		} else {
			heading = name
		}
	}
	for f := range feature.All.All() {
		// ethtool 6.1 indents nothing below a heading of one feature.
		if got, ok := group[f.String()]; ok && got != f.Group() {
			t.Errorf("%v is below %q, want %q", f, f.Group(), got)
		}
	}
	if len(group) < 12 {
		t.Errorf("%d features below headings: %s", len(group), out)
	}
}

func TestKernelTAP(t *testing.T) {
	need.TUN(t)
	m := newMachine(t)
	m.add("tun", "t0", "tuntap add t0 mode tap")
	m.compare("at registration")
	m.random(1, requests, "t0")
}

// TestKernelTAPOffloads is about a process that changes what it takes, between
// requests.
func TestKernelTAPOffloads(t *testing.T) {
	need.TUN(t)
	m := newMachine(t)
	var dev *tap.Device
	if err := m.ns.Do(func() (err error) { dev, err = tap.Open("t0", tap.Options{HeaderSize: 24}); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	m.put("tun", "t0")
	const seed = 9
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 50 {
		var offloads tap.Offloads
		var takes feature.Set
		for _, o := range []struct {
			flag tap.Offloads
			set  feature.Set
		}{
			{tap.TSO4, parse("TSO")},
			{tap.TSO6, parse("TSO6")},
			{tap.USO, parse("GSO_UDP_L4")},
			{tap.TSOECN, parse("TSO_ECN")},
		} {
			if rng.IntN(2) == 0 && (o.flag != tap.TSOECN || takes.Meets(parse("TSO|TSO6"))) {
				offloads, takes = offloads|o.flag|tap.Csum, takes.Union(o.set).With(feature.HWCSum)
			}
		}
		if err := dev.SetOffloads(offloads); err != nil {
			t.Fatalf("seed %d: offloads %#x: %v", seed, offloads, err)
		}
		if _, err := m.model.Accept("t0", takes); err != nil {
			t.Fatal(err)
		}
		m.compare(fmt.Sprintf("seed %d, offloads %d: %v", seed, i, takes))
		m.random(uint64(100+i), requests/50, "t0")
	}
}

func TestKernelVETH(t *testing.T) {
	m := newMachine(t)
	m.add("veth", "v0", addVETH)
	m.put("veth", "v1")
	m.compare("at registration")
	m.random(2, requests, "v0", "v1")
}

func TestKernelVXLAN(t *testing.T) {
	m := newMachine(t)
	m.add("veth", "v0", addVETH)
	m.put("veth", "v1")
	m.add("vxlan", "x0", "link add x0 type vxlan id 42 dev v0 dstport 4789", "v0")
	m.compare("at registration")
	m.random(3, requests, "x0", "v0")
}

func TestKernelBridge(t *testing.T) {
	need.TUN(t)
	m := newMachine(t)
	m.add("bridge", "b0", "link add b0 type bridge")
	m.compare("without ports")
	m.random(4, requests/5, "b0")
	m.add("veth", "v0", addVETH)
	m.put("veth", "v1")
	m.add("tun", "t0", "tuntap add t0 mode tap")
	for _, port := range []string{"v0", "t0"} {
		if out, ok := m.run("ip", "link", "set", port, "master", "b0"); !ok {
			t.Fatal(out)
		}
		if _, err := m.model.Enslave(port, "b0"); err != nil {
			t.Fatal(err)
		}
		m.compare("with port " + port)
	}
	m.random(5, requests, "b0", "v0", "t0")
}

func TestKernelMACVLAN(t *testing.T) {
	m := newMachine(t)
	m.add("veth", "v0", addVETH)
	m.put("veth", "v1")
	m.add("macvlan", "m0", "link add m0 link v0 type macvlan", "v0")
	m.compare("at registration")
	m.random(6, requests, "m0", "v0")
}

// TestKernelOthers is about the kinds that a kernel may lack, those that depend
// on no other, and one on top of the other.
func TestKernelOthers(t *testing.T) {
	m := newMachine(t)
	m.put("lo", "lo")
	m.add("veth", "v0", addVETH)
	m.put("veth", "v1")
	devices := []string{"lo", "v0"}
	for _, x := range []struct {
		kind, name, command string
		below               []string
	}{
		{"vlan", "v0.10", "link add link v0 name v0.10 type vlan id 10", []string{"v0"}},
		{"vlan", "v0.10.20", "link add link v0.10 name v0.10.20 type vlan id 20", []string{"v0.10"}},
		{"ipvlan", "i0", "link add i0 link v1 type ipvlan", []string{"v1"}},
		{"ifb", "f0", "link add f0 type ifb", nil},
		{"dummy", "d0", "link add d0 type dummy", nil},
		{"geneve", "n0", "link add n0 type geneve id 42 remote 192.0.2.1", nil},
		{"gre", "g0", "link add g0 type gre remote 192.0.2.1 local 192.0.2.2", nil},
		{"gretap", "g1", "link add g1 type gretap remote 192.0.2.1 local 192.0.2.2", nil},
		{"ipip", "p0", "link add p0 type ipip remote 192.0.2.1 local 192.0.2.2", nil},
		{"sit", "s0", "link add s0 type sit remote 192.0.2.1 local 192.0.2.2", nil},
		{"ip6tnl", "p6", "link add p6 type ip6tnl remote 2001:db8::1 local 2001:db8::2", nil},
		{"wireguard", "w0", "link add w0 type wireguard", nil},
	} {
		if slices.ContainsFunc(x.below, func(b string) bool { _, ok := m.model.Device(b); return !ok }) {
			continue
		}
		if m.add(x.kind, x.name, x.command, x.below...) {
			devices = append(devices, x.name)
		}
	}
	m.compare("at registration")
	m.random(7, requests, devices...)
}

// TestKernelReport compares with what ethtool -K prints.
func TestKernelReport(t *testing.T) {
	need.TUN(t)
	need.Tool(t, "ethtool")
	m := newMachine(t)
	m.add("veth", "v0", addVETH)
	m.put("veth", "v1")
	m.add("tun", "t0", "tuntap add t0 mode tap")
	all := []string{}
	for f := range feature.All.Without(feature.GSOUDP, feature.VLANChallenged).All() {
		all = append(all, f.String())
	}
	rng := rand.New(rand.NewPCG(8, 0))
	for i := range 60 {
		name := []string{"v0", "t0"}[i%2]
		args := []string{"-K", name}
		var value, mask feature.Set
		for range 1 + rng.IntN(5) {
			f := feature.MustParse(all[rng.IntN(len(all))])
			if mask.Meets(f) {
				continue
			}
			on := rng.IntN(2) == 0
			mask = mask.Union(f)
			args = append(args, f.String(), map[bool]string{true: "on", false: "off"}[on])
			if on {
				value = value.Union(f)
			}
		}
		d, _ := m.model.Device(name)
		if _, err := m.model.Request(name, value, mask); err != nil {
			t.Fatal(err)
		}
		after, _ := m.model.Device(name)
		var want []string
		for _, l := range feature.Report(d.State(), after.State(), value, mask) {
			want = append(want, l.String())
		}
		out, _ := m.run("ethtool", args...)
		var got []string
		for line := range strings.Lines(out) {
			if line = strings.TrimSpace(line); line != "Actual changes:" && line != "Could not change any device features" {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed 8, request %d: ethtool %v prints\n%s, want\n%s", i, args, out, strings.Join(want, "\n"))
		}
	}
}
