package report

import (
	"fmt"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// A LiveState is how far a running study is.
type LiveState struct {
	Elapsed, Budget float64 // seconds
	Block           int     // from 0, counted for each phase, as in study.Slot
	Slot            int     // slots of the block that are done
	SlotsPerBlock   int
	Arm             string // being measured now
	Phase           string // study.PhaseAA or study.PhaseAB; empty while the study is set up
	GoodputNow      float64
	Verdicts        []study.Verdict // as they stand; may be empty
}

// Live formats the state as one line of at most room columns, for a terminal
// that overwrites it. What has no room is left out, the least important first.
func Live(room int, st LiveState) string {
	head, clock, verdict, rate := liveHead(st), liveClock(st), liveVerdict(st), ""
	if st.GoodputNow > 0 && st.Phase != "" {
		rate = unit.Value(st.GoodputNow, "bit/s")
	}
	for _, try := range []struct {
		head   string
		bar    int
		extras []string
	}{
		{head, 16, []string{rate, verdict}},
		{head, 12, []string{rate, verdict}},
		{head, 12, []string{verdict}},
		{head, 6, []string{verdict}},
		{"", 6, []string{verdict}},
		{head, 6, nil},
		{"", 6, nil},
	} {
		line := liveBar(st, try.bar) + " " + clock
		if try.head != "" {
			line = try.head + " " + line
		}
		for _, extra := range try.extras {
			line += after(" · ", extra)
		}
		if width(line) <= room {
			return line
		}
	}
	return shorten(clock, max(1, room))
}

// LivePlain formats the state as a line for a log: one a block, in ASCII.
func LivePlain(st LiveState) string {
	parts := []string{liveHead(st), fmt.Sprintf("slot %d/%d", st.Slot, st.SlotsPerBlock), liveClock(st)}
	if st.Phase == "" {
		parts = []string{liveHead(st), liveClock(st)}
	}
	for _, v := range st.Verdicts {
		parts = append(parts, liveEffect(v))
	}
	return ascii(clean(strings.Join(parts, " · ")))
}

func liveHead(st LiveState) string {
	head := "setting up"
	switch st.Phase {
	case study.PhaseAA:
		head = fmt.Sprintf("noise floor %d", st.Block+1)
	case study.PhaseAB:
		head = fmt.Sprintf("block %d", st.Block+1)
	}
	return head + after(" · ", shorten(clean(st.Arm), 24))
}

func liveClock(st LiveState) string { return fmt.Sprintf("%.0f/%.0f s", st.Elapsed, st.Budget) }

// liveVerdict is the verdict that the study still waits for: the first that is
// not decided, or else the last.
func liveVerdict(st LiveState) string {
	open, decided := -1, 0
	for i, v := range st.Verdicts {
		switch m, ok := primaryOf(v); {
		case ok && !m.Decided && open < 0:
			open = i
		case !ok, m.Decided:
			decided++
		}
	}
	n := len(st.Verdicts)
	switch {
	case n == 0:
		return ""
	case open < 0:
		open = n - 1
	}
	text := liveEffect(st.Verdicts[open])
	if n > 1 {
		text = fmt.Sprintf("%d/%d decided · %s", decided, n, text)
	}
	return text
}

func liveEffect(v study.Verdict) string {
	knob := shorten(clean(v.Knob), 24)
	m, ok := primaryOf(v)
	switch {
	case v.Acts.Answer == study.No:
		return knob + " does not act"
	case v.Right.Answer == study.Wrong:
		return knob + " WRONG"
	case !ok:
		return knob + " ..."
	}
	text := knob + " " + shortEffect(m) + " " + blocksWords(m)
	if m.Decided {
		text += " " + shortWord(m.Answer).text
	}
	return text
}

func shortEffect(m study.Metric) string {
	low, high := m.Useful()
	if m.Low != nil && m.High != nil && low == nil && high == nil {
		return unit.Percent(m.Effect) + " " + shortBound
	}
	return unit.ShortEffect(m.Effect, low, high)
}

// liveBar draws how much of the budget is used, n columns wide.
func liveBar(st LiveState, n int) string {
	done := 0
	if st.Budget > 0 {
		done = min(n, max(0, int(st.Elapsed/st.Budget*float64(n))))
	}
	return "▕" + strings.Repeat("█", done) + strings.Repeat("░", n-done) + "▏"
}
