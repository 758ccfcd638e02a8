package runner

import (
	"fmt"
	"math"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// A pace is how a budget is spent.
type pace struct {
	AABlocks int
	MeasureS float64
	Blocks   int // that fit, the A/A phase apart
}

// Figures of the pace. Many short slots beat few long ones as long as a slot is
// longer than the clock of its figures: the interval shrinks with the number of
// blocks, drift is the smaller the closer two arms lie, and the CPU figure of
// /proc/stat moves in steps of 10 ms.
const (
	shortest   = 0.5 // s measured in a slot
	longest    = 5.0
	wantBlocks = 24   // enough to settle 2 % at the noise of an ordinary machine
	needBlocks = 7    // the sign-flip guard cannot decide with fewer at 5 %
	aaShare    = 0.25 // of the budget, at most
	maxAA      = 4
)

// plan spends a budget of seconds on blocks of the given number of slots, when
// each slot takes overhead seconds beside what it measures.
func spend(budget, overhead float64, slots, cells int) pace {
	p := pace{}
	per := budget / float64(wantBlocks*slots+2*cells*maxAA)
	p.MeasureS = math.Round(10*min(max(per-overhead, shortest), longest)) / 10
	slot := p.MeasureS + overhead
	p.AABlocks = min(maxAA, max(2, int(aaShare*budget/(slot*2*float64(cells)))))
	p.Blocks = int((budget - slot*float64(2*cells*p.AABlocks)) / (slot * float64(slots)))
	return p
}

// needed returns the budget, in seconds, that could decide a large effect.
func needed(overhead float64, slots, cells, contrasts int) float64 {
	// Sharing alpha between k verdicts costs the guard log2(k) more blocks.
	blocks := needBlocks + math.Ceil(math.Log2(float64(max(1, contrasts))))
	return math.Ceil((blocks*float64(slots) + 4*float64(cells)) * (shortest + overhead))
}

// tooShort says, before anything is measured, that the budget cannot decide.
func tooShort(p *study.Plan, pc pace, overhead float64) string {
	want := needed(overhead, p.SlotsPerBlock(), len(p.Cells), len(p.Contrast))
	if p.BudgetS >= want || pc.Blocks >= needBlocks+int(math.Ceil(math.Log2(float64(len(p.Contrast))))) {
		return ""
	}
	return fmt.Sprintf("%.0f s hold %s of %d slots, too few to decide; --budget %.0fs could decide a large effect",
		p.BudgetS, unit.Plural(int64(max(0, pc.Blocks)), "block"), p.SlotsPerBlock(), want)
}
