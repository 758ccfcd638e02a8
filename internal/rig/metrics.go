package rig

import (
	"fmt"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/probe"
	"github.com/offlab/offlab/internal/runner"
	"github.com/offlab/offlab/internal/study"
)

// maxSteal is the share of the CPU time that a hypervisor may take before a
// slot says so.
const maxSteal = 0.02

// fill turns what both ends counted into the slot's metrics, evidence and
// findings.
func (r *Rig) fill(slot *study.Slot, s runner.Spec, a, b both) {
	sent := load.Delta(a.sender.Load, b.sender.Load)
	got := load.Delta(a.receiver.Load, b.receiver.Load)
	slot.MeasuredS = got.Elapsed.Seconds()
	slot.ReadSizes = readSizes(got)
	if c := got.Corruption; c != nil {
		slot.Findings = append(slot.Findings, study.Finding{
			Kind: "payload", Source: "receiver, byte by byte", Text: where(c),
		})
	}
	for _, w := range []load.Window{got, sent} {
		if w.Void != "" && w.Void != load.NoData {
			slot.Void = w.Void
			return
		}
	}
	roles := [2]string{"device", "peer"} // sender, receiver
	if s.Cell.Direction == "rx" {
		roles = [2]string{"peer", "device"}
	}
	ws := [2]probe.Window{probe.Delta(a.sender.Probe, b.sender.Probe), probe.Delta(a.receiver.Probe, b.receiver.Probe)}
	forwarded := s.Cell.Path == string(study.PathForwarded)
	for i, w := range ws {
		host := roles[i]
		if forwarded && host == "device" {
			host = "sink" // an end of the load, but not the device's
		}
		evidence(slot, host, w)
		if total := float64(r.cpus(roles[i])) * w.Elapsed.Seconds(); w.CPU.Steal > maxSteal*total {
			slot.Warnings = append(slot.Warnings, roles[i]+": the hypervisor took more than 2 % of the CPU time")
		}
	}
	if forwarded {
		evidence(slot, "device", probe.Delta(a.device, b.device))
	}
	nicEvidence(slot, a.nic, b.nic)
	slot.Evidence[roles[0]+".process.cpu_s"] = sent.CPU().Seconds()
	slot.Evidence[roles[1]+".process.cpu_s"] = got.CPU().Seconds()
	slot.Evidence[roles[1]+".load.bytes"] = float64(got.Bytes)
	slot.Evidence[roles[1]+".load.corrupt"] = float64(got.Corrupt)
	if got.Void == load.NoData {
		// One byte, so that there is a ratio to speak of.
		got.Bytes, slot.Evidence[roles[1]+".load.stalled"] = 1, 1
		slot.Warnings = append(slot.Warnings, "nothing moved in the measured time: counted as one byte")
	}
	slot.Evidence[roles[1]+".load.calls"] = float64(got.Calls)
	slot.Evidence[roles[0]+".load.rtt_s"] = sent.Info.RTT.Seconds()
	slot.Evidence[roles[0]+".load.snd_mss"] = float64(sent.Info.SndMSS)

	slot.Metrics[study.Goodput] = got.BitsPerSecond()
	slot.Metrics[study.Retransmits] = float64(sent.Info.Retrans)
	r.cost(slot, roles, ws, float64(got.Bytes), float64(sent.Info.DataSegsOut))
}

// cost adds the CPU time that the load took, idle work taken off, for each byte
// and each data segment: of both hosts together, and of each where they are two
// machines. A load too small to be told from the idle work has no figure.
func (r *Rig) cost(slot *study.Slot, roles [2]string, ws [2]probe.Window, bytes, packets float64) {
	busy := [2]float64{r.busy(roles[0], ws[0]), r.busy(roles[1], ws[1])}
	total := busy[0] + busy[1]
	if r.lab.Shared {
		total = busy[0] // /proc/stat is that of the machine
	}
	figures := map[string][2]float64{
		study.CPUPerByte: {total, bytes}, study.CPUPerPacket: {total, packets},
	}
	if !r.lab.Shared {
		figures[study.CPUSender] = [2]float64{busy[0], bytes}
		figures[study.CPUReceiver] = [2]float64{busy[1], bytes}
	}
	for name, f := range figures {
		if f[0] > 0 && f[1] > 0 {
			slot.Metrics[name] = f[0] * 1e9 / f[1]
		}
	}
}

// busy returns the CPU seconds that a host worked beyond its idle work.
func (r *Rig) busy(role string, w probe.Window) float64 {
	idle := r.idle[0]
	if role == "peer" {
		idle = r.idle[1]
	}
	if idle > maxIdle*float64(r.cpus(role)) {
		idle = 0
	}
	return w.CPU.Busy() - idle*w.Elapsed.Seconds()
}

func (r *Rig) cpus(role string) int {
	if role == "device" {
		return r.lab.Device.Info.CPUs
	}
	return r.lab.Peer.Info.CPUs
}

// evidence notes the counters that rose.
func evidence(slot *study.Slot, role string, w probe.Window) {
	for name, v := range w.Rise {
		slot.Evidence[role+"."+name] = v
	}
	for name, v := range map[string]float64{
		"user": w.CPU.User + w.CPU.Nice, "system": w.CPU.System, "irq": w.CPU.IRQ,
		"softirq": w.CPU.SoftIRQ, "steal": w.CPU.Steal, "busy": w.CPU.Busy(),
	} {
		slot.Evidence[role+".cpu."+name+"_s"] = v
	}
}

func readSizes(w load.Window) []int64 {
	out := make([]int64, len(w.Sizes))
	for i, n := range w.Sizes {
		out[i] = int64(n)
	}
	return out
}

// where says what was found where.
func where(c *load.Corruption) string {
	s := fmt.Sprintf("stream %d, byte %d: want % x, got % x", c.Stream, c.Offset, c.Want, c.Got)
	switch c.Origin {
	case load.InPlace:
		return s + " (bytes changed in place)"
	case load.Elsewhere:
		return s + fmt.Sprintf(" (data from %+d bytes away: lost, doubled or swapped)", c.Shift)
	case load.Unknown:
		return s + " (not data of this stream)"
	}
	return s
}
