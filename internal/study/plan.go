package study

// A Plan says what is to be measured. It holds no figure of any machine.
type Plan struct {
	Command  string     `json:"command,omitempty"` // the command line, for reports
	Lab      string     `json:"lab"`               // veth or hosts
	NIC      NICPlan    `json:"nic,omitzero"`      // in lab softnic
	Device   string     `json:"device,omitempty"`  // the device under test, in lab hosts
	Peer     string     `json:"peer,omitempty"`    // transport to the far end, in lab hosts
	PeerDev  string     `json:"peer_device,omitempty"`
	PeerAddr string     `json:"peer_addr,omitempty"`
	Side     string     `json:"side"`          // whose device is changed: device or peer
	Raw      bool       `json:"raw,omitempty"` // do not stand in for a wire on a veth
	Factors  []string   `json:"factors"`       // as given on the command line
	Cross    bool       `json:"factorial,omitempty"`
	Paths    []string   `json:"paths,omitempty"`     // as given
	Families []string   `json:"families,omitempty"`  // ipv4, ipv6
	Toward   string     `json:"direction,omitempty"` // tx, rx or both for all knobs; empty: what each is about
	Arms     []Arm      `json:"arms"`
	Cells    []Cell     `json:"cells"`
	Contrast []Contrast `json:"contrasts"`
	Load     Load       `json:"load"`
	BudgetS  float64    `json:"budget_s"`
	SettleS  float64    `json:"settle_s"`
	MeasureS float64    `json:"measure_s"`
	Alpha    float64    `json:"alpha"`
	AABlocks int        `json:"aa_blocks"`
}

// A NICPlan says which soft NIC the lab is built on.
type NICPlan struct {
	Model   string   `json:"model"`
	Faults  []string `json:"faults,omitempty"`
	RateBPS float64  `json:"rate_bit_per_s,omitempty"` // of the wire; 0: no limit
	DelayS  float64  `json:"delay_s,omitempty"`
	Loss    float64  `json:"loss,omitempty"`    // share of frames
	Corrupt float64  `json:"corrupt,omitempty"` // share of frames with a bit changed
}

// An Arm is one assignment of values to knobs. The arm without settings is the
// device as it was found.
type Arm struct {
	Name     string    `json:"name"`
	Settings []Setting `json:"settings,omitempty"`
}

// Current is the name of the arm that leaves the device as it was found.
const Current = "current"

// A Setting gives one knob one value.
type Setting struct {
	Knob  string `json:"knob"`
	Value string `json:"value"`
}

// A Cell is one condition under which arms are compared. Direction is that of
// the data as the device under test sees it: tx or rx.
type Cell struct {
	Path      string `json:"path"`   // base, vlan:10, …
	Family    string `json:"family"` // ipv4 or ipv6
	Load      string `json:"load"`   // bulk, …
	Direction string `json:"direction"`
}

func (c Cell) String() string {
	return c.Path + " " + c.Family + " " + c.Load + " " + c.Direction
}

// A Contrast is one comparison that the study is to decide: the weighted sum of
// log responses over arms, in one cell. A plain comparison has weight +1 for
// the arm and −1 for its baseline; the main effect of a factorial averages, and
// an interaction is a difference of differences.
type Contrast struct {
	Knob        string `json:"knob"`
	Baseline    string `json:"baseline"` // value compared against: off, or the first value
	Arm         string `json:"arm"`      // value that the verdict is about
	Interaction bool   `json:"interaction,omitempty"`
	Cell        Cell   `json:"cell"`
	Terms       []Term `json:"terms"`
}

// A Term is the weight of one arm in a contrast.
type Term struct {
	Arm    string  `json:"arm"`
	Weight float64 `json:"weight"`
}

// Load describes the traffic.
type Load struct {
	Streams    int    `json:"streams"`
	Verify     bool   `json:"verify"` // the receiver checks every byte
	MSS        int    `json:"mss,omitempty"`
	Congestion string `json:"congestion,omitempty"`
}

// ArmNames returns the names of the contrast's arms of positive or of negative
// weight: those that the verdict is about, or their baseline.
func (c Contrast) ArmNames(positive bool) []string {
	var names []string
	for _, t := range c.Terms {
		if (t.Weight > 0) == positive {
			names = append(names, t.Arm)
		}
	}
	return names
}

// FindArm returns the arm of the given name.
func (p *Plan) FindArm(name string) (Arm, bool) {
	for _, a := range p.Arms {
		if a.Name == name {
			return a, true
		}
	}
	return Arm{}, false
}

// SlotsPerBlock returns how many slots one block has: each arm once in every
// cell in which some contrast needs it.
func (p *Plan) SlotsPerBlock() int { return len(p.BlockSlots()) }

// A SlotKey names the arm and the cell of a slot.
type SlotKey struct {
	Arm  string
	Cell Cell
}

// BlockSlots returns the slots of a block, in the order of the plan.
func (p *Plan) BlockSlots() []SlotKey {
	var keys []SlotKey
	seen := map[SlotKey]bool{}
	for _, c := range p.Contrast {
		for _, t := range c.Terms {
			k := SlotKey{t.Arm, c.Cell}
			if !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	return keys
}
