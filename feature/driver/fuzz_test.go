package driver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/feature/driver"
)

// FuzzFile: any text ends without a panic, a feature is on or maybe and never
// both, and every step and note is at a line of the text.
func FuzzFile(f *testing.F) {
	for _, row := range rows {
		f.Add("int probe(struct x *x, struct net_device *dev)\n{\n" + row.text + "\n}\n")
	}
	f.Add("#if 1\n#elif\n#else\n#endif\n#endif\nvoid f(d) { d->features = (((((; }")
	f.Add("void a(struct net_device *d) { d->features |= b(d); } u64 b(struct net_device *d) { a(d); return NETIF_F_SG; }")
	f.Add("#define A A|B\n#define B A\nvoid f(struct net_device *d) { d->features = A; l: goto l; }")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		at := func(line int) {
			if line < 1 || line > lines {
				t.Fatalf("line %d of %d", line, lines)
			}
		}
		r, err := driver.File(text)
		if err == nil && len(r.Functions) == 0 {
			t.Fatal("no functions and no error")
		}
		for _, fn := range r.Functions {
			at(fn.Line)
			for _, n := range fn.Notes {
				at(n.Line)
			}
			for _, s := range fn.Steps {
				at(s.Line)
				if s.After.On.Meets(s.After.Maybe) {
					t.Fatalf("%+v", s)
				}
			}
			fn.Register().Findings()
		}
		if s, err := driver.Statements(text); err == nil && len(s.Steps) == 0 {
			t.Fatal("no steps and no error")
		}
	})
}

// FuzzProgram: a program made of the input has the sets that a second,
// simple-minded interpreter finds.
func FuzzProgram(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("some features, in no order"))
	f.Fuzz(func(t *testing.T, in []byte) {
		fields := []feature.Field{feature.Features, feature.HWFeatures, feature.VLANSet, feature.HWEncSet}
		want := map[feature.Field]feature.Set{}
		var text strings.Builder
		text.WriteString("dev->features = dev->hw_features = dev->vlan_features = dev->hw_enc_features = 0;\n")
		byteAt := func() byte {
			if len(in) == 0 {
				return 0
			}
			b := in[0]
			in = in[1:]
			return b
		}
		for n := 0; len(in) > 0 && n < 40; n++ {
			field := fields[byteAt()%4]
			var operand string
			var value feature.Set
			for i := range 1 + byteAt()%3 {
				fs := feature.Feature(byteAt() % 64)
				if !feature.All.Has(fs) {
					fs = feature.SG
				}
				term, set := fs.C(), feature.Of(fs)
				switch byteAt() % 4 {
				case 0:
					term = "(" + term + ")"
				case 1:
					m := feature.Masks()[byteAt()%18]
					term, set = m.Name, m.Set
				case 2:
					other := fields[byteAt()%4]
					term, set = "dev->"+other.String(), want[other]
				}
				if i > 0 {
					operand += " |\n\t"
				}
				operand, value = operand+term, value.Union(set)
			}
			if byteAt()%2 == 0 {
				operand, value = "~("+operand+")", feature.Set{^uint64(0)}.Diff(value)
			}
			ops := []string{"=", "|=", "&=", "^="}
			op := ops[byteAt()%4]
			fmt.Fprintf(&text, "dev->%v %s %s;\n", field, op, operand)
			old := want[field]
			want[field] = map[string]feature.Set{
				"=": value, "|=": old.Union(value), "&=": old.Intersect(value), "^=": old.Union(value).Diff(old.Intersect(value)),
			}[op]
		}
		program := text.String()
		got, err := driver.Statements(program)
		if err != nil {
			t.Fatalf("%v in\n%s", err, program)
		}
		for field, set := range want {
			if v, ok := got.Sets[field]; ok && (v.On != set || !v.Known()) {
				t.Fatalf("%v is %v, want %v, in\n%s", field, v, set, program)
			}
		}
	})
}
