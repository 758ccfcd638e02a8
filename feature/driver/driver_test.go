package driver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/feature/driver"
)

const bgmac = "features = SG|IP_CSUM|IPV6_CSUM; features &= GRO; hw_features = features; vlan_features = features"

// TestBgmac is what the reviewers of the bgmac patch said.
func TestBgmac(t *testing.T) {
	f, err := driver.Statements(bgmac)
	if err != nil {
		t.Fatal(err)
	}
	o := f.Register()
	if got := o.Sets[feature.Features]; got.On != feature.Of(feature.GRO) || !got.Known() {
		t.Errorf("features: %v", got)
	}
	findings := strings.Join(o.Findings(), "\n")
	for _, want := range []string{
		`"features &= GRO" clears all but rx-gro; it does not clear it. None of that was on, so features is empty then.`,
		"tx-scatter-gather, tx-checksum-ipv4, tx-checksum-ipv6: set, then cleared, and not in hw_features: nobody can turn them on, so the driver's code for them is dead.",
		`rx-gro is on: the core adds it at registration (a soft feature), whatever the driver says. Nothing here turns it off; "ethtool -K DEV gro off" does.`,
		"tx-generic-segmentation is off [requested on]: needs tx-scatter-gather, which is off [fixed] (net/core/dev.c, netdev_fix_features).",
	} {
		if !strings.Contains(findings, want) {
			t.Errorf("findings lack %q:\n%s", want, findings)
		}
	}
}

// A row is a text and its results: features, those that may be on, hw_features.
type row struct{ name, text, features, maybe, hw string }

var rows = []row{
	{"c", "dev->features |= NETIF_F_SG | NETIF_F_TSO;\ndev->features &= ~NETIF_F_TSO;", "SG", "none", "none"},
	{"chain", "dev->hw_features = dev->features = NETIF_F_SG;", "SG", "none", "SG"},
	{"brackets", "dev->features = (NETIF_F_SG | (NETIF_F_TSO)) & ~(NETIF_F_TSO | NETIF_F_TSO6); dev->hw_features |= dev->features;", "SG", "none", "SG"},
	{"xor", "dev->features = NETIF_F_SG; dev->features ^= NETIF_F_SG | NETIF_F_TSO;", "TSO", "none", "none"},
	{"not", "dev->features = ~0; dev->features &= NETIF_F_SG | NETIF_F_HW_CSUM;", "SG|HW_CSUM", "none", "none"},
	{"local", "netdev_features_t f = NETIF_F_SG, g; g = f | NETIF_F_TSO; dev->features = g;", "SG|TSO", "none", "none"},
	{"macro", "#define MY (NETIF_F_SG | \\\n NETIF_F_TSO)\ndev->features |= MY;", "SG|TSO", "none", "none"},
	{"comment", "/* dev->features = NETIF_F_TSO; */ dev->features = NETIF_F_SG; // dev->features = 0", "SG", "none", "none"},
	{"mask", "dev->features = NETIF_F_ALL_TSO & ~NETIF_F_TSO_MANGLEID;", "TSO|TSO6|TSO_ECN", "none", "none"},
	{"if", "dev->features = NETIF_F_SG; if (x->csum) dev->features |= NETIF_F_IP_CSUM;", "SG", "IP_CSUM", "none"},
	{"if-else", "if (x->a) dev->features = NETIF_F_SG | NETIF_F_TSO; else dev->features = NETIF_F_SG;", "SG", "TSO", "none"},
	{"if-known", "dev->features = NETIF_F_SG; if (dev->features & NETIF_F_SG) dev->features |= NETIF_F_GSO; if (!(dev->features & NETIF_F_SG)) dev->features = 0;", "SG|GSO", "none", "none"},
	{"early-return", "dev->features = NETIF_F_SG; if (x->err) { dev->features = 0; return -1; } dev->hw_features = dev->features;", "SG", "none", "SG"},
	{"goto", "dev->features = NETIF_F_SG; if (x->err) goto out; dev->features |= NETIF_F_TSO; return 0; out: dev->features = 0; return -1;", "SG|TSO", "none", "none"},
	{"goto-done", "if (x->a) goto done; dev->features = NETIF_F_SG; goto done; done: dev->hw_features = dev->features;", "none", "SG", "none"},
	{"switch", "switch (x->mac) { case 1: dev->features |= NETIF_F_TSO; /* fall through */ case 2: dev->features |= NETIF_F_SG; break; default: dev->features |= NETIF_F_SG; }", "SG", "TSO", "none"},
	{"switch-open", "switch (x->mac) { case 1: dev->features |= NETIF_F_TSO; break; }", "none", "TSO", "none"},
	{"loop", "for (i = 0; i < n; i++) { dev->hw_features |= dev->features; dev->features |= NETIF_F_SG; }", "none", "SG", "none"},
	{"loop-never", "while (0) dev->features |= NETIF_F_SG; dev->features |= NETIF_F_TSO;", "TSO", "none", "none"},
	{"loop-macro", "list_for_each_entry(a, b, c) { dev->features |= NETIF_F_SG; }", "none", "SG", "none"},
	{"ternary", "dev->features = x->x ? NETIF_F_SG | NETIF_F_TSO : NETIF_F_SG;", "SG", "TSO", "none"},
	{"flag", "bool dac = false; if (x->y) dac = true; else dac = true; if (dac) dev->features |= NETIF_F_HIGHDMA;", "HIGHDMA", "none", "none"},
	{"out-parameter", "int err = 0; get(&err); if (err) dev->features |= NETIF_F_SG;", "none", "SG", "none"},
	{"bit", "dev->features |= BIT_ULL(NETIF_F_SG_BIT) | __NETIF_F(TSO) | (1ULL << NETIF_F_GRO_BIT);", "SG|TSO|GRO", "none", "none"},
	{"old", "dev->features |= NETIF_F_HW_VLAN_TX | NETIF_F_LLTX;", "HW_VLAN_CTAG_TX", "none", "none"},
	{"ifdef", "dev->features = NETIF_F_SG;\n#ifdef CONFIG_X\ndev->features |= NETIF_F_TSO;\n#endif\n", "SG", "TSO", "none"},
	{"if-0", "dev->features = NETIF_F_SG;\n#if 0\ndev->features = 0;\n#else\ndev->features |= NETIF_F_TSO;\n#endif\n", "SG|TSO", "none", "none"},
	{"cast", "dev->features = (netdev_features_t)NETIF_F_SG | (u64)(NETIF_F_TSO);", "SG|TSO", "none", "none"},
	{"intersect", "dev->features = netdev_intersect_features(NETIF_F_HW_CSUM | NETIF_F_SG, NETIF_F_IP_CSUM | NETIF_F_SG);", "IP_CSUM|SG", "none", "none"},
	{"alias", "struct net_device *n = x->dev2; struct net_device *dev3 = n; dev->features = NETIF_F_SG; dev3->features = NETIF_F_TSO; n->features |= NETIF_F_SG;", "SG", "none", "none"},
	{"not-a-device", "dev->features = NETIF_F_SG; x->hw->features |= 7;", "SG", "none", "none"},
	{"unknown", "dev->features = NETIF_F_SG | x->flags;", "SG", "everything", "none"},
	{"lost-bits", "dev->features = x->flags; dev->features &= NETIF_F_SG;", "none", "SG", "none"},
}

func TestFile(t *testing.T) {
	for _, tt := range rows {
		r, err := driver.File("int probe(struct x *x, struct net_device *dev)\n{\n\tdev = alloc_etherdev(1);\n" + tt.text + "\n}\n")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		check(t, tt, r.Functions[0])
	}
}

func check(t *testing.T, want row, f driver.Function) {
	t.Helper()
	got := f.Sets[feature.Features]
	open := feature.Set{^uint64(0)}.Diff(got.On)
	if want.maybe != "everything" {
		open = feature.MustParse(want.maybe)
	}
	if got.On != feature.MustParse(want.features) || got.Maybe != open {
		t.Errorf("%s: features on %v, maybe %v; want %s, %s", want.name, got.On, got.Maybe, want.features, want.maybe)
	}
	if got := f.Sets[feature.HWFeatures]; got.On != feature.MustParse(want.hw) {
		t.Errorf("%s: hw_features %v, want %s", want.name, got, want.hw)
	}
}

func TestStatements(t *testing.T) {
	for _, tt := range []struct{ text, features, hw string }{
		{"net_dev->features |= NETIF_F_SG | NETIF_F_TSO;\nnet_dev->features &= ~NETIF_F_TSO;", "SG", "none"},
		{"features = (SG | (TSO)) & ~(TSO | TSO6); hw_features |= features", "SG", "SG"},
		{"hw_features = features = ALL_TSO & ~TSO_MANGLEID", "TSO|TSO6|TSO_ECN", "TSO|TSO6|TSO_ECN"},
		{"netdev_features_t f = SG; features = f; ", "SG", "none"},
		{"#define MY (SG|GRO)\nfeatures = MY", "SG|GRO", "none"},
		{"features |= SG; hw_features ^= SG", "SG", "SG"},
		{"features = SG; if (features & SG) features |= TSO;", "SG|TSO", "none"},
	} {
		f, err := driver.Statements(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		check(t, row{tt.text, tt.text, tt.features, "none", tt.hw}, *f)
	}
}

// TestSoft is about statements that look as if they turned GRO off.
func TestSoft(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"features = SG; features &= ~GRO", "rx-gro is on: the core adds it at registration"},
		{"features = SG|GRO", ""},
		{"features = SG; wanted_features &= ~GRO", "rx-gro is on: the core adds it at registration"},
	} {
		f, err := driver.Statements(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, text := range f.Register().Findings() {
			if strings.HasPrefix(text, "rx-gro") {
				found = text
			}
		}
		if !strings.HasPrefix(found, tt.want) || tt.want == "" && found != "" {
			t.Errorf("%s: %q, want %q", tt.text, found, tt.want)
		}
	}
	r, err := driver.File("static void off(struct net_device *dev)\n{\n\tdev->features &= ~NETIF_F_GRO;\n\tdev->wanted_features &= ~NETIF_F_GRO;\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Functions[0].Register(); o.Registered || !strings.Contains(strings.Join(o.Findings(), "\n"), "after registration that turns it off") {
		t.Errorf("after registration: %v %v", o.Registered, o.Findings())
	}
}

// TestStatementsInTheMiddle: a hunk that clears a flag of a set that it does not
// fill in.
func TestStatementsInTheMiddle(t *testing.T) {
	f, err := driver.Statements("net_dev->features &= ~NETIF_F_TSO;")
	if err != nil {
		t.Fatal(err)
	}
	got := f.Sets[feature.Features]
	if !got.On.IsZero() || got.Can().Has(feature.TSO) || !got.Can().Has(feature.SG) {
		t.Errorf("features: %v", got)
	}
}

func TestStatementErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "no assignment"},
		{"SG|TSO", "no assignment"},
		{"features = SGG", `"SGG"`},
		{"features = SG |", "not understood"},
		{"features = (SG", "not understood"},
		{"feature = SG", `no set is called "feature" (have features, hw_features,`},
		{"a->features = NETIF_F_SG; b->features = NETIF_F_SG", "several devices: a, b"},
		{"features |= NETIF_F_WARP", "NETIF_F_WARP"},
	} {
		f, err := driver.Statements(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, %v; want %q", tt.text, f, err, tt.want)
		}
	}
	if _, err := driver.File("int x;"); !errors.Is(err, driver.ErrNothing) {
		t.Errorf("a file without assignments: %v", err)
	}
}

const network = `
#include <linux/netdevice.h>
#define FOO_TSO (NETIF_F_TSO | NETIF_F_TSO6)
enum { FOO_CSUM = NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM, FOO_OTHER };

static void foo_init_features(struct foo *foo, struct net_device *netdev)
{
	netdev->hw_features = NETIF_F_SG | FOO_CSUM | FOO_TSO;
	if (foo->chip >= 2)
		netdev->hw_features |= NETIF_F_LRO;
	foo->dev->features |= netdev->hw_features; /* the same device by another name */
	foo->flags = foo_flags(foo);
}

static int foo_set_features(struct net_device *netdev, netdev_features_t features)
{
	if (features & NETIF_F_LRO)
		netdev->wanted_features &= ~NETIF_F_LRO;
	set_bit(3, &netdev->vlan_features);
	return 0;
}

static int foo_probe(struct pci_dev *pdev)
{
	struct net_device *netdev;
	struct foo *foo;

	netdev = alloc_etherdev(sizeof(*foo));
	if (!netdev)
		return -ENOMEM;
	foo = netdev_priv(netdev);
	foo->dev = netdev;
	foo_init_features(foo, netdev);
#ifdef CONFIG_FOO_VLAN
	netdev->vlan_features |= netdev->features & ~foo_bad(pdev);
#endif
	return register_netdev(netdev);
}

static struct pci_driver foo_driver = { .probe = foo_probe };
static const struct net_device_ops foo_ops = { .ndo_set_features = foo_set_features, };
`

// TestDriver follows a probe function through a helper, and says what it could
// not follow.
func TestDriver(t *testing.T) {
	r, err := driver.File(network)
	if err != nil || len(r.Functions) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	set, probe := r.Functions[0], r.Functions[1]
	if probe.Name != "foo_probe" || probe.Role != "probe" || !probe.Fresh || probe.Device != "netdev" || probe.Line != 23 {
		t.Errorf("probe is %+v", probe)
	}
	want := "SG|IP_CSUM|IPV6_CSUM|TSO|TSO6"
	check(t, row{"probe", "", want, "LRO", want}, probe)
	if got := probe.Sets[feature.VLANSet]; !got.On.IsZero() || got.Maybe.Intersect(feature.All) != feature.MustParse(want+"|LRO") {
		t.Errorf("vlan_features: %v", got)
	}
	if len(probe.Steps) != 4 || probe.Steps[1].In != "foo_init_features" || probe.Steps[1].When != "foo->chip >= 2" || probe.Steps[3].When != "#ifdef CONFIG_FOO_VLAN" {
		t.Errorf("steps: %+v", probe.Steps)
	}
	if len(probe.Notes) != 1 || probe.Notes[0].Line != 35 || !strings.Contains(probe.Notes[0].Text, "foo_bad() in") {
		t.Errorf("notes: %+v", probe.Notes)
	}
	if set.Fresh || set.Role != "ndo_set_features" || len(set.Notes) != 1 || !strings.Contains(set.Notes[0].Text, "the address of netdev->vlan_features is handed out") {
		t.Errorf("set_features: %+v", set)
	}
	o := probe.Register()
	if got := o.Sets[feature.Features]; got.On != feature.MustParse(want+"|GSO|GRO") || got.Maybe != feature.Of(feature.LRO) {
		t.Errorf("registered: %v", got)
	}
}
