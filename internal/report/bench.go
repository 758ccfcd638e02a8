package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/offlab/offlab/internal/study"
)

// benchUnits are the units of metrics in the Go benchmark format, where a unit
// names the metric.
var benchUnits = map[string]string{
	study.Goodput:      "bit/s",
	study.CPUPerByte:   "ns/B",
	study.CPUSender:    "ns/B-sender",
	study.CPUReceiver:  "ns/B-receiver",
	study.CPUPerPacket: "ns/packet",
	study.Retransmits:  "retransmits",
}

// renderBench writes every slot that counts in the Go benchmark format
// (golang.org/design/14313-benchmark-format), one line for each comparison that
// it is part of:
//
//	BenchmarkOfflab/knob=tso/value=on/path=base/family=ipv4/load=bulk/direction=tx 1 2.04e+10 bit/s 0.379 ns/B
//
// "benchstat -col /value" then compares the values of a knob, and so checks this
// program's statistics. It does not know that slots belong together in blocks.
func renderBench(w io.Writer, s *study.Study, _ Options) error {
	var b strings.Builder
	benchHead(&b, s)
	for _, slot := range s.Slots {
		if slot.Phase != study.PhaseAB || slot.Void != "" {
			continue
		}
		for _, c := range s.Plan.Contrast {
			if value, ok := benchValue(c, slot); ok {
				benchLine(&b, c.Knob, value, slot)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// benchHead writes what holds for all lines, and which way units get better.
func benchHead(b *strings.Builder, s *study.Study) {
	config := [][2]string{
		{"offlab", or(s.Version, "unknown")},
		{"kernel", s.Environment.Kernel},
		{"lab", s.Plan.Lab},
		{"seed", fmt.Sprint(s.Seed)},
		{"command", reproduce(s)},
	}
	for _, h := range s.Environment.Hosts {
		config = append(config, [2]string{benchWord(or(h.Role, "host")), h.Device}, [2]string{benchWord(or(h.Role, "host")) + "-driver", h.Driver})
	}
	for _, kv := range config {
		if v := strings.TrimSpace(clean(kv[1])); v != "" {
			fmt.Fprintf(b, "%s: %s\n", kv[0], v)
		}
	}
	for _, m := range study.Metrics {
		better := "higher"
		if m.LowerIsBetter {
			better = "lower"
		}
		fmt.Fprintf(b, "Unit %s better=%s\n", benchUnits[m.Name], better)
	}
}

// benchValue is the value of a comparison's knob in a slot. An interaction has
// no value.
func benchValue(c study.Contrast, slot study.Slot) (value string, ok bool) {
	switch {
	case c.Interaction || c.Cell != slot.Cell:
		return "", false
	case slices.Contains(c.ArmNames(true), slot.Arm):
		return c.Arm, true
	case slices.Contains(c.ArmNames(false), slot.Arm):
		return c.Baseline, true
	}
	return "", false
}

func benchLine(b *strings.Builder, knob, value string, slot study.Slot) {
	var figures strings.Builder
	for _, m := range study.Metrics {
		if v, ok := slot.Metrics[m.Name]; ok {
			fmt.Fprintf(&figures, " %s %s", strconv.FormatFloat(v, 'g', -1, 64), benchUnits[m.Name])
		}
	}
	if figures.Len() == 0 {
		return
	}
	b.WriteString("BenchmarkOfflab")
	for _, kv := range [][2]string{
		{"knob", knob},
		{"value", value},
		{"path", slot.Path},
		{"family", slot.Family},
		{"load", slot.Load},
		{"direction", slot.Direction}, // the last must not end in -8, which would be GOMAXPROCS
	} {
		fmt.Fprintf(b, "/%s=%s", kv[0], benchWord(kv[1]))
	}
	fmt.Fprintf(b, " 1%s\n", figures.String())
}

// benchWord writes a word of a benchmark's name: no blank, no slash, nothing
// that does not print, and not nothing.
func benchWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '/' {
			return '_'
		}
		return r
	}, or(strings.TrimSpace(clean(s)), "none"))
}
