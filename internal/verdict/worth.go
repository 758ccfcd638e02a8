package verdict

import (
	"fmt"
	"strings"

	"github.com/offlab/offlab/internal/stats"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// worth compares every metric that was measured and lets one of them decide.
func (w *view) worth(alpha float64) study.Worth {
	out := study.Worth{Primary: study.Goodput}
	for _, info := range study.Metrics {
		if info.Name == study.Goodput || w.measured(info.Name) {
			out.Metrics = append(out.Metrics, w.compare(info, alpha))
		}
	}
	cpu := metric(out.Metrics, study.CPUPerByte)
	goodput := metric(out.Metrics, study.Goodput)
	if limit := w.payloadLimit(); cpu != nil && saturated(goodput, limit) {
		out.Primary = study.CPUPerByte
		out.Why = fmt.Sprintf("the link is saturated in both arms (%s of at most %s): CPU decides",
			unit.Range(min(goodput.Baseline, goodput.Arm), max(goodput.Baseline, goodput.Arm), goodput.Unit), unit.Value(limit.payload, goodput.Unit))
		out.Answer = cpu.Answer
		return out
	}
	out.Answer = goodput.Answer
	if goodput.Answer == study.Same && cpu != nil && cpu.Decided && cpu.Answer != study.Same {
		out.Primary, out.Answer = study.CPUPerByte, cpu.Answer
		out.Why = "goodput is the same in both arms: CPU decides"
	}
	return out
}

// measured reports whether some block has the metric in every slot.
func (w *view) measured(name string) bool { return len(w.table(metricOf(name)).rows) > 0 }

// compare decides one metric.
func (w *view) compare(info study.MetricInfo, alpha float64) study.Metric {
	if info.Count {
		return w.count(info)
	}
	t := w.table(positive(metricOf(info.Name)))
	r := stats.Decide(t.ratios(), stats.Options{
		Alpha: alpha, ROPE: info.ROPE, LowerIsBetter: info.LowerIsBetter, BFirst: t.armFirst(),
	})
	m := study.Metric{
		Name: info.Name, Unit: info.Unit, Blocks: r.N,
		Effect: bounded(r.Effect), Answer: string(r.Answer), Decided: r.Decided, MoreBlocks: r.MoreBlocks,
	}
	m.Baseline, m.Arm = t.sides()
	m.Low, m.High = r.Interval.Ends()
	for _, warning := range r.Warnings {
		m.Warnings = append(m.Warnings, warning.Text)
	}
	if n := len(w.blocks) - len(t.rows); n > 0 {
		m.Warnings = append(m.Warnings, lacking(n, info))
	}
	if n := len(w.voids); n > 0 {
		m.Warnings = append(m.Warnings, unit.Plural(int64(n), "block")+" dropped, the first since "+w.voids[0])
	}
	if info.Name == study.Goodput {
		m.Warnings = append(m.Warnings, t.shapes()...)
	}
	return m
}

// lacking warns of blocks that have no figure of a metric. The agents leave a CPU
// figure out when less was used than while nothing ran.
func lacking(n int, info study.MetricInfo) string {
	blocks := unit.Plural(int64(n), "block")
	switch info.Name {
	case study.CPUPerByte, study.CPUPerPacket, study.CPUSender, study.CPUReceiver:
		return blocks + " without a CPU figure: the machine was busy with other work"
	default:
		return blocks + " left out: a slot has no " + info.Title
	}
}

// count describes a metric that may be 0 and is not tested.
func (w *view) count(info study.MetricInfo) study.Metric {
	t := w.table(metricOf(info.Name))
	m := study.Metric{Name: info.Name, Unit: info.Unit, Blocks: len(t.rows)}
	t.interaction, t.counts = false, true
	m.Baseline, m.Arm = t.sides()
	if m.Baseline > 0 {
		m.Effect = bounded(m.Arm/m.Baseline - 1)
	}
	return m
}

// shapes sums up what is wrong within slots, by kind.
func (t table) shapes() []string {
	var order []stats.Code
	count, example := map[stats.Code]int{}, map[stats.Code]string{}
	slots := 0
	for _, block := range t.blocks {
		for _, slot := range block {
			slots++
			for _, warning := range stats.Within(slot.Samples).Warnings {
				if count[warning.Code] == 0 {
					order = append(order, warning.Code)
					example[warning.Code] = warning.Text
				}
				count[warning.Code]++
			}
		}
	}
	var out []string
	for _, code := range order {
		if 4*count[code] > slots { // one slot in four: not by chance
			out = append(out, fmt.Sprintf("%d of %d slots: %s: %s", count[code], slots, code, example[code]))
		}
	}
	return out
}

// A limit is what a link carries.
type limit struct {
	raw     float64 // bit/s of the slower end, 0 if unknown
	payload float64 // of that, TCP payload
}

// Bytes around the payload of a frame on Ethernet and in it.
const (
	ethernetOverhead = 14 + 4 + 8 + 12 // header, FCS, preamble, gap between frames
	ipv4TCP          = 20 + 20 + 12    // with the timestamp option
	ipv6TCP          = 40 + 20 + 12
	defaultMTU       = 1500
	saturation       = 0.98 // of what the link carries
)

// unpaced are drivers whose speed is a number and no limit: a veth says 10
// Gbit/s whatever it carries.
var unpaced = []string{"veth", "tun", "dummy", "bridge"}

// payloadLimit returns what the slower end's link can carry. With an MTU of
// 1500 that is 94 % of its speed in IPv4.
func (w *view) payloadLimit() limit {
	var l limit
	mtu := 0
	for _, h := range w.s.Environment.Hosts {
		if isOneOf(h.Driver, unpaced) {
			return limit{}
		}
		if h.SpeedBPS > 0 && (l.raw == 0 || h.SpeedBPS < l.raw) {
			l.raw = h.SpeedBPS
		}
		if h.MTU > 0 && (mtu == 0 || h.MTU < mtu) {
			mtu = h.MTU
		}
	}
	if mtu == 0 {
		mtu = defaultMTU
	}
	headers := ipv4TCP
	if w.c.Cell.Family == "ipv6" {
		headers = ipv6TCP
	}
	l.payload = l.raw * float64(max(mtu-headers, 0)) / float64(mtu+ethernetOverhead)
	return l
}

// saturated reports whether both arms fill the link. More than it can carry
// shows that the link's speed is not its limit.
func saturated(m *study.Metric, l limit) bool {
	lo, hi := min(m.Baseline, m.Arm), max(m.Baseline, m.Arm)
	return m.Blocks > 0 && l.payload > 0 && lo >= saturation*l.payload && hi <= l.raw
}

func isOneOf(s string, list []string) bool {
	for _, x := range list {
		if strings.EqualFold(s, x) {
			return true
		}
	}
	return false
}
