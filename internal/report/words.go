package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// contrastWords names what a verdict compares: "tso on against off".
func contrastWords(v study.Verdict) string {
	if v.Interaction {
		return v.Knob + " together: interaction"
	}
	return v.Knob + " " + quoted(v.Arm) + " against " + quoted(v.Baseline)
}

// shortContrast is contrastWords for a table.
func shortContrast(v study.Verdict) string {
	if v.Interaction {
		return v.Knob
	}
	return v.Knob + " " + quoted(v.Arm) + "/" + quoted(v.Baseline)
}

// quoted sets values that are not one word apart from the words around them.
func quoted(value string) string {
	if value == "" || strings.ContainsAny(value, " \t\n") {
		return `"` + value + `"`
	}
	return value
}

var familyWords = map[string]string{"ipv4": "IPv4", "ipv6": "IPv6"}

var directionWords = map[string]string{"tx": "sending", "rx": "receiving"}

// cellWords names a cell: "base · IPv4 · bulk · sending".
func cellWords(c study.Cell) string {
	var words []string
	for _, w := range []string{c.Path, or(familyWords[c.Family], c.Family), c.Load, or(directionWords[c.Direction], c.Direction)} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " · ")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// An answer is a word for people, with the style it is shown in.
var answerWords = map[string]span{
	study.Yes:          {"yes", good},
	study.No:           {"no", doubt},
	study.Wrong:        {"WRONG", bad},
	study.CannotTell:   {"cannot tell", doubt},
	study.Better:       {"better", good},
	study.Worse:        {"worse", bad},
	study.Same:         {"no material difference", strong},
	study.Small:        {"real but small", doubt},
	study.Inconclusive: {"inconclusive", doubt},
	"":                 {"-", faint},
}

func answerWord(answer string) span {
	if w, ok := answerWords[answer]; ok {
		return w
	}
	return span{shorten(clean(answer), 16), doubt}
}

// shortWord is answerWord for a narrow column.
func shortWord(answer string) span {
	w := answerWord(answer)
	switch answer {
	case study.Inconclusive:
		w.text = "open"
	case study.Same:
		w.text = "same"
	case study.Small:
		w.text = "small"
	case study.CannotTell:
		w.text = "unclear"
	}
	return w
}

// metricNames are the names that a table has room for.
var metricNames = map[string]string{
	study.CPUPerByte:   "CPU/byte",
	study.CPUSender:    "CPU/byte, sender",
	study.CPUReceiver:  "CPU/byte, receiver",
	study.CPUPerPacket: "CPU/packet",
}

func metricName(name string) string { return or(metricNames[name], strings.ReplaceAll(name, "_", " ")) }

// rowName is metricName in a table where the ends' shares stand under the sum.
func rowName(name string) string {
	_, end, _ := strings.Cut(metricNames[name], ", ")
	return or(after("- ", end), metricName(name))
}

func metricInfo(name string) study.MetricInfo {
	for _, m := range study.Metrics {
		if m.Name == name {
			return m
		}
	}
	return study.MetricInfo{Name: name}
}

// primaryOf returns the metric that decides the verdict.
func primaryOf(v study.Verdict) (study.Metric, bool) {
	for _, m := range v.Worth.Metrics {
		if m.Name == v.Worth.Primary {
			return m, true
		}
	}
	return study.Metric{}, false
}

// actsWords and rightWords give the sentence after the answer.
func actsWords(v study.Verdict) string { return answerText(v.Acts) }

func rightWords(v study.Verdict) string {
	if v.Right.Answer == "" {
		return "not asked: " + notActing(v)
	}
	return answerText(v.Right)
}

// answerText is the line of an answer, or else the text of its best proof.
func answerText(a study.Answer) string {
	if a.Text != "" {
		return a.Text
	}
	for _, p := range slices.Backward(a.Proof) {
		if p.Text != "" {
			return p.Text
		}
	}
	return "no proof was recorded"
}

func notActing(v study.Verdict) string {
	switch {
	case v.Acts.Answer == study.No:
		return "it does not act"
	case v.Right.Answer == study.Wrong:
		return "what is wrong is not worth anything"
	}
	return "nothing was measured"
}

// worthWords explains the answer to "is it worth it" to who meets it for the
// first time.
func worthWords(s *study.Study, v study.Verdict) string {
	if v.Worth.Answer == "" {
		return "not asked: " + notActing(v)
	}
	metric, rope := metricName(v.Worth.Primary), ropeWords(v.Worth.Primary)
	var text string
	switch v.Worth.Answer {
	case study.Better, study.Worse:
		text = "in " + metric + ", by more than " + rope
	case study.Same:
		text = "any difference in " + metric + " is less than " + rope
	case study.Small:
		text = metric + " differs, perhaps by less than " + rope
	case study.Inconclusive:
		text = moreWords(s, v)
	}
	if v.Worth.Why != "" {
		return v.Worth.Why + after("; ", text)
	}
	return text
}

func ropeWords(metric string) string {
	rope := metricInfo(metric).ROPE
	if rope == 0 {
		return "it takes to matter"
	}
	return fmt.Sprintf("the %g %% it takes to matter", 100*rope)
}

// moreWords says what it would take to decide.
func moreWords(s *study.Study, v study.Verdict) string {
	m, ok := primaryOf(v)
	if !ok || m.MoreBlocks <= 0 {
		return "the data do not say yet how many more blocks it takes"
	}
	text := "needs about " + unit.Plural(int64(m.MoreBlocks), "more block")
	if each := secondsPerBlock(s); each > 0 {
		text += ", some " + unit.Seconds(roundUp(each*float64(m.MoreBlocks))) + " more"
	}
	return text
}

// roundUp makes an estimate look like one.
func roundUp(s float64) float64 {
	step := 5.0
	if s > 120 {
		step = 60
	}
	return math.Ceil(s/step) * step
}

var actionWords = map[string]string{
	study.KeepOn:  "keep on",
	study.TurnOn:  "turn on",
	study.TurnOff: "turn off",
	study.Leave:   "no reason to touch it",
}

// adviceWords is the recommendation in one line.
func adviceWords(v study.Verdict) string {
	if v.Worth.Answer == study.Inconclusive && v.Advice.Action == study.Leave {
		return or(v.Advice.Text, "not decided")
	}
	return or(v.Advice.Text, or(actionWords[v.Advice.Action], v.Advice.Action))
}

// adviceCommand is the command of an advice that asks for a change.
func adviceCommand(a study.Advice) string {
	if a.Action == study.KeepOn || a.Action == study.Leave {
		return ""
	}
	return a.Command
}

// quantity is a value of a metric with its unit. Counts are of a slot.
func quantity(m study.Metric, v float64) string { return unit.Value(v, m.Unit) + perSlot(m) }

// pairWords is the change of a metric's medians.
func pairWords(m study.Metric) string { return unit.Pair(m.Baseline, m.Arm, m.Unit) + perSlot(m) }

func perSlot(m study.Metric) string {
	if metricInfo(m.Name).Count {
		return " a slot"
	}
	return ""
}

// effectWords is the change with its interval; a count has none.
func effectWords(m study.Metric) string {
	if metricInfo(m.Name).Count || m.Blocks == 0 {
		return ""
	}
	low, high := m.Useful()
	if low == nil && high == nil {
		return unit.Percent(m.Effect) + " " + noBound
	}
	return unit.Effect(m.Effect, low, high)
}

// noBound stands for an interval that tells nothing, shortBound where there is
// little room.
const (
	noBound    = "[no useful bound yet]"
	shortBound = "[no bound yet]"
)

func blocksWords(m study.Metric) string { return "n=" + unit.Count(int64(m.Blocks)) }

// confidence is "95 %" for an alpha of 0.05.
func confidence(s *study.Study) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", 100*(1-s.Plan.Alpha)), "0"), ".") + " %"
}

// proofValue shows one side of a proof: numbers with three digits, states as
// they are. What was not read is "none", which is not 0.
func proofValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case float64:
		if math.Abs(v) >= 1e7 { // bytes and packets of a whole study
			return strings.TrimSuffix(unit.Value(v, "B"), "B")
		}
		return unit.Value(v, "1")
	case string:
		return or(v, "none")
	}
	return fmt.Sprint(v)
}

// proofPair shows both sides of a proof. A whole number next to one that is not
// gets the same digits.
func proofPair(p study.Proof) (baseline, arm string) {
	x, xok := p.Baseline.(float64)
	y, yok := p.Arm.(float64)
	if xok && yok && (x != math.Trunc(x) || y != math.Trunc(y)) {
		return unit.Number(x), unit.Number(y)
	}
	return proofValue(p.Baseline), proofValue(p.Arm)
}

// proofWords is a proof in one line, without its layer and source. Text that
// gives the figures itself is enough.
func proofWords(p study.Proof) string {
	_, number := p.Arm.(float64)
	state, _ := p.Arm.(string)
	if p.Baseline == nil && p.Arm == nil || strings.Contains(p.Text, " -> ") || number && strings.ContainsAny(p.Text, "0123456789") ||
		slices.Contains(strings.Fields(p.Text), state) {
		return p.Text
	}
	baseline, arm := proofPair(p)
	return strings.TrimSpace(strings.TrimSpace(baseline) + " -> " + strings.TrimSpace(arm) + " " + p.Text)
}

func changeWords(c study.Change) string {
	return c.Name + " " + or(c.From, "none") + " -> " + or(c.To, "none")
}

// changesWords lists changes, those of the same kind together: "a, b on -> off".
func changesWords(cs []study.Change) string {
	var words []string
	for i, c := range cs {
		if i+1 < len(cs) && cs[i+1].From == c.From && cs[i+1].To == c.To {
			words = append(words, c.Name)
		} else {
			words = append(words, changeWords(c))
		}
	}
	return strings.Join(words, ", ")
}
