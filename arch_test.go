package offlab_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/offlab/offlab"

// layers lists every package once, lowest layer first. A package may import
// packages of lower layers only. Packages of one layer do not import each
// other unless an edge below says why.
var layers = []struct {
	name string
	pkgs []string
}{
	{"lib", []string{"packet", "packet/checksum", "vnet", "feature", "feature/driver", "gso", "gro"}},
	{"pure", []string{"internal/catalog", "internal/unit", "internal/stats", "internal/study", "internal/verdict", "internal/report", "internal/wirecheck"}},
	{"sys", []string{"internal/sys/netns", "internal/sys/ethtool", "internal/sys/rtnl", "internal/sys/counters", "internal/sys/cpu", "internal/sys/sock", "internal/sys/sysctl", "internal/sys/proc", "internal/sys/bpf", "internal/sys/tap"}},
	{"engine", []string{"internal/agent", "internal/agent/transport", "internal/knob", "internal/load", "internal/probe", "internal/softnic", "internal/softnic/model", "internal/softnic/fault"}},
	{"run", []string{"internal/host", "internal/lab", "internal/runner", "internal/rig"}},
	{"root", []string{"internal/app"}},
	{"surface", []string{"internal/cli"}},
	{"main", []string{"cmd/offlab", "internal/tools/skipaudit", "internal/tools/benchload", "internal/tools/benchnic"}},
	{"testutil", []string{"internal/testutil/need", "internal/testutil/netnstest", "internal/testutil/golden", "internal/testutil/pkttest", "internal/testutil/kernelref"}},
}

// edges are the imports allowed inside one layer, each with its reason.
var edges = map[string]string{
	"packet packet/checksum":                             "headers verify their own checksums",
	"gso packet":                                         "segments are header views",
	"gso packet/checksum":                                "each segment gets a fresh checksum",
	"gso vnet":                                           "the split is described by a virtio header",
	"gro packet":                                         "flow keys come from header views",
	"gro packet/checksum":                                "a bad checksum ends a merge",
	"gro vnet":                                           "the merge is described by a virtio header",
	"feature/driver feature":                             "statements result in sets",
	"internal/study internal/stats":                      "verdicts carry comparisons",
	"internal/study internal/unit":                       "plans and metrics are typed quantities",
	"internal/verdict internal/stats":                    "verdicts are decided by comparisons",
	"internal/verdict internal/study":                    "verdicts are made from slots",
	"internal/verdict internal/unit":                     "proofs quote quantities",
	"internal/report internal/catalog":                   "formats form a catalog",
	"internal/report internal/study":                     "reports render studies",
	"internal/report internal/verdict":                   "reports trace how a verdict came about",
	"internal/report internal/unit":                      "reports scale quantities",
	"internal/lab internal/host":                         "a lab's ends are hosts",
	"internal/rig internal/host":                         "a slot asks both hosts",
	"internal/rig internal/lab":                          "slots run in a lab",
	"internal/rig internal/runner":                       "it runs what the runner specifies",
	"internal/agent/transport internal/agent":            "transports carry the agent's protocol",
	"internal/softnic/model internal/softnic":            "models are the card's data",
	"internal/softnic/model internal/softnic/fault":      "stmmac is the card that one fault was seen on",
	"internal/softnic/fault internal/softnic":            "faults break the card at its stations",
	"internal/testutil/netnstest internal/testutil/need": "a namespace is a need",
}

type pkg struct {
	ImportPath                                  string
	Imports, TestImports, XTestImports, GoFiles []string
	Doc                                         string
}

func load(t *testing.T) map[string]pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,GoFiles,Doc", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		if rel, ok := strings.CutPrefix(p.ImportPath, module+"/"); ok {
			pkgs[rel] = p
		}
	}
}

// TestLayers checks that each package has a layer, that each named package
// exists, and that every import goes down.
func TestLayers(t *testing.T) {
	pkgs := load(t)
	rank, layer := map[string]int{}, map[string]string{}
	for i, l := range layers {
		for _, p := range l.pkgs {
			if _, dup := rank[p]; dup {
				t.Errorf("%s is in two layers", p)
			}
			if _, ok := pkgs[p]; !ok {
				t.Errorf("layer %s lists %s, which does not exist", l.name, p)
			}
			rank[p], layer[p] = i, l.name
		}
	}
	used := map[string]bool{}
	for rel, p := range pkgs {
		r, ok := rank[rel]
		if !ok {
			t.Errorf("%s has no layer: add it to layers in arch_test.go", rel)
			continue
		}
		for _, imp := range p.Imports {
			to, ok := strings.CutPrefix(imp, module+"/")
			if !ok {
				continue
			}
			edge := rel + " " + to
			switch {
			case rank[to] < r && layer[to] != "testutil":
			case rank[to] == r && edges[edge] != "":
				used[edge] = true
			default:
				t.Errorf("%s (%s) must not import %s (%s)", rel, layer[rel], to, layer[to])
			}
		}
	}
	for e := range edges {
		if !used[e] {
			t.Logf("edge %q is allowed and not used", e)
		}
	}
}

// TestLibsAreStandardOnly keeps the importable libraries free of third-party
// code and of the operating system.
func TestLibsAreStandardOnly(t *testing.T) {
	pkgs := load(t)
	banned := []string{"os", "os/exec", "syscall", "net", "net/http", "log", "log/slog", "math/rand", "math/rand/v2", "reflect"}
	for _, rel := range layers[0].pkgs {
		for _, imp := range pkgs[rel].Imports {
			if strings.HasPrefix(imp, module+"/") {
				continue
			}
			if strings.Contains(strings.Split(imp, "/")[0], ".") || slices.Contains(banned, imp) {
				t.Errorf("library %s imports %s", rel, imp)
			}
		}
	}
}

// TestPackageDocs checks that each package says what it is for.
func TestPackageDocs(t *testing.T) {
	for rel, p := range load(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", rel)
		}
	}
}

// TestArchitectureDocument checks that ARCHITECTURE.md names every package.
func TestArchitectureDocument(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		for _, p := range l.pkgs {
			if !strings.Contains(string(text), "| "+l.name+" | `"+p+"` |") {
				t.Errorf("ARCHITECTURE.md does not list %s in layer %s", p, l.name)
			}
		}
	}
}
