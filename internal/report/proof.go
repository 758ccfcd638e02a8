package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
)

// A proofLine is a proof as text and mail show it: in one line.
type proofLine struct{ layer, text, source string }

// proofLines lists the proofs of a verdict. What an answer has said already is
// not said again, and counters that stood still are gathered in one line.
// In brief, figures that decide nothing are left out.
func proofLines(v study.Verdict, brief bool) []proofLine {
	var lines []proofLine
	var still, dragged []string
	for i, a := range []study.Answer{v.Acts, v.Right} {
		for _, pr := range a.Proof {
			source := shortSource(pr)
			also, isDragged := strings.CutSuffix(pr.Text, ", "+draggedAlong)
			switch {
			case isDragged:
				dragged = append(dragged, also)
			case pr.Layer == study.LayerCounters && pr.Baseline == 0.0 && pr.Arm == 0.0:
				name, _, _ := strings.Cut(pr.Text, ":")
				name, _, _ = strings.Cut(name, " per ") // GB, slot
				still = append(still, name)
			case brief && i == 0 && pr.Layer == study.LayerCounters && pr.Text != a.Text:
			case pr.Text != a.Text || pr.Text == "":
				lines = append(lines, proofLine{pr.Layer, proofWords(pr), source})
			case pr.Layer != study.LayerPayload: // whose source is the load itself
				baseline, arm := proofPair(pr)
				lines = append(lines, proofLine{pr.Layer, source + ": " + baseline + " -> " + arm, ""})
			}
		}
	}
	if len(still) > 0 {
		lines = append(lines, proofLine{study.LayerCounters, "0 in both arms: " + strings.Join(still, ", "), ""})
	}
	if n := len(dragged); n > 2 {
		dragged = []string{dragged[0], fmt.Sprintf("and %d more", n-1)}
	}
	if len(dragged) > 0 {
		lines = append(lines, proofLine{study.LayerFeatures, draggedAlong + ": " + strings.Join(dragged, ", "), ""})
	}
	slices.SortStableFunc(lines, func(a, b proofLine) int { return layerRank(a.layer) - layerRank(b.layer) })
	return lines
}

// layerRank keeps proofs of one layer together, the weakest first.
func layerRank(layer string) int {
	return slices.Index([]string{study.LayerFeatures, study.LayerCounters, study.LayerPackets, study.LayerPayload}, layer)
}

var aside = regexp.MustCompile(` \([^()]*\)`)

// shortSource names what was read and, if it is not the device under test, at
// which end; Markdown and the study file say in which file.
func shortSource(p study.Proof) string {
	end, source, found := strings.Cut(p.Source, ": ")
	if !found {
		end, source = "", p.Source
	}
	if p.Layer == study.LayerFeatures {
		if _, tool, ok := strings.Cut(source, "("); ok {
			source = strings.TrimSuffix(tool, ")")
		}
	}
	source = strings.ReplaceAll(aside.ReplaceAllString(source, ""), " / ", "/")
	source = strings.ReplaceAll(source, "link.", "") // counters of the link, by their own names
	if end == "peer" {
		return "peer " + source
	}
	return source
}

// proof writes the proofs of a verdict, a line each. In brief - below a table of
// several verdicts - those of one layer share a paragraph without sources.
func (p *page) proof(v study.Verdict, brief bool) {
	last := ""
	lines := proofLines(v, brief)
	if brief {
		lines = joinLayers(lines)
	}
	for _, l := range lines {
		name := l.layer
		if name == last {
			name = ""
		}
		last = l.layer
		body := []span{{l.text, plain}}
		if strings.Contains(l.text, draggedAlong) {
			body[0].style = doubt
		}
		if source := " [" + l.source + "]"; l.source != "" && labelled+width(p.text(l.text+source)) <= p.width {
			body = append(body, span{source, faint})
		}
		p.flow([]span{label(name)}, labelled, body...)
	}
}

// draggedAlong is how verdicts say that something else moved too.
const draggedAlong = "dragged along"

func joinLayers(lines []proofLine) []proofLine {
	var out []proofLine
	for _, l := range lines {
		if n := len(out); n > 0 && out[n-1].layer == l.layer {
			out[n-1].text += "; " + l.text
		} else {
			out = append(out, proofLine{l.layer, l.text, ""})
		}
	}
	return out
}
