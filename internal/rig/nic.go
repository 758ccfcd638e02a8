package rig

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/offlab/offlab/internal/host"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/study"
)

// The card under test is port 0 of the soft NIC.
const portUnderTest = 0

// nicKnob returns the setting of the card that a factor is: its aggregation or
// its interrupt moderation, which no feature of a TAP device reaches.
func (r *Rig) nicKnob(f knob.Factor) (softnic.Setting, bool) {
	if r.lab.NIC == nil {
		return "", false
	}
	switch f.Name {
	case "rx-usecs":
		return softnic.SetUsecs, true
	case "rx-frames":
		return softnic.SetFrames, true
	case "lro", "gro-hw":
		return softnic.SetMerge, f.Name == r.lab.NIC.Merge
	}
	return "", false
}

// nicValue turns the value of a factor into that of a setting.
func nicValue(s softnic.Setting, value string) (int, error) {
	if s != softnic.SetMerge {
		return strconv.Atoi(value)
	}
	if value == "on" {
		return 1, nil
	}
	return 0, nil
}

func nicText(s softnic.Setting, v int) string {
	if s != softnic.SetMerge {
		return strconv.Itoa(v)
	}
	return map[int]string{0: "off", 1: "on"}[v]
}

// adoptNIC notes the present value of a setting of the card.
func (r *Rig) adoptNIC(ctx context.Context, f knob.Factor, s softnic.Setting) (string, error) {
	v, err := r.lab.NIC.NICSetting(ctx, host.NICSetting{Port: portUnderTest, Name: s})
	if err != nil {
		return "", gone(err)
	}
	r.found[f.Name] = v
	return nicText(s, v), nil
}

// checkNIC gives every setting of the card that the study turns the value of the
// arm, or the one it was found with.
func (r *Rig) checkNIC(ctx context.Context, arm study.Arm) ([]study.Moved, error) {
	asked := map[string]string{}
	for _, s := range arm.Settings {
		asked[s.Knob] = s.Value
	}
	var moved []study.Moved
	for name, was := range r.found {
		s, _ := r.nicKnob(r.factors[name])
		want, isAsked := was, false
		if value, ok := asked[name]; ok {
			v, err := nicValue(s, value)
			if err != nil {
				return nil, fmt.Errorf("%s=%s: %w", name, value, err)
			}
			want, isAsked = v, true
		}
		got, err := r.lab.NIC.SetNIC(ctx, host.NICSetting{Port: portUnderTest, Name: s, Value: want})
		if err != nil {
			return nil, gone(err)
		}
		if isAsked {
			m := study.Moved{Knob: name, Asked: asked[name], Got: nicText(s, got), Was: nicText(s, was), Moved: got == want}
			if !m.Moved {
				m.Reason = "the card kept it"
			}
			moved = append(moved, m)
		}
	}
	return moved, nil
}

// nicCounters reads the stations of the card, if there is one.
func (r *Rig) nicCounters(ctx context.Context) ([]map[string]uint64, error) {
	if r.lab.NIC == nil {
		return nil, nil
	}
	c, err := r.lab.NIC.NICCounters(ctx)
	return c, gone(err)
}

// nicEvidence notes what rose at the stations of the card: those of port 0 as
// the device's, those of port 1 as the peer's.
func nicEvidence(slot *study.Slot, before, after []map[string]uint64) {
	for port, role := range []string{"device", "peer"} {
		if port >= len(before) || port >= len(after) {
			return
		}
		for name, v := range after[port] {
			if was := before[port][name]; v > was {
				slot.Evidence[role+"."+stationName(name)] = float64(v - was)
			}
		}
	}
}

// stationName is the name of a counter of the card in the evidence: a station of
// the card, or what was seen on its wire.
func stationName(name string) string {
	if strings.HasPrefix(name, "wire.") {
		return name
	}
	return "nic." + name
}
