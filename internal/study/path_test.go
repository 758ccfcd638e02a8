package study_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/study"
)

func TestParsePath(t *testing.T) {
	for in, want := range map[string]study.Path{
		"base":      {Kind: study.PathBase},
		"vlan:10":   {Kind: study.PathVLAN, IDs: []uint16{10}},
		"qinq:5,10": {Kind: study.PathQinQ, IDs: []uint16{5, 10}},
		"forwarded": {Kind: study.PathForwarded},
	} {
		got, err := study.ParsePath(in)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("ParsePath(%q): %v\n%s", in, err, d)
		}
	}
	for in, want := range map[string]string{
		"": "unknown", "vxlan:7": "have base", "vlan": "vlan:ID", "vlan:0": "1 to 4094", "vlan:4095": "1 to 4094",
		"vlan:x": "1 to 4094", "qinq:5": "qinq:OUTER,INNER", "base:1": "takes no number",
	} {
		if _, err := study.ParsePath(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePath(%q) = %v, want %q", in, err, want)
		}
	}
}

func TestSplitPaths(t *testing.T) {
	for in, want := range map[string][]string{
		"base":                     {"base"},
		"base,vlan:10":             {"base", "vlan:10"},
		"qinq:5,10":                {"qinq:5,10"},
		"base,qinq:5,10,vlan:10":   {"base", "qinq:5,10", "vlan:10"},
		"qinq:5,10,20":             {"qinq:5,10", "20"},
		"vlan:10,20":               {"vlan:10", "20"},
		"base,qinq:1,2,qinq:3,4,x": {"base", "qinq:1,2", "qinq:3,4", "x"},
	} {
		if d := cmp.Diff(want, study.SplitPaths(in)); d != "" {
			t.Errorf("SplitPaths(%q)\n%s", in, d)
		}
	}
}
