package verdict

import (
	"math"
	"slices"

	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/study"
)

// An indexed study finds the slots of the comparison by arm, cell and block.
type indexed map[study.SlotKey]map[int]*study.Slot

func index(s *study.Study) indexed {
	ix := indexed{}
	for i := range s.Slots {
		slot := &s.Slots[i]
		if slot.Phase != study.PhaseAB {
			continue
		}
		key := study.SlotKey{Arm: slot.Arm, Cell: slot.Cell}
		if ix[key] == nil {
			ix[key] = map[int]*study.Slot{}
		}
		ix[key][slot.Block] = slot // of a slot that was run again, the last counts
	}
	return ix
}

// A side of a contrast: its arms of negative or of positive weight.
type side int

const (
	neither  side = iota
	baseline      // negative weight
	arm           // positive weight: what the verdict is about
)

func sideOf(weight float64) side {
	switch {
	case weight < 0:
		return baseline
	case weight > 0:
		return arm
	default:
		return neither
	}
}

// A view is one contrast of a study and the blocks that count for it.
type view struct {
	s      *study.Study
	c      study.Contrast
	terms  []study.Term // those of some weight
	blocks [][]*study.Slot
	voids  []string // reasons of the blocks dropped
}

// newView collects the complete blocks of a contrast. A block with a void slot
// is dropped; one that lacks a slot, since it is not finished, is left out.
func newView(s *study.Study, ix indexed, c study.Contrast) *view {
	w := &view{s: s, c: c}
	seen := map[int]bool{}
	for _, t := range c.Terms {
		if sideOf(t.Weight) == neither {
			continue
		}
		w.terms = append(w.terms, t)
		for b := range ix[study.SlotKey{Arm: t.Arm, Cell: c.Cell}] {
			seen[b] = true
		}
	}
	numbers := make([]int, 0, len(seen))
	for b := range seen {
		numbers = append(numbers, b)
	}
	slices.Sort(numbers)
	for _, b := range numbers {
		w.addBlock(ix, b)
	}
	return w
}

func (w *view) addBlock(ix indexed, b int) {
	row := make([]*study.Slot, len(w.terms))
	missing, void := false, ""
	for i, t := range w.terms {
		slot := ix[study.SlotKey{Arm: t.Arm, Cell: w.c.Cell}][b]
		switch {
		case slot == nil:
			missing = true
		case slot.Void != "":
			void = slot.Void
		}
		row[i] = slot
	}
	switch {
	case void != "":
		w.voids = append(w.voids, void)
	case !missing:
		w.blocks = append(w.blocks, row)
	}
}

// A figure is read off a slot; false: the slot does not have it.
type figure func(*study.Slot) (float64, bool)

func metricOf(name string) figure {
	return func(s *study.Slot) (float64, bool) {
		v, ok := s.Metrics[name]
		return v, ok
	}
}

// positive is f without values that have no logarithm.
func positive(f figure) figure {
	return func(s *study.Slot) (float64, bool) {
		v, ok := f(s)
		return v, ok && v > 0 && !math.IsInf(v, 0)
	}
}

// A table has the values of a figure: a row for each block in which every slot
// has it, a column for each term.
type table struct {
	terms       []study.Term
	interaction bool
	counts      bool // may be 0: no logarithms
	rows        [][]float64
	blocks      [][]*study.Slot // of the rows
}

func (w *view) table(f figure) table {
	t := table{terms: w.terms, interaction: w.c.Interaction}
	for _, slots := range w.blocks {
		row := make([]float64, len(slots))
		whole := true
		for i, slot := range slots {
			v, ok := f(slot)
			row[i], whole = v, whole && ok
		}
		if whole {
			t.rows, t.blocks = append(t.rows, row), append(t.blocks, slots)
		}
	}
	return t
}

// ratios returns the contrast of each block: the weighted sum of logarithms.
func (t table) ratios() []float64 {
	d := make([]float64, len(t.rows))
	for i, row := range t.rows {
		d[i] = t.weigh(row)
	}
	return d
}

func (t table) weigh(row []float64) float64 {
	sum := 0.0
	for i, v := range row {
		sum += t.terms[i].Weight * math.Log(v)
	}
	return sum
}

// sides returns the medians over blocks of baseline and arm; of several arms on
// one side, as the main effect of a factorial has, their geometric mean.
//
// An interaction has no arm that it compares with. Its arm is the last of
// positive weight, in which every factor has its second value, and its baseline
// what that arm would show if the effects multiplied.
func (t table) sides() (base, treated float64) {
	if len(t.rows) == 0 {
		return 0, 0
	}
	medians := make([]float64, len(t.terms))
	for i := range t.terms {
		column := make([]float64, len(t.rows))
		for j, row := range t.rows {
			column[j] = row[i]
		}
		medians[i] = stats.Median(column)
	}
	if t.interaction {
		for i, term := range t.terms {
			if sideOf(term.Weight) == arm {
				treated = medians[i]
			}
		}
		return bounded(treated / math.Exp(t.weigh(medians))), bounded(treated)
	}
	return t.mean(medians, baseline), t.mean(medians, arm)
}

// mean is the weighted geometric mean of one side, of counts the arithmetic one.
func (t table) mean(v []float64, of side) float64 {
	var sum, weight, only float64
	n := 0
	for i, term := range t.terms {
		if sideOf(term.Weight) == of {
			n++
			only = v[i]
			weight += math.Abs(term.Weight)
			sum += math.Abs(term.Weight) * t.scale(v[i])
		}
	}
	if n == 1 {
		return bounded(only) // exactly, rather than through a logarithm
	}
	switch {
	case n == 0:
		return 0
	case t.counts:
		return bounded(sum / weight)
	default:
		return bounded(math.Exp(sum / weight))
	}
}

func (t table) scale(x float64) float64 {
	if t.counts {
		return x
	}
	return math.Log(x)
}

// bounded keeps figures finite, whatever was measured: reports and JSON have no
// infinity.
func bounded(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}

// armFirst returns for each block of the table whether the arm's slot ran
// before its baseline's, and nil for a contrast of more than two arms.
func (t table) armFirst() []bool {
	if len(t.terms) != 2 || sideOf(t.terms[0].Weight) == sideOf(t.terms[1].Weight) {
		return nil
	}
	a, b := 0, 1
	if sideOf(t.terms[0].Weight) == baseline {
		a, b = 1, 0
	}
	first := make([]bool, len(t.blocks))
	for i, slots := range t.blocks {
		first[i] = slots[a].Order < slots[b].Order
	}
	return first
}

// Roles of the two ends.
const (
	roleDevice = "device"
	rolePeer   = "peer"
	roleSink   = "sink" // behind the device's host, where that is a router
)

func other(role string) string {
	if role == rolePeer {
		return roleDevice
	}
	return rolePeer
}

// sender returns the role of the end that sends the data of the cell.
func (w *view) sender() string { return roleOf(w.c.Cell.Direction == "rx") }

// source returns the role of the host whose TCP sends the data: on the forwarded
// path the device is not at the end.
func (w *view) source() string {
	if w.c.Cell.Path == string(study.PathForwarded) && w.sender() == roleDevice {
		return roleSink
	}
	return w.sender()
}

func (w *view) receiver() string { return roleOf(w.c.Cell.Direction != "rx") }

func roleOf(peer bool) string {
	if peer {
		return rolePeer
	}
	return roleDevice
}

// knobEnd is the role of the end whose device is changed: the device under test,
// on whichever side of the lab it is.
const knobEnd = roleDevice

// host returns the host of a role, nil if it is not known.
func (w *view) host(role string) *study.Host {
	for i, h := range w.s.Environment.Hosts {
		if h.Role == role {
			return &w.s.Environment.Hosts[i]
		}
	}
	return nil
}
