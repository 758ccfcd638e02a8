package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/study"
)

// A Factor is a knob to be studied, with the values to compare. The first value
// is the one that the others are compared with: off before on.
type Factor struct {
	Name       string
	Values     []string
	Current    string   // the value the device has; may be none of Values
	Directions []string // tx, rx: the traffic that the knob is about
}

// A Shape is what a plan is made of beside its factors.
type Shape struct {
	Cross    bool // cross the factors and look for interactions
	Paths    []string
	Families []string
	Loads    []string
}

// Arrange fills in the arms, cells and contrasts of a plan.
func Arrange(p *study.Plan, factors []Factor, s Shape) error {
	p.Arms, p.Cells, p.Contrast = []study.Arm{{Name: study.Current}}, nil, nil
	if s.Cross {
		return cross(p, factors, s)
	}
	for _, f := range factors {
		for _, v := range f.Values {
			if v != f.Current {
				p.Arms = append(p.Arms, study.Arm{Name: f.Name + "=" + v, Settings: []study.Setting{{Knob: f.Name, Value: v}}})
			}
		}
		for _, cell := range cells(p, s, f.Directions) {
			for _, v := range f.Values[1:] {
				p.Contrast = append(p.Contrast, study.Contrast{
					Knob: f.Name, Baseline: f.Values[0], Arm: v, Cell: cell,
					Terms: []study.Term{{Arm: f.arm(v), Weight: 1}, {Arm: f.arm(f.Values[0]), Weight: -1}},
				})
			}
		}
	}
	dropUnused(p)
	return nil
}

// arm names the arm that gives the factor a value and leaves the rest alone.
func (f Factor) arm(value string) string {
	if value == f.Current {
		return study.Current
	}
	return f.Name + "=" + value
}

// cells returns the cells of the given directions and notes them in the plan.
func cells(p *study.Plan, s Shape, directions []string) []study.Cell {
	var out []study.Cell
	for _, path := range s.Paths {
		for _, family := range s.Families {
			for _, load := range s.Loads {
				for _, d := range directions {
					c := study.Cell{Path: path, Family: family, Load: load, Direction: d}
					out = append(out, c)
					if !slices.Contains(p.Cells, c) {
						p.Cells = append(p.Cells, c)
					}
				}
			}
		}
	}
	return out
}

// dropUnused removes arms that no contrast needs: the current state, when none
// of the values given is the one the device has.
func dropUnused(p *study.Plan) {
	used := map[string]bool{}
	for _, k := range p.BlockSlots() {
		used[k.Arm] = true
	}
	p.Arms = slices.DeleteFunc(p.Arms, func(a study.Arm) bool { return !used[a.Name] })
}

// cross arranges a full factorial: an arm for every combination of values, the
// main effect of each factor averaged over the others, and the interaction of
// every two.
func cross(p *study.Plan, factors []Factor, s Shape) error {
	for _, f := range factors {
		if len(f.Values) != 2 {
			return fmt.Errorf("--factorial crosses factors of two values: %s has %d", f.Name, len(f.Values))
		}
	}
	if len(factors) < 2 || len(factors) > 4 {
		return fmt.Errorf("--factorial crosses two to four factors, not %d", len(factors))
	}
	var directions []string
	for _, f := range factors {
		for _, d := range f.Directions {
			if !slices.Contains(directions, d) {
				directions = append(directions, d)
			}
		}
	}
	combos := combinations(factors)
	p.Arms = nil
	for _, c := range combos {
		p.Arms = append(p.Arms, c.arm)
	}
	scale := 1 / float64(len(combos)/2)
	for _, cell := range cells(p, s, directions) {
		for i, f := range factors {
			if !slices.Contains(f.Directions, cell.Direction) {
				continue
			}
			p.Contrast = append(p.Contrast, study.Contrast{
				Knob: f.Name, Baseline: f.Values[0], Arm: f.Values[1], Cell: cell,
				Terms: terms(combos, func(level []int) float64 { return scale * sign(level[i]) }),
			})
		}
		for i := range factors {
			for j := i + 1; j < len(factors); j++ {
				p.Contrast = append(p.Contrast, study.Contrast{
					Knob: factors[i].Name + "×" + factors[j].Name, Interaction: true, Cell: cell,
					Baseline: "apart", Arm: "together",
					Terms: terms(combos, func(level []int) float64 { return 2 * scale * sign(level[i]) * sign(level[j]) }),
				})
			}
		}
	}
	return nil
}

func sign(level int) float64 { return 2*float64(level) - 1 }

// A combo is one combination of the factors' values, by index.
type combo struct {
	level []int
	arm   study.Arm
}

func combinations(factors []Factor) []combo {
	var out []combo
	for n := range 1 << len(factors) {
		c := combo{}
		var names []string
		for i, f := range factors {
			l := n >> i & 1
			c.level = append(c.level, l)
			if v := f.Values[l]; v != f.Current {
				c.arm.Settings = append(c.arm.Settings, study.Setting{Knob: f.Name, Value: v})
				names = append(names, f.Name+"="+v)
			}
		}
		c.arm.Name = strings.Join(names, ",")
		if c.arm.Name == "" {
			c.arm.Name = study.Current
		}
		out = append(out, c)
	}
	return out
}

func terms(combos []combo, weight func([]int) float64) []study.Term {
	var out []study.Term
	for _, c := range combos {
		out = append(out, study.Term{Arm: c.arm.Name, Weight: weight(c.level)})
	}
	return out
}
