package study

import (
	"math"
	"slices"
	"time"
)

// Schema is the version of the study file. It rises when a key changes its
// meaning; new keys do not raise it.
const Schema = 1

// A Study is a plan, what was measured, and what it shows.
type Study struct {
	Schema      int         `json:"schema"`
	Version     string      `json:"offlab"` // version of the program
	Created     time.Time   `json:"created"`
	Plan        Plan        `json:"plan"`
	Seed        uint32      `json:"seed"`
	Blocks      int         `json:"blocks"` // complete blocks, the A/A phase apart
	Environment Environment `json:"environment"`
	Checks      []ArmCheck  `json:"arm_checks"`
	Noise       []Noise     `json:"noise,omitempty"`
	Verdicts    []Verdict   `json:"verdicts"`
	Slots       []Slot      `json:"slots"`
	Events      []Event     `json:"events,omitempty"`
	Ended       End         `json:"ended"`
	Warnings    []string    `json:"warnings,omitempty"`
}

// An Event is something that happened to a study and that a reader of its
// figures should know: it was resumed, a peer vanished, a device came back.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // one word: resumed, interrupted, restored, …
	Text string    `json:"text,omitempty"`
}

// An End says how a study ended.
type End struct {
	Why     string  `json:"why"` // decided, budget, interrupted, failed, settled; empty while it runs
	Text    string  `json:"text,omitempty"`
	Elapsed float64 `json:"elapsed_s"`
}

// Reasons for the end of a study.
const (
	EndDecided     = "decided"     // every verdict was decided
	EndBudget      = "budget"      // the time was used up
	EndInterrupted = "interrupted" // by the user
	EndFailed      = "failed"      // the environment gave way
	EndSettled     = "settled"     // no knob moved, so nothing had to be measured
)

// Environment is what the figures depend on.
type Environment struct {
	Kernel   string   `json:"kernel"`
	CPUs     int      `json:"cpus"`
	Governor string   `json:"governor,omitempty"`
	Shared   bool     `json:"hosts_share_machine"` // the ends' CPU cannot be told apart
	Hosts    []Host   `json:"hosts"`
	Notes    []string `json:"notes,omitempty"` // what the lab pinned or stands in for
}

// A Host is one end of the study.
type Host struct {
	Name     string            `json:"name"`
	Role     string            `json:"role"` // device or peer
	Hostname string            `json:"hostname,omitempty"`
	Kernel   string            `json:"kernel"`
	CPUs     int               `json:"cpus"`
	CPUModel string            `json:"cpu_model,omitempty"`
	Device   string            `json:"device"`
	Driver   string            `json:"driver"`
	Firmware string            `json:"firmware,omitempty"`
	MTU      int               `json:"mtu"`
	SpeedBPS float64           `json:"speed_bit_per_s,omitempty"` // 0: the link does not say
	Address  []string          `json:"addresses,omitempty"`
	Features map[string]string `json:"features"` // kernel name to on, off, "on [fixed]", "off [requested on]", …
	Pinned   map[string]string `json:"pinned,omitempty"`
	Idle     float64           `json:"idle_cpu,omitempty"` // CPUs busy while nothing ran
}

// An ArmCheck is what setting an arm up did to the device, before anything was
// measured.
type ArmCheck struct {
	Arm     string   `json:"arm"`
	Knobs   []Moved  `json:"knobs,omitempty"`
	Dragged []Change `json:"dragged,omitempty"` // changed although nobody asked
}

// Stuck returns a setting of the arm that did not move when the arm was set up.
// Such an arm is not what its name says, so that nothing is compared with it.
func (s *Study) Stuck(arm string) (Moved, bool) {
	for _, c := range s.Checks {
		if c.Arm != arm {
			continue
		}
		for _, k := range c.Knobs {
			if !k.Moved {
				return k, true
			}
		}
	}
	return Moved{}, false
}

// ContrastOf finds the comparison that a verdict was made from.
func (s *Study) ContrastOf(v Verdict) (Contrast, bool) {
	i := slices.IndexFunc(s.Plan.Contrast, func(c Contrast) bool {
		return c.Knob == v.Knob && c.Baseline == v.Baseline && c.Arm == v.Arm && c.Cell == v.Cell && c.Interaction == v.Interaction
	})
	if i < 0 {
		return Contrast{}, false
	}
	return s.Plan.Contrast[i], true
}

// CountBlocks returns the number of complete blocks: those that have a slot,
// not void, of every arm in every cell in which some contrast needs it.
// Contrasts with an arm that is stuck are never run and need none.
func (s *Study) CountBlocks() int {
	p := Plan{}
	for _, c := range s.Plan.Contrast {
		if !slices.ContainsFunc(c.Terms, func(t Term) bool { _, stuck := s.Stuck(t.Arm); return stuck }) {
			p.Contrast = append(p.Contrast, c)
		}
	}
	keys := p.BlockSlots()
	if len(keys) == 0 {
		return 0
	}
	have := map[int]map[SlotKey]bool{}
	for _, slot := range s.Slots {
		if slot.Phase != PhaseAB {
			continue
		}
		if have[slot.Block] == nil {
			have[slot.Block] = map[SlotKey]bool{}
		}
		have[slot.Block][SlotKey{slot.Arm, slot.Cell}] = slot.Void == ""
	}
	n := 0
	for _, block := range have {
		if !slices.ContainsFunc(keys, func(k SlotKey) bool { return !block[k] }) {
			n++
		}
	}
	return n
}

// Moved is what became of one setting.
type Moved struct {
	Knob   string   `json:"knob"`
	Asked  string   `json:"asked"`
	Got    string   `json:"got"`
	Was    string   `json:"was"`
	Moved  bool     `json:"moved"`
	Reason string   `json:"reason,omitempty"` // why it did not move
	Bits   []Change `json:"bits,omitempty"`   // kernel features that changed for it
}

// A Change is a feature or value before and after.
type Change struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Noise is the floor that the A/A phase found in one cell: the spread of the
// same arm against itself.
type Noise struct {
	Cell   Cell    `json:"cell"`
	Metric string  `json:"metric"`
	SD     float64 `json:"sd"` // standard deviation of the log ratio, a fraction
	Pairs  int     `json:"pairs"`
}

// A Slot is one arm in one cell, run once.
type Slot struct {
	Phase     string             `json:"phase"` // aa or ab
	Block     int                `json:"block"` // from 0, counted for each phase
	Order     int                `json:"order"` // place within the block, from 0
	Arm       string             `json:"arm"`
	Cell                         // path, family, load, direction
	Started   time.Time          `json:"started"`
	SettleS   float64            `json:"settle_s"`
	MeasuredS float64            `json:"measured_s"`
	Metrics   map[string]float64 `json:"metrics"`
	Evidence  map[string]float64 `json:"evidence"` // counters that rose, by end and source
	Findings  []Finding          `json:"findings,omitempty"`
	Warnings  []string           `json:"warnings,omitempty"`
	Samples   []float64          `json:"samples,omitempty"`    // goodput of each 100 ms, bit/s
	ReadSizes []int64            `json:"read_sizes,omitempty"` // reads by size, bins of 16 KiB
	Void      string             `json:"void"`                 // why the slot does not count
}

// Phases of a study.
const (
	PhaseAA = "aa" // the current arm against itself
	PhaseAB = "ab"
)

// A Finding is a violated invariant seen in a slot: evidence that something is
// wrong, not slow.
type Finding struct {
	Kind   string `json:"kind"`   // payload, checksum, …
	Source string `json:"source"` // where it was seen
	Text   string `json:"text"`
}

// A Verdict answers the three questions for one knob in one cell.
type Verdict struct {
	Knob        string `json:"knob"`
	Interaction bool   `json:"interaction,omitempty"`
	Baseline    string `json:"baseline"`
	Arm         string `json:"arm"`
	Cell               // path, family, load, direction
	Acts        Answer `json:"acts"`
	Right       Answer `json:"right"`
	Worth       Worth  `json:"worth"`
	Advice      Advice `json:"advice"`
}

// Answers to "does it act" and "is it right".
const (
	Yes        = "yes"
	No         = "no"
	Wrong      = "wrong"
	CannotTell = "cannot-tell"
)

// An Answer is an answer with its proof.
type Answer struct {
	Answer string  `json:"answer"`
	Text   string  `json:"text,omitempty"` // one line
	Proof  []Proof `json:"proof"`
}

// Layers of proof, the weakest first.
const (
	LayerFeatures = "features"
	LayerCounters = "counters"
	LayerPackets  = "packets"
	LayerPayload  = "payload"
)

// A Proof is one figure or state, with the source it was read from. Numbers are
// float64, states are strings.
type Proof struct {
	Layer    string `json:"layer"`
	Source   string `json:"source"`
	Baseline any    `json:"baseline"`
	Arm      any    `json:"arm"`
	Text     string `json:"text"`
}

// Answers to "is it worth it". Empty: not asked, since an earlier answer was
// no.
const (
	Better       = "better"
	Worse        = "worse"
	Same         = "same"
	Small        = "small"
	Inconclusive = "inconclusive"
)

// Worth is the answer to "is it worth it", metric by metric.
type Worth struct {
	Answer  string   `json:"answer"`
	Primary string   `json:"primary"` // the metric that decides
	Why     string   `json:"why,omitempty"`
	Metrics []Metric `json:"metrics"`
}

// A Metric compares one metric between the arms.
type Metric struct {
	Name       string   `json:"name"`
	Unit       string   `json:"unit"`
	Baseline   float64  `json:"baseline"` // median over blocks
	Arm        float64  `json:"arm"`
	Effect     float64  `json:"effect"` // fraction of the baseline
	Low        *float64 `json:"low"`    // null: unbounded so far
	High       *float64 `json:"high"`   // null: unbounded so far
	Blocks     int      `json:"blocks"` // n
	Answer     string   `json:"answer"`
	Decided    bool     `json:"decided"`
	MoreBlocks int      `json:"more_blocks,omitempty"` // about how many more would decide it
	Warnings   []string `json:"warnings,omitempty"`
}

// What an interval must not exceed to be of use, as ratios of its ends.
const (
	uselessSpan   = 100 // of an interval that holds "no change"
	uselessFactor = 100 // of an end to the baseline
	uselessSpread = 10  // and to the effect
)

// Useful returns the ends of the interval that tell a reader something, nil for
// one that does not. The interval of the first blocks may be
// [-100 %, +85,650,662 %], and that of a decided effect may be open at one side.
func (m Metric) Useful() (low, high *float64) {
	at := func(end *float64, unbounded float64) float64 {
		if end == nil {
			return unbounded
		}
		return 1 + *end
	}
	lo, hi, effect := at(m.Low, 0), at(m.High, math.Inf(1)), 1+m.Effect
	if lo <= 1 && hi >= 1 && !(hi < uselessSpan*lo) {
		return nil, nil
	}
	if m.Low != nil && (uselessFactor*lo > 1 || uselessSpread*lo > effect) {
		low = m.Low
	}
	if m.High != nil && (hi < uselessFactor || hi < uselessSpread*effect) {
		high = m.High
	}
	return low, high
}

// Advice is what to do.
type Advice struct {
	Action     string `json:"action"` // keep-on, turn-off, turn-on, set, leave
	Command    string `json:"command,omitempty"`
	Persistent string `json:"persistent,omitempty"`
	Text       string `json:"text"`
}

// Actions of an advice.
const (
	KeepOn  = "keep-on"
	TurnOn  = "turn-on"
	TurnOff = "turn-off"
	Set     = "set" // a value that is neither on nor off
	Leave   = "leave"
)

// Names of metrics.
const (
	Goodput      = "goodput"
	CPUPerByte   = "cpu_ns_per_byte"
	CPUPerPacket = "cpu_ns_per_packet"
	CPUSender    = "cpu_sender_ns_per_byte"   // where the ends are two machines
	CPUReceiver  = "cpu_receiver_ns_per_byte" // likewise
	Retransmits  = "retransmits"
)

// A MetricInfo describes a metric.
type MetricInfo struct {
	Name, Unit, Title string
	LowerIsBetter     bool
	ROPE              float64 // half width of the region of practical equivalence, a fraction
	Count             bool    // a count that may be 0: shown, not compared by ratio
}

// Metrics lists the metrics that verdicts are given for, in the order of
// reports. The regions are those of the verdict rule: 2 % for goodput, 5 % for
// CPU. A metric that no slot has is in no verdict.
var Metrics = []MetricInfo{
	{Name: Goodput, Unit: "bit/s", Title: "goodput", ROPE: 0.02},
	{Name: CPUPerByte, Unit: "ns/B", Title: "CPU per byte", LowerIsBetter: true, ROPE: 0.05},
	{Name: CPUSender, Unit: "ns/B", Title: "CPU/byte, sender", LowerIsBetter: true, ROPE: 0.05},
	{Name: CPUReceiver, Unit: "ns/B", Title: "CPU/byte, receiver", LowerIsBetter: true, ROPE: 0.05},
	{Name: CPUPerPacket, Unit: "ns", Title: "CPU per packet", LowerIsBetter: true, ROPE: 0.05},
	{Name: Retransmits, Unit: "1", Title: "retransmits", LowerIsBetter: true, Count: true},
}
