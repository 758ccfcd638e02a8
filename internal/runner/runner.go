package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

// A Rig is what a study runs on: two hosts, the device under test, a load
// between them.
type Rig interface {
	// Check brings an arm about and reports what it did to the device.
	Check(ctx context.Context, arm study.Arm) (study.ArmCheck, error)
	// Run runs one slot. An error that wraps ErrGone ends the study; what else
	// goes wrong in a slot is its Void.
	Run(ctx context.Context, spec Spec) (study.Slot, error)
}

// ErrGone is wrapped by errors after which no further slot can run: something of
// the environment gave way.
var ErrGone = errors.New("the study cannot go on")

// A Spec tells a rig what to run.
type Spec struct {
	Arm      study.Arm
	Cell     study.Cell
	Load     study.Load
	SettleS  float64
	MeasureS float64
}

// A Journal keeps what was measured as it comes.
type Journal interface {
	Begin(*study.Study) error
	Slot(study.Slot) error
	Noise(study.Noise) error
	End(study.End) error
}

// Progress is what an observer sees. Verdicts are those as of the last block.
type Progress struct {
	Elapsed, Budget float64 // seconds
	Phase           string
	Block, Slot     int
	SlotsPerBlock   int
	Arm             string
	Goodput         float64 // of the last slot, bit/s
	Verdicts        []study.Verdict
}

// Options of a run.
type Options struct {
	Now      func() time.Time
	Observe  func(Progress) // called before each slot and after each block
	Journal  Journal
	Warn     func(string) // called once, before the start, with what the user should know
	Overhead float64      // seconds that a slot takes beside settling and measuring, a first guess
}

// run is one execution.
type run struct {
	Options
	rig     Rig
	s       *study.Study
	start   time.Time
	before  float64 // seconds that an earlier run of a resumed study took
	voids   int
	verdict []study.Verdict
}

// maxVoid is how many slots in a row may be void before the study gives up.
const maxVoid = 6

// Run checks the arms and then measures until every verdict is decided, the
// budget is gone or ctx ends. The study is filled in as far as it got, whatever
// the error.
func Run(ctx context.Context, s *study.Study, rig Rig, o Options) error {
	r := &run{Options: o, rig: rig, s: s, start: o.Now(), before: s.Ended.Elapsed}
	s.Ended = study.End{}
	err := r.all(ctx)
	s.Ended.Elapsed = r.elapsed()
	if err != nil {
		s.Ended.Why, s.Ended.Text = study.EndFailed, err.Error()
	}
	if ctx.Err() != nil {
		s.Ended.Why, s.Ended.Text = study.EndInterrupted, ""
		err = nil
	}
	s.Blocks = s.CountBlocks()
	s.Verdicts = verdict.Make(s)
	return errors.Join(err, r.Journal.End(s.Ended))
}

func (r *run) elapsed() float64 { return r.before + r.Now().Sub(r.start).Seconds() }

func (r *run) all(ctx context.Context) error {
	resumed := len(r.s.Slots) > 0
	if err := r.check(ctx); err != nil {
		return err
	}
	if len(r.slots()) == 0 {
		r.s.Ended.Why = study.EndSettled
		return r.Journal.Begin(r.s)
	}
	if !resumed {
		r.pace()
		if err := r.Journal.Begin(r.s); err != nil {
			return err
		}
	}
	if err := r.aa(ctx); err != nil {
		return err
	}
	return r.blocks(ctx)
}

// check brings every arm about once, so that a knob that does not move is known
// before time is spent on it.
func (r *run) check(ctx context.Context) error {
	r.s.Checks = nil
	for _, arm := range r.s.Plan.Arms {
		c, err := r.rig.Check(ctx, arm)
		if err != nil {
			return fmt.Errorf("arm %s: %w", arm.Name, err)
		}
		r.s.Checks = append(r.s.Checks, c)
	}
	_, err := r.rig.Check(ctx, study.Arm{Name: study.Current})
	return err
}

// slots returns the slots of a block: those of every contrast all of whose arms
// moved.
func (r *run) slots() []study.SlotKey {
	p := r.s.Plan
	p.Contrast = slices.DeleteFunc(slices.Clone(p.Contrast), func(c study.Contrast) bool {
		return slices.ContainsFunc(c.Terms, func(t study.Term) bool { _, stuck := r.s.Stuck(t.Arm); return stuck })
	})
	return p.BlockSlots()
}

// cellsOf returns the cells of slots in the order they appear.
func cellsOf(keys []study.SlotKey) []study.Cell {
	var cells []study.Cell
	for _, k := range keys {
		if !slices.Contains(cells, k.Cell) {
			cells = append(cells, k.Cell)
		}
	}
	return cells
}

// pace divides the budget.
func (r *run) pace() {
	p := &r.s.Plan
	slots := r.slots()
	overhead := p.SettleS + r.Overhead
	pc := spend(p.BudgetS-r.elapsed(), overhead, len(slots), len(cellsOf(slots)))
	if p.MeasureS == 0 {
		p.MeasureS = pc.MeasureS
	}
	p.AABlocks = pc.AABlocks
	if w := tooShort(p, pc, overhead); w != "" {
		r.s.Warnings = append(r.s.Warnings, w)
		if r.Warn != nil {
			r.Warn(w)
		}
	}
}

// aa runs the current state against itself, which shows the noise floor.
func (r *run) aa(ctx context.Context) error {
	for b := count(r.s, study.PhaseAA); b < r.s.Plan.AABlocks; b++ {
		var keys []study.SlotKey
		for _, cell := range cellsOf(r.slots()) {
			arm := r.aaArm(cell)
			keys = append(keys, study.SlotKey{Arm: arm, Cell: cell}, study.SlotKey{Arm: arm, Cell: cell})
		}
		if err := r.block(ctx, study.PhaseAA, b, keys); err != nil {
			return err
		}
		if r.voids > 0 { // an arm that does not work has no noise, and takes its time
			break
		}
	}
	r.s.Noise = noise(r.s)
	for _, n := range r.s.Noise {
		if err := r.Journal.Noise(n); err != nil {
			return err
		}
	}
	return nil
}

// aaArm is the arm that the A/A phase of a cell repeats: the current state
// where the study has it.
func (r *run) aaArm(cell study.Cell) string {
	arm := ""
	for _, k := range r.slots() {
		if k.Cell == cell && (arm == "" || k.Arm == study.Current) {
			arm = k.Arm
		}
	}
	return arm
}

func (r *run) blocks(ctx context.Context) error {
	slots := r.slots()
	for b := count(r.s, study.PhaseAB); ; b++ {
		if !r.fits(len(slots)) {
			r.s.Ended.Why = study.EndBudget
			return nil
		}
		if err := r.block(ctx, study.PhaseAB, b, shuffle(slots, r.s.Seed, b)); err != nil {
			return err
		}
		r.s.Blocks = r.s.CountBlocks()
		r.verdict = verdict.Make(r.s)
		r.observe(study.PhaseAB, b, len(slots), len(slots), "")
		if !slices.ContainsFunc(r.verdict, func(v study.Verdict) bool { return !verdict.Decided(v) }) {
			r.s.Ended.Why = study.EndDecided
			return nil
		}
	}
}

// fits reports whether another block ends within the budget. The first always
// does: a study without a block answers nothing.
func (r *run) fits(slots int) bool {
	if count(r.s, study.PhaseAB) == 0 {
		return true
	}
	p := r.s.Plan
	return r.elapsed()+float64(slots)*(p.SettleS+p.MeasureS+r.Overhead) <= p.BudgetS
}

// block runs the given slots in order and appends them to the journal.
func (r *run) block(ctx context.Context, phase string, b int, keys []study.SlotKey) error {
	for i, k := range keys {
		r.observe(phase, b, i, len(keys), k.Arm)
		arm, _ := r.s.Plan.FindArm(k.Arm)
		p := r.s.Plan
		began := r.Now()
		slot, err := r.rig.Run(ctx, Spec{arm, k.Cell, p.Load, p.SettleS, p.MeasureS})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		slot.Phase, slot.Block, slot.Order, slot.Arm, slot.Cell, slot.Started = phase, b, i, k.Arm, k.Cell, began
		if err != nil {
			slot.Void = err.Error()
		}
		r.s.Slots = append(r.s.Slots, slot)
		if jerr := r.Journal.Slot(slot); jerr != nil {
			return jerr
		}
		if err := r.fatal(slot, err); err != nil {
			return err
		}
		took := r.Now().Sub(began).Seconds() - slot.MeasuredS - slot.SettleS
		r.Overhead += (took - r.Overhead) / 8 // a running mean: the first guess is forgotten
	}
	return nil
}

// fatal decides whether the study can go on after a slot.
func (r *run) fatal(slot study.Slot, err error) error {
	if errors.Is(err, ErrGone) {
		return err
	}
	if slot.Void == "" {
		r.voids = 0
		return nil
	}
	r.voids++
	if r.voids >= maxVoid || r.elapsed() > r.s.Plan.BudgetS {
		return fmt.Errorf("%w: the last %d slots were void: %s", ErrGone, r.voids, slot.Void)
	}
	return nil
}

func (r *run) observe(phase string, b, i, n int, arm string) {
	if r.Observe == nil {
		return
	}
	p := Progress{
		Elapsed: r.elapsed(), Budget: r.s.Plan.BudgetS, Phase: phase,
		Block: b, Slot: i, SlotsPerBlock: n, Arm: arm, Verdicts: r.verdict,
	}
	if n := len(r.s.Slots); n > 0 {
		p.Goodput = r.s.Slots[n-1].Metrics[study.Goodput]
	}
	r.Observe(p)
}

// shuffle puts the slots of block b into their order: cells at random, and the
// arms of a cell at random next to each other, so that what drifts touches the
// arms of a comparison alike. The order is a function of seed and block: a
// resumed study goes on as it would have.
func shuffle(keys []study.SlotKey, seed uint32, b int) []study.SlotKey {
	rng := rand.New(rand.NewPCG(uint64(seed), uint64(b)))
	cells := cellsOf(keys)
	rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	var out []study.SlotKey
	for _, c := range cells {
		var arms []study.SlotKey
		for _, k := range keys {
			if k.Cell == c {
				arms = append(arms, k)
			}
		}
		rng.Shuffle(len(arms), func(i, j int) { arms[i], arms[j] = arms[j], arms[i] })
		out = append(out, arms...)
	}
	return out
}

// count returns the number of blocks begun in a phase.
func count(s *study.Study, phase string) int {
	n := 0
	for _, slot := range s.Slots {
		if slot.Phase == phase {
			n = max(n, slot.Block+1)
		}
	}
	return n
}

// noise measures the spread of the A/A pairs.
func noise(s *study.Study) []study.Noise {
	var out []study.Noise
	for _, cell := range s.Plan.Cells {
		for _, m := range study.Metrics {
			if m.Count {
				continue
			}
			if d := aaRatios(s, cell, m.Name); len(d) >= 2 {
				out = append(out, study.Noise{Cell: cell, Metric: m.Name, SD: stats.SD(d), Pairs: len(d)})
			}
		}
	}
	return out
}

// aaRatios returns the log ratios of the two slots of each A/A block.
func aaRatios(s *study.Study, cell study.Cell, metric string) []float64 {
	first := map[int]float64{}
	var d []float64
	for _, slot := range s.Slots {
		if slot.Phase != study.PhaseAA || slot.Void != "" || slot.Cell != cell {
			continue
		}
		v := slot.Metrics[metric]
		a, seen := first[slot.Block]
		if !seen {
			first[slot.Block] = v
			continue
		}
		if r, err := stats.LogRatio(a, v); err == nil {
			d = append(d, r)
		}
	}
	return d
}
