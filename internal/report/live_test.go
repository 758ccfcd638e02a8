package report_test

import (
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/offlab/offlab/internal/report"
	"github.com/offlab/offlab/internal/study"
)

func liveState() report.LiveState {
	return report.LiveState{
		Elapsed: 23, Budget: 40, Block: 4, Slot: 1, SlotsPerBlock: 2, Arm: "tso=off", Phase: study.PhaseAB, GoodputNow: 11.9e9,
		Verdicts: []study.Verdict{{Knob: "tso", Worth: study.Worth{Primary: study.Goodput, Metrics: []study.Metric{
			{Name: study.Goodput, Effect: 0.712, Low: new(0.52), High: new(0.9), Blocks: 5, Answer: study.Inconclusive},
		}}}},
	}
}

func TestLive(t *testing.T) {
	st := liveState()
	start := report.LiveState{Budget: 40, Arm: "tso=off"}
	aa := report.LiveState{Elapsed: 3, Budget: 40, Block: 1, Arm: study.Current, Phase: study.PhaseAA, GoodputNow: 20.4e9}
	two := liveState()
	done := two.Verdicts[0]
	done.Knob = "gro"
	done.Worth.Metrics = []study.Metric{{Name: study.Goodput, Effect: 0.01, Low: new(0.0), High: new(0.01), Blocks: 5, Answer: study.Same, Decided: true}}
	two.Verdicts = append([]study.Verdict{done}, two.Verdicts...)
	for _, test := range []struct {
		width int
		st    report.LiveState
		want  string
	}{
		{120, st, "block 5 · tso=off ▕█████████░░░░░░░▏ 23/40 s · 11.9 Gbit/s · tso +71 % [+52, +90] n=5"},
		{80, st, "block 5 · tso=off ▕██████░░░░░░▏ 23/40 s · tso +71 % [+52, +90] n=5"},
		{64, st, "block 5 · tso=off ▕███░░░▏ 23/40 s · tso +71 % [+52, +90] n=5"},
		{50, st, "▕███░░░▏ 23/40 s · tso +71 % [+52, +90] n=5"},
		{40, st, "block 5 · tso=off ▕███░░░▏ 23/40 s"},
		{20, st, "▕███░░░▏ 23/40 s"},
		{8, st, "23/40 s"},
		{4, st, "23/…"},
		{80, start, "setting up · tso=off ▕░░░░░░░░░░░░░░░░▏ 0/40 s"},
		{80, aa, "noise floor 2 · current ▕█░░░░░░░░░░░░░░░▏ 3/40 s · 20.4 Gbit/s"},
		{98, two, "block 5 · tso=off ▕██████░░░░░░▏ 23/40 s · 11.9 Gbit/s · 1/2 decided · tso +71 % [+52, +90] n=5"},
	} {
		if got := report.Live(test.width, test.st); got != test.want {
			t.Errorf("Live(%d) = %q, want %q", test.width, got, test.want)
		}
	}
}

func TestLivePlain(t *testing.T) {
	for _, test := range []struct {
		st   report.LiveState
		want string
	}{
		{liveState(), "block 5, tso=off, slot 1/2, 23/40 s, tso +71 % [+52, +90] n=5"},
		{report.LiveState{Budget: 40}, "setting up, 0/40 s"},
	} {
		if got := report.LivePlain(test.st); got != test.want {
			t.Errorf("LivePlain = %q, want %q", got, test.want)
		}
	}
}

// TestLiveIsOneLine: no width is exceeded, whatever the arm and knob are called.
func TestLiveIsOneLine(t *testing.T) {
	st := liveState()
	st.Arm, st.Verdicts[0].Knob = "\x1b[2J\r\n漢字漢字漢字漢字漢字漢字漢字漢字漢字", strings.Repeat("\x1bx\n", 50)
	wide := &runewidth.Condition{StrictEmojiNeutral: true}
	for width := 1; width < 150; width++ {
		if got := report.Live(width, st); wide.StringWidth(got) > width || strings.ContainsAny(got, "\x1b\r\n") {
			t.Errorf("Live(%d) = %q", width, got)
		}
	}
	if got := report.LivePlain(st); strings.ContainsAny(got, "\x1b\r\n") {
		t.Errorf("LivePlain = %q", got)
	}
}
