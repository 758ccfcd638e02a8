package verdict

import (
	"fmt"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/unit"
)

// wireProof tells how many frames were looked at, where the wire can be seen.
func (w *view) wireProof(slots [2][]*study.Slot) []study.Proof {
	var checked, wrong [2]float64
	for i := range slots {
		for _, role := range []string{roleDevice, rolePeer} {
			checked[i] += sumOf(slots[i], role+".wire.checked")
			wrong[i] += sumOf(slots[i], role+".wire.wrong")
		}
	}
	if checked[0]+checked[1] == 0 {
		return nil
	}
	text := fmt.Sprintf("wire: %s and %s frames checked", count(checked[0]), count(checked[1]))
	if wrong[0]+wrong[1] == 0 {
		text += ", 0 wrong"
	} else {
		text += fmt.Sprintf(", %s and %s wrong", count(wrong[0]), count(wrong[1]))
	}
	return []study.Proof{{
		Layer: study.LayerPackets, Source: "both ends: every frame on the wire",
		Baseline: bounded(wrong[0]), Arm: bounded(wrong[1]), Text: text,
	}}
}

func sumOf(slots []*study.Slot, name string) (sum float64) {
	for _, s := range slots {
		sum += max(s.Evidence[name], 0)
	}
	return sum
}

func count(x float64) string { return unit.Count(int64(x)) }

// Limits of a loss of PSH: a sender sets it at the end of what it was given to
// send, so that its share of segments depends on the load and hardly on what
// cuts them.
const (
	pushMin   = 20   // segments with PSH in the other arm, or it has none to speak of
	pushData  = 1000 // data segments in this one
	pushRatio = 10   // share of one arm over that of the other
)

// pushless looks for a side whose segments have lost PSH.
func (w *view) pushless(slots [2][]*study.Slot) []fault {
	var data, push [2]float64
	for i := range slots {
		data[i] = sumOf(slots[i], w.sender()+".wire.data")
		push[i] = sumOf(slots[i], w.sender()+".wire.psh")
	}
	for i := range slots {
		j := 1 - i
		if len(slots[0]) < minSlots || len(slots[1]) < minSlots || push[j] < pushMin || data[i] < pushData || data[j] == 0 {
			continue
		}
		if push[i]/data[i] >= push[j]/data[j]/pushRatio {
			continue
		}
		f := fault{text: fmt.Sprintf("PSH lost: on %s of %s data segments, while the other arm has it on %s of %s",
			count(push[i]), count(data[i]), count(push[j]), count(data[j]))}
		f.on[i] = true
		return []fault{f}
	}
	return nil
}
