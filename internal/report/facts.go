package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// secondsPerBlock is what a block took in this study, everything included. A
// study that has not got that far is taken at its plan.
func secondsPerBlock(s *study.Study) float64 {
	per := s.Plan.SlotsPerBlock()
	if len(s.Slots) > per && s.Ended.Elapsed > 0 {
		return s.Ended.Elapsed / float64(len(s.Slots)) * float64(per)
	}
	return float64(per) * (s.Plan.SettleS + s.Plan.MeasureS)
}

// A spread describes one metric of one arm over slots.
type spread struct {
	n                int
	median, min, max float64
}

func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return spread{}
	}
	return spread{n, (values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
}

// countedBlocks returns the blocks of a cell's phase that count: none of their
// slots is void, and every arm of the plan was run in them.
func countedBlocks(s *study.Study) map[int]bool {
	slots, void := map[int]int{}, map[int]bool{}
	for _, slot := range s.Slots {
		if slot.Phase == study.PhaseAB {
			slots[slot.Block]++
			void[slot.Block] = void[slot.Block] || slot.Void != ""
		}
	}
	counted := map[int]bool{}
	for b, n := range slots {
		if !void[b] && n >= s.Plan.SlotsPerBlock() {
			counted[b] = true
		}
	}
	return counted
}

// armSpread describes a metric of some arms in a cell. Blocks restricts it;
// nil takes every slot that is not void.
func armSpread(s *study.Study, arms []string, cell study.Cell, metric string, blocks map[int]bool) spread {
	var values []float64
	for _, slot := range s.Slots {
		v, ok := slot.Metrics[metric]
		if ok && slot.Phase == study.PhaseAB && slot.Void == "" && slot.Cell == cell &&
			slices.Contains(arms, slot.Arm) && (blocks == nil || blocks[slot.Block]) {
			values = append(values, v)
		}
	}
	return spreadOf(values)
}

func deviceName(s *study.Study) string {
	for _, h := range s.Environment.Hosts {
		if h.Role == s.Plan.Side || s.Plan.Side == "" && h.Role == "device" {
			return h.Device
		}
	}
	return or(s.Plan.Device, "DEV")
}

// A fact is a labelled line of the report.
type fact struct {
	label, text string
	style       style
}

// setupFacts says what setting up each arm did to the device.
func setupFacts(s *study.Study) []fact {
	var facts []fact
	for _, c := range s.Checks {
		if len(c.Knobs) == 0 && len(c.Dragged) == 0 {
			continue
		}
		var moved, stuck []string
		for _, k := range c.Knobs {
			switch {
			case k.Moved && len(k.Bits) > 0:
				moved = append(moved, changesWords(k.Bits))
			case k.Moved:
				moved = append(moved, changeWords(study.Change{Name: k.Knob, From: k.Was, To: k.Got}))
			case k.Was == k.Asked && k.Reason == "":
				moved = append(moved, k.Knob+" already "+k.Asked)
			default:
				stuck = append(stuck, fmt.Sprintf("%s did not move: asked %s, is %s%s", k.Knob, quoted(k.Asked), quoted(k.Got), after(" - ", k.Reason)))
			}
		}
		if len(stuck) > 0 {
			facts = append(facts, fact{c.Arm, strings.Join(stuck, "; "), doubt})
		}
		if len(moved) > 0 {
			facts = append(facts, fact{c.Arm, strings.Join(moved, ", "), plain})
		}
		if len(c.Dragged) > 0 {
			facts = append(facts, fact{c.Arm, "dragged along, though nobody asked: " + changesWords(c.Dragged), doubt})
		} else if len(moved) > 0 {
			facts[len(facts)-1].text += "; nothing else moved"
		}
	}
	return facts
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func after(sep, text string) string {
	if text == "" {
		return ""
	}
	return sep + text
}

// noiseFacts gives the noise floor, one line a cell. In brief only what usually
// decides.
func noiseFacts(s *study.Study, brief bool) []fact {
	var cells []study.Cell
	for _, n := range s.Noise {
		if !slices.Contains(cells, n.Cell) {
			cells = append(cells, n.Cell)
		}
	}
	facts := make([]fact, len(cells))
	names := variedCells(cells)
	for i, c := range cells {
		var words []string
		pairs := 0
		for _, n := range s.Noise {
			if n.Cell == c && (!brief || n.Metric == study.Goodput || n.Metric == study.CPUPerByte) {
				words = append(words, fmt.Sprintf("%s %.1f %%", metricName(n.Metric), 100*n.SD))
				pairs = max(pairs, n.Pairs)
			}
		}
		what, text := "equal arms: SD", strings.Join(words, ", ")
		if names[i] != "" {
			what, text = "A/A SD", names[i]+": "+text
		}
		facts[i] = fact{"noise", text + " (" + what + ", n=" + unit.Plural(int64(pairs), "pair") + ")", plain}
	}
	return facts
}

// environmentFacts says what the figures depend on.
func environmentFacts(s *study.Study) []fact {
	e := s.Environment
	kernel := or(e.Kernel, "unknown") + after(", ", cpusWords(e.CPUs))
	if len(e.Hosts) > 0 {
		kernel += parenthesis(e.Hosts[0].CPUModel)
	}
	facts := []fact{{"kernel", kernel + after(", governor ", e.Governor), plain}}
	for i := range e.Hosts {
		facts = append(facts, fact{or(e.Hosts[i].Role, "host"), hostWords(e, i), plain})
	}
	facts = append(facts, fact{"load", loadWords(s), plain})
	told := slices.ContainsFunc(e.Notes, func(n string) bool { return strings.Contains(n, "one machine") })
	if e.Shared && !told {
		facts = append(facts, fact{"note", "both ends share this machine: CPU figures are of both", doubt})
	}
	if lacksCPU(s) {
		facts = append(facts, fact{"note", "no CPU figures: the machine was busy with other work", doubt})
	}
	for _, n := range e.Notes {
		facts = append(facts, fact{"note", n, plain})
	}
	return facts
}

// lacksCPU reports whether the CPU was read and no verdict has a figure of it:
// less was used than while nothing ran.
func lacksCPU(s *study.Study) bool {
	has := func(m study.Metric) bool { return isCPU(m.Name) }
	measured := false
	for _, v := range s.Verdicts {
		if slices.ContainsFunc(v.Worth.Metrics, has) {
			return false
		}
		measured = measured || len(v.Worth.Metrics) > 0
	}
	read := func(slot study.Slot) bool {
		_, ok := slot.Evidence["device.cpu.busy_s"]
		return ok && slot.Void == ""
	}
	return measured && slices.ContainsFunc(s.Slots, read)
}

func cpusWords(n int) string {
	if n <= 0 {
		return ""
	}
	return unit.Plural(int64(n), "CPU")
}

// hostWords describes one end, as far as it is not like the first.
func hostWords(e study.Environment, i int) string {
	h, first := e.Hosts[i], e.Hosts[0]
	name := "host " + strings.TrimPrefix(h.Name, "host ")
	if !e.Shared {
		name = or(h.Hostname, name)
	}
	words := []string{name + ": " + h.Device + " (driver " + or(h.Driver, "unknown") + after(", firmware ", h.Firmware) + ")"}
	if h.MTU > 0 && (i == 0 || h.MTU != first.MTU) {
		words = append(words, fmt.Sprintf("MTU %d", h.MTU))
	}
	if h.SpeedBPS > 0 {
		words = append(words, unit.Value(h.SpeedBPS, "bit/s"))
	} else {
		words = append(words, "no link speed")
	}
	if h.Kernel != "" && h.Kernel != e.Kernel {
		words = append(words, h.Kernel)
	}
	if h.CPUModel != first.CPUModel {
		words = append(words, strings.TrimSpace(cpusWords(h.CPUs)+" "+h.CPUModel))
	}
	return strings.Join(words, ", ")
}

func loadWords(s *study.Study) string {
	l := s.Plan.Load
	words := []string{unit.Plural(int64(max(1, l.Streams)), "TCP stream")}
	if l.Congestion != "" {
		words = append(words, l.Congestion)
	}
	if l.MSS > 0 {
		words = append(words, fmt.Sprintf("MSS %d B", l.MSS))
	}
	if !l.Verify {
		words = append(words, "payload not checked")
	}
	text := strings.Join(words, ", ")
	if s.Plan.MeasureS > 0 {
		text += fmt.Sprintf("; slots of %s, %s to settle", unit.Seconds(s.Plan.MeasureS), unit.Seconds(s.Plan.SettleS))
	}
	return text
}

// pinnedFacts lists what the lab set for the study: first what both ends have in
// common.
func pinnedFacts(hosts []study.Host) []fact {
	common := map[string]string{}
	if len(hosts) == 2 {
		for k, v := range hosts[0].Pinned {
			if w, ok := hosts[1].Pinned[k]; ok && v == w {
				common[k] = v
			}
		}
	}
	var facts []fact
	add := func(who string, pinned map[string]string) {
		if len(pinned) > 0 {
			facts = append(facts, fact{"pinned", who + ": " + pinnedWords(pinned), faint})
		}
	}
	add("both ends", common)
	for _, h := range hosts {
		own := maps.Clone(h.Pinned)
		maps.DeleteFunc(own, func(k, _ string) bool { _, ok := common[k]; return ok })
		add(h.Device, own)
	}
	return facts
}

// pinnedCount says that there is more in the study file.
func pinnedCount(hosts []study.Host) []fact {
	n := 0
	for _, h := range hosts {
		n += len(h.Pinned)
	}
	if n == 0 {
		return nil
	}
	return []fact{{"pinned", unit.Plural(int64(n), "setting") + ", see the study file", faint}}
}

// maxPinned is how many settings are listed; the study file has all.
const maxPinned = 8

func pinnedWords(pinned map[string]string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(pinned)) {
		words = append(words, k+"="+quoted(pinned[k]))
	}
	text := strings.Join(words[:min(len(words), maxPinned)], " ")
	if more := len(words) - maxPinned; more > 0 {
		text += " and " + unit.Count(int64(more)) + " more (see the study file)"
	}
	return text
}

var endWords = map[string]string{
	study.EndDecided:     "every verdict decided",
	study.EndBudget:      "the budget is used up",
	study.EndInterrupted: "interrupted by the user",
	study.EndFailed:      "failed",
	study.EndSettled:     "no knob moved, so nothing had to be measured",
	"":                   "still running, or killed",
}

// endFact says how the study ended.
func endFact(s *study.Study) fact {
	text := or(endWords[s.Ended.Why], s.Ended.Why) + parenthesis(s.Ended.Text)
	if s.Ended.Why == study.EndSettled && len(s.Slots) == 0 {
		return fact{"ended", text + " (" + unit.Seconds(s.Ended.Elapsed) + ")", plain}
	}
	st := doubt
	if s.Ended.Why == study.EndDecided || s.Ended.Why == study.EndSettled {
		st = plain
	}
	return fact{"ended", text + ": " + unit.Plural(int64(s.Blocks), "block") + " of " + unit.Plural(int64(s.Plan.SlotsPerBlock()), "slot") +
		", " + unit.Seconds(s.Ended.Elapsed) + " of " + unit.Seconds(s.Plan.BudgetS), st}
}

// originFact says which program made the study, and when.
func originFact(s *study.Study) fact {
	return fact{"made by", fmt.Sprintf("offlab %s, %s, seed %d", or(s.Version, "(unknown version)"),
		s.Created.UTC().Format("2006-01-02 15:04 UTC"), s.Seed), faint}
}

// warnings lists what puts the study in doubt: its own warnings, slots that do
// not count and what the others warned of.
func warnings(s *study.Study) []fact {
	var out []fact
	add := func(text string) { out = append(out, fact{"warning", text, doubt}) }
	for _, w := range s.Warnings {
		add(w)
	}
	void, warned := map[string]int{}, map[string]int{}
	voids := 0
	for _, slot := range s.Slots {
		if slot.Void != "" {
			void[slot.Void]++
			voids++
		}
		for _, w := range slot.Warnings {
			warned[w]++
		}
	}
	if voids > 0 {
		add(fmt.Sprintf("%d of %s void, and their blocks do not count: %s",
			voids, unit.Plural(int64(len(s.Slots)), "slot"), tally(void)))
	}
	if len(warned) > 0 {
		add("slots warn: " + tally(warned))
	}
	for _, e := range s.Events {
		out = append(out, fact{"event", e.Kind + after(": ", e.Text) + ", " + e.At.UTC().Format("15:04:05 UTC"), plain})
	}
	return out
}

// maxTally is how many different texts a tally names.
const maxTally = 4

// tally lists texts with how often each occurred, the most frequent first.
func tally(count map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a, b))
	})
	var words []string
	for _, k := range keys[:min(len(keys), maxTally)] {
		words = append(words, fmt.Sprintf("%s (%d times)", k, count[k]))
	}
	if more := len(keys) - maxTally; more > 0 {
		words = append(words, fmt.Sprintf("and %d other reasons", more))
	}
	return strings.ReplaceAll(strings.Join(words, "; "), "(1 times)", "(once)")
}

// reproduce is the command that runs the study again with the same order.
func reproduce(s *study.Study) string {
	cmd := s.Plan.Command
	if cmd == "" {
		cmd = "offlab run " + strings.Join(s.Plan.Factors, " ")
	}
	if !strings.Contains(cmd, "--seed") {
		cmd += fmt.Sprintf(" --seed %d", s.Seed)
	}
	return cmd
}
