package knob_test

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/catalog"
	"github.com/offlab/offlab/internal/knob"
)

func toggle(name string, d knob.Direction, members ...string) knob.Factor {
	return knob.Factor{Name: name, Kind: knob.KindFeature, Members: members, Values: []string{"off", "on"}, Direction: d}
}

func value(name string, k knob.Kind, d knob.Direction, values ...string) knob.Factor {
	return knob.Factor{Name: name, Kind: k, Members: []string{name}, Values: values, Direction: d}
}

func pair(name, onCmd, offCmd string) knob.Factor {
	return knob.Factor{Name: name, Kind: knob.KindCommand, Members: []string{onCmd, offCmd}, Values: []string{"off", "on"}, Direction: knob.Both}
}

func TestParse(t *testing.T) {
	const tso, sg = "tx-tcp*-segmentation", "tx-scatter-gather*"
	for _, tt := range []struct {
		name string
		args []string
		want []knob.Factor
	}{
		{"none", nil, nil},
		{"toggle", []string{"tso"}, []knob.Factor{toggle("tso", knob.TX, tso)}},
		{"together", []string{"sg+tso"}, []knob.Factor{toggle("sg+tso", knob.TX, sg, tso)}},
		{"both-ways", []string{"gso+gro"}, []knob.Factor{toggle("gso+gro", knob.Both, "tx-generic-segmentation", "rx-gro")}},
		{"two-by-comma", []string{"tso,gro"}, []knob.Factor{toggle("tso", knob.TX, tso), toggle("gro", knob.RX, "rx-gro")}},
		{"two-words", []string{"tso", "gro"}, []knob.Factor{toggle("tso", knob.TX, tso), toggle("gro", knob.RX, "rx-gro")}},
		{"mixed", []string{"tso,sg+tso"}, []knob.Factor{toggle("tso", knob.TX, tso), toggle("sg+tso", knob.TX, sg, tso)}},
		{"legacy", []string{"large-receive-offload"}, []knob.Factor{toggle("large-receive-offload", knob.RX, "rx-lro")}},
		{"kernel", []string{"tx-udp_tnl-segmentation"}, []knob.Factor{toggle("tx-udp_tnl-segmentation", knob.TX, "tx-udp_tnl-segmentation")}},
		{"kernel-both", []string{"highdma"}, []knob.Factor{toggle("highdma", knob.Both, "highdma")}},
		{"known", []string{"tx-teleport"}, []knob.Factor{toggle("tx-teleport", knob.TX, "tx-teleport")}},
		{"reversed", []string{"tso=on,off"}, []knob.Factor{{Name: "tso", Kind: knob.KindFeature, Members: []string{tso}, Values: []string{"on", "off"}, Direction: knob.TX}}},
		{"coalesce", []string{"rx-usecs=0,050"}, []knob.Factor{value("rx-usecs", knob.KindCoalesce, knob.RX, "0", "50")}},
		{"coalesce-tx", []string{"tx-frames=1,2,3"}, []knob.Factor{value("tx-frames", knob.KindCoalesce, knob.TX, "1", "2", "3")}},
		{"switch", []string{"adaptive-rx"}, []knob.Factor{value("adaptive-rx", knob.KindCoalesce, knob.RX, "off", "on")}},
		{"ring", []string{"ring-rx=256,512"}, []knob.Factor{value("ring-rx", knob.KindRing, knob.RX, "256", "512")}},
		{"mtu", []string{"mtu=1500,9000"}, []knob.Factor{value("mtu", knob.KindLink, knob.Both, "1500", "9000")}},
		{"gso-size", []string{"gso_max_size=65536,16384"}, []knob.Factor{value("gso_max_size", knob.KindLink, knob.TX, "65536", "16384")}},
		{"gro-size", []string{"gro_ipv4_max_size=65536,16384"}, []knob.Factor{value("gro_ipv4_max_size", knob.KindLink, knob.RX, "65536", "16384")}},
		{"sysctl", []string{"net.ipv4.tcp_congestion_control=cubic,bbr"}, []knob.Factor{value("net.ipv4.tcp_congestion_control", knob.KindSysctl, knob.Both, "cubic", "bbr")}},
		{"sysctl-fields", []string{"net/ipv4/tcp_rmem=4096  1 2,4096\t3 4"}, []knob.Factor{value("net.ipv4.tcp_rmem", knob.KindSysctl, knob.Both, "4096 1 2", "4096 3 4")}},
		{"cmd-bare", []string{"cmd:noop=true,true"}, []knob.Factor{pair("cmd:noop", "true", "true")}},
		{"cmd-quoted", []string{"cmd:x='echo a,b','false'"}, []knob.Factor{pair("cmd:x", "echo a,b", "false")}},
		{"cmd-half", []string{`cmd:x="a,b",c 'd'`}, []knob.Factor{pair("cmd:x", "a,b", "c 'd'")}},
		{"cmd-equals", []string{"cmd:x=a=1 true,b+c=2"}, []knob.Factor{pair("cmd:x", "a=1 true", "b+c=2")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := knob.Parse(tt.args, "tx-teleport")
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Fatalf("Parse(%q): %v\n%s", tt.args, err, diff)
			}
			data, err := json.Marshal(got)
			var back []knob.Factor
			if err = errors.Join(err, json.Unmarshal(data, &back)); err != nil || !cmp.Equal(got, back) {
				t.Errorf("through JSON: %v, %v", back, err)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{
		{"", `a name is missing`},
		{"tso,", `a name is missing`},
		{"sg+", `a name is missing`},
		{"sg+sg", `sg is in it twice`},
		{"tso+mtu", `mtu is no feature`},
		{"mtu", `needs values to compare: mtu=A,B`},
		{"net.ipv4.tcp_sack", `needs values to compare`},
		{"mtu=1500", `needs two values`},
		{"mtu=", `whole number`},
		{"mtu=1500,", `whole number`},
		{"mtu=1500,1500", `given twice`},
		{"mtu=1500,01500", `given twice`},
		{"mtu=1500,-1", `whole number`},
		{"mtu=1500,4294967296", `whole number`},
		{"adaptive-rx=0,1", `is on or off`},
		{"tso=on,maybe", `is on or off`},
		{"tso,mtu=1500,9000", `unknown knob "tso,mtu"`},
		{"net.ipv4.x=1,", `a value is missing`},
		{"net.ipv4.../../x=1,2", `below net`},
		{"kernel.panic=1,2", `below net`},
		{"ring-rx-max=1,2", `unknown knob`},
		{"cmd:x", `form cmd:NAME`},
		{"cmd:=a,b", `form cmd:NAME`},
		{"cmd:a b=a,b", `form cmd:NAME`},
		{"cmd:x=a", `has 1 commands`},
		{"cmd:x=a,b,c", `has 3 commands`},
		{"cmd:x='a,b", `quote is not closed`},
		{"cmd:x='a'b,c", `quote is not closed`},
		{"cmd:x='a',", `a command is empty`},
		{"cmd:x=a,", `a command is empty`},
		{"cmd:x='',''", `a command is empty`},
		{"tos", `did you mean tso`},
		{"gsro", `did you mean gro or gso`},
		{"rx-usec=1,2", `did you mean rx-usecs`},
		{"checksum", `tx-checksum-ipv4`},
		{"zzz", `have fraglist, gro,`},
	} {
		got, err := knob.Parse([]string{tt.arg})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%q) = %v, %v; want %q", tt.arg, got, err, tt.want)
		}
	}
	if _, err := knob.Parse([]string{"net.ipv4.tcp_sack=0,1", "net/ipv4/tcp_sack=0,1"}); err == nil {
		t.Error("a sysctl in two spellings is two factors")
	}
	if _, err := knob.Parse([]string{"tso", "gro,tso"}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("a factor twice: %v", err)
	}
	_, err := knob.Parse([]string{"zzz"})
	if _, ok := errors.AsType[*catalog.UnknownError](err); !ok {
		t.Errorf("%v is no UnknownError of the catalog", err)
	}
}

// FuzzParse checks that what is accepted is whole, and stays the same when it
// is written and read again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"tso", "sg+tso,gro", "mtu=1500,9000", "cmd:x='a,b','c'", "net.ipv4.tcp_rmem=1 2 3,4", "adaptive-rx", "tso=on,off", "cmd:x=,", "+", "=",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		factors, err := knob.Parse([]string{arg})
		if err != nil {
			return
		}
		for _, fa := range factors {
			if fa.Name == "" || fa.Kind == "" || fa.Direction == "" || len(fa.Members) == 0 || len(fa.Values) < 2 || slices.Contains(fa.Values, "") {
				t.Errorf("Parse(%q) is not whole: %+v", arg, fa)
			}
			again := fa.Name + "=" + strings.Join(fa.Values, ",")
			if fa.Kind == knob.KindCommand {
				again = fa.Name + "=" + quote(fa.Members[0]) + "," + quote(fa.Members[1])
			}
			back, err := knob.Parse([]string{again})
			if err != nil || len(back) != 1 || !cmp.Equal(back[0], fa) {
				t.Errorf("Parse(%q) = %+v, and Parse(%q) = %+v, %v", arg, fa, again, back, err)
			}
		}
	})
}

// quote quotes a command that cannot contain both quotes at once: it came from
// within one pair, or has no comma and needs none.
func quote(s string) string {
	switch {
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	case !strings.Contains(s, `"`):
		return `"` + s + `"`
	}
	return s
}

func TestTables(t *testing.T) {
	if !slices.IsSorted(knob.KernelFeatures) || len(slices.Compact(slices.Clone(knob.KernelFeatures))) != len(knob.KernelFeatures) {
		t.Error("the kernel's names are not in order, or one is twice")
	}
	for _, tg := range knob.Toggles().All() {
		if tg.Short == "ufo" { // no kernel of today has it
			continue
		}
		if !slices.ContainsFunc(knob.KernelFeatures, func(n string) bool { ok, _ := path.Match(tg.Feature, n); return ok }) {
			t.Errorf("%s: nothing matches %s", tg.Short, tg.Feature)
		}
	}
	for _, name := range knob.ValueNames() {
		if got, err := knob.Parse([]string{name + "=1,2"}); err != nil && !strings.Contains(err.Error(), "on or off") {
			t.Errorf("Parse(%s=1,2) = %v, %v", name, got, err)
		}
		if slices.Contains(knob.KernelFeatures, name) {
			t.Errorf("%s is a value and a feature", name)
		}
	}
}
