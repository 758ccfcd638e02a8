package report_test

import (
	"math"
	"time"

	"github.com/offlab/offlab/internal/study"
)

// The studies that reports are tested with. They are made up, once and for all:
// TestResults keeps them as testdata/results/*.json, and every rendering starts
// from those files. The figures of "collapse" are those of the stmmac thread.
var results = map[string]func() *study.Study{
	"better":       better,
	"factors":      factors,
	"interaction":  interaction,
	"fixed":        fixed,
	"veth-trap":    vethTrap,
	"collapse":     collapse,
	"same":         same,
	"inconclusive": inconclusive,
	"small":        small,
	"void":         void,
	"interrupted":  interrupted,
	"hostile":      hostile,
}

var (
	baseTx   = study.Cell{Path: "base", Family: "ipv4", Load: "bulk", Direction: "tx"}
	baseTx6  = study.Cell{Path: "base", Family: "ipv6", Load: "bulk", Direction: "tx"}
	epoch    = time.Date(2026, time.November, 30, 9, 30, 0, 0, time.UTC)
	features = map[string]string{"tx-tcp-segmentation": "on", "rx-gro": "on", "rx-lro": "off [fixed]"}
)

// veth returns a study of the built-in lab without any slots or verdicts.
func veth(command string, factors ...string) *study.Study {
	host := func(name, role, dev string) study.Host {
		return study.Host{
			Name: name, Role: role, Hostname: "bookworm", Kernel: "6.18.0-amd64", CPUs: 2, CPUModel: "AMD EPYC 7763",
			Device: dev, Driver: "veth", MTU: 1500, Address: []string{"192.0.2.1", "2001:db8::1"}, Features: features,
			Pinned: map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_autocorking": "1", "net.core.rmem_max": "212992", "cpu": map[string]string{"device": "0", "peer": "1"}[role]},
			Idle:   0.03,
		}
	}
	return &study.Study{
		Schema: study.Schema, Version: "v0.1.0", Created: epoch, Seed: 42,
		Plan: study.Plan{
			Command: command, Lab: "veth", Side: "device", Factors: factors, Load: study.Load{Streams: 1, Verify: true},
			Arms:    []study.Arm{{Name: study.Current}},
			BudgetS: 50, SettleS: 0.3, MeasureS: 1.2, Alpha: 0.05, AABlocks: 4,
			Cells: []study.Cell{baseTx},
		},
		Environment: study.Environment{
			Kernel: "6.18.0-amd64", CPUs: 2, Governor: "performance", Shared: true,
			Hosts: []study.Host{host("a", "device", "veth0"), host("b", "peer", "veth1")},
			Notes: []string{"one machine, a CPU for each end; CPU figures are of both", "GRO of the peer is off: on a veth it would reorder packets"},
		},
		Noise: []study.Noise{
			{Cell: baseTx, Metric: study.Goodput, SD: 0.0081, Pairs: 4},
			{Cell: baseTx, Metric: study.CPUPerByte, SD: 0.0193, Pairs: 4},
		},
	}
}

// toggle adds the factor of one knob that is on now: the arm that turns it off,
// and the comparison of both.
func toggle(s *study.Study, knob, kernelName string, cells ...study.Cell) {
	off := study.Arm{Name: knob + "=off", Settings: []study.Setting{{Knob: knob, Value: "off"}}}
	s.Plan.Arms = append(s.Plan.Arms, off)
	for _, c := range cells {
		s.Plan.Contrast = append(s.Plan.Contrast, study.Contrast{
			Knob: knob, Baseline: "off", Arm: "on", Cell: c,
			Terms: []study.Term{{Arm: study.Current, Weight: 1}, {Arm: off.Name, Weight: -1}},
		})
	}
	s.Checks = append(s.Checks, study.ArmCheck{Arm: off.Name, Knobs: []study.Moved{{
		Knob: knob, Asked: "off", Got: "off", Was: "on", Moved: true,
		Bits: []study.Change{{Name: kernelName, From: "on", To: "off"}},
	}}})
}

// A level is what the slots of an arm measure.
type level struct {
	goodput, cpu, retransmits, noise float64
}

// run adds blocks of slots around the level of each arm.
func run(s *study.Study, blocks int, levels map[string]level) {
	// Blocks come in pairs that lie as far above the level as below, and the
	// last of an odd number lies on it: the medians are the levels.
	offset := func(b, i int) float64 {
		pair := float64((b/2*7+i*3)%5+1) / 5
		switch {
		case b == blocks-1 && blocks%2 == 1:
			return 0
		case b%2 == 0:
			return pair
		}
		return -pair
	}
	s.Blocks = blocks
	at := epoch
	for b := range blocks {
		for i, k := range s.Plan.BlockSlots() {
			l, ok := levels[k.Arm+" "+k.Cell.Family] // where a family differs
			if !ok {
				l = levels[k.Arm]
			}
			wobble := func(v float64) float64 { return math.Round(v*1000*(1+l.noise*offset(b, i))) / 1000 }
			at = at.Add(1600 * time.Millisecond)
			s.Slots = append(s.Slots, study.Slot{
				Phase: study.PhaseAB, Block: b, Order: i, Arm: k.Arm, Cell: k.Cell, Started: at,
				SettleS: s.Plan.SettleS, MeasuredS: s.Plan.MeasureS,
				Metrics: map[string]float64{
					study.Goodput: wobble(l.goodput), study.CPUPerByte: wobble(l.cpu), study.Retransmits: l.retransmits,
				},
			})
		}
	}
	s.Ended = study.End{Why: study.EndDecided, Elapsed: float64(len(s.Slots))*1.6 + 13}
}

func tsoVerdict(c study.Cell) study.Verdict {
	return study.Verdict{
		Knob: "tso", Baseline: "off", Arm: "on", Cell: c,
		Acts: study.Answer{
			Answer: study.Yes, Text: "segments per packet handed to the device: 1.0 -> 42.1",
			Proof: []study.Proof{
				{Layer: study.LayerFeatures, Source: "device: feature bits (ethtool -k)", Baseline: "off", Arm: "on", Text: "only 5 features off -> on (tx-tcp-segmentation and 4 more)"},
				{Layer: study.LayerCounters, Source: "device: Tcp.OutSegs (/proc/net/snmp) / link.tx_packets (rtnetlink)", Baseline: 1.0, Arm: 42.1, Text: "segments per packet handed to the device: 1.0 -> 42.1"},
				{Layer: study.LayerCounters, Source: "device: Tcp.OutSegs (/proc/net/snmp) / Ip.OutRequests (/proc/net/snmp)", Baseline: 41.8, Arm: 42.1, Text: "both arms build 42.1 segments a packet"},
			},
		},
		Right: study.Answer{
			Answer: study.Yes, Text: "6.70 GB and 11.5 GB compared byte by byte",
			Proof: []study.Proof{
				{Layer: study.LayerPayload, Source: "peer: the load's receiver, which compares every byte", Baseline: 6.7e9, Arm: 11.5e9, Text: "6.70 GB and 11.5 GB compared byte by byte"},
				{Layer: study.LayerCounters, Source: "both ends: Tcp.InCsumErrors and others (/proc/net/snmp)", Baseline: 0.0, Arm: 0.0, Text: "checksum errors per GB: 0.0 -> 0.0"},
				{Layer: study.LayerCounters, Source: "both ends: link.rx_dropped and others (rtnetlink)", Baseline: 0.0, Arm: 0.0, Text: "drops per GB: 0.0 -> 0.0"},
				{Layer: study.LayerCounters, Source: "device: tcp_info", Baseline: 11.0, Arm: 186.0, Text: "retransmits per GB: 11.0 -> 186"},
			},
		},
		Worth: study.Worth{
			Answer: study.Better, Primary: study.Goodput,
			Metrics: []study.Metric{
				{Name: study.Goodput, Unit: "bit/s", Baseline: 11.9e9, Arm: 20.4e9, Effect: 0.712, Low: new(0.66), High: new(0.761), Blocks: 8, Answer: study.Better, Decided: true},
				{Name: study.CPUPerByte, Unit: "ns/B", Baseline: 0.612, Arm: 0.379, Effect: -0.381, Low: new(-0.41), High: new(-0.352), Blocks: 8, Answer: study.Better, Decided: true},
				{Name: study.Retransmits, Unit: "1", Blocks: 8},
			},
		},
		Advice: study.Advice{Action: study.KeepOn, Command: "ethtool -K veth0 tso on", Text: "keep on: goodput +71.2 % [+66.0, +76.1], on against off"},
	}
}

func better() *study.Study {
	s := veth("offlab run tso --budget 50s", "tso")
	toggle(s, "tso", "tx-tcp-segmentation", baseTx)
	s.Checks[0].Dragged = []study.Change{{Name: "tx-tcp-ecn-segmentation", From: "on", To: "off"}, {Name: "tx-tcp6-segmentation", From: "on", To: "off"}}
	run(s, 8, map[string]level{study.Current: {20.4e9, 0.379, 0, 0.02}, "tso=off": {11.9e9, 0.612, 0, 0.02}})
	v := tsoVerdict(baseTx)
	v.Acts.Proof[0].Text = "tx-tcp-segmentation off -> on"
	for _, d := range s.Checks[0].Dragged {
		v.Acts.Proof = append(v.Acts.Proof, study.Proof{
			Layer: study.LayerFeatures, Source: v.Acts.Proof[0].Source, Baseline: "off", Arm: "on", Text: d.Name + " off -> on, dragged along",
		})
	}
	s.Verdicts = []study.Verdict{v}
	return s
}

func factors() *study.Study {
	s := veth("offlab run tso gro --lab veth -4 -6 --streams 4 --budget 3m", "tso", "gro")
	s.Plan.Load.Streams, s.Plan.BudgetS, s.Plan.Cells = 4, 180, []study.Cell{baseTx, baseTx6}
	toggle(s, "tso", "tx-tcp-segmentation", baseTx, baseTx6)
	toggle(s, "gro", "rx-gro", baseTx, baseTx6)
	run(s, 9, map[string]level{
		study.Current: {20.4e9, 0.379, 0, 0.02}, "tso=off": {11.9e9, 0.612, 0, 0.02}, "gro=off": {20.1e9, 0.381, 0, 0.02},
		"current ipv6": {10.9e9, 0.44, 0, 0.02}, "tso=off ipv6": {12.2e9, 0.61, 0, 0.02}, "gro=off ipv6": {10.7e9, 0.442, 0, 0.02},
	})
	s.Ended.Why = study.EndBudget
	gro := func(c study.Cell) study.Verdict {
		v := tsoVerdict(c)
		v.Knob = "gro"
		v.Acts = study.Answer{Answer: study.CannotTell, Text: "the feature moved, but no counter shows it: the peer hands down packets of one segment either way"}
		v.Worth = study.Worth{
			Answer: study.Inconclusive, Primary: study.Goodput,
			Metrics: []study.Metric{
				{Name: study.Goodput, Unit: "bit/s", Baseline: 20.1e9, Arm: 20.4e9, Effect: 0.0149, Low: new(-0.012), High: new(0.042), Blocks: 9, Answer: study.Inconclusive, MoreBlocks: 11},
				{Name: study.CPUPerByte, Unit: "ns/B", Baseline: 0.381, Arm: 0.379, Effect: -0.0052, Low: new(-0.031), High: new(0.021), Blocks: 9, Answer: study.Same, Decided: true},
			},
		}
		v.Advice = study.Advice{Action: study.Leave, Text: "not decided: about 11 more blocks would decide"}
		return v
	}
	s.Verdicts = []study.Verdict{tsoVerdict(baseTx), tsoVerdict(baseTx6), gro(baseTx), gro(baseTx6)}
	for i := range 2 {
		s.Verdicts[0].Worth.Metrics[i].Blocks = 9
		s.Verdicts[3].Worth.Metrics[i].Baseline = []float64{10.7e9, 0.442}[i]
		s.Verdicts[3].Worth.Metrics[i].Arm = []float64{10.9e9, 0.44}[i]
	}
	s.Verdicts[0].Worth.Metrics = s.Verdicts[0].Worth.Metrics[:2]
	s.Verdicts[1].Worth.Answer, s.Verdicts[1].Advice.Action = study.Worse, study.TurnOff
	s.Verdicts[1].Advice.Text, s.Verdicts[1].Advice.Command = "turn off: goodput -10.7 % [-13.1, -8.2], on against off", "ethtool -K veth0 tx-tcp6-segmentation off"
	s.Verdicts[1].Worth.Metrics = []study.Metric{
		{Name: study.Goodput, Unit: "bit/s", Baseline: 12.2e9, Arm: 10.9e9, Effect: -0.1066, Low: new(-0.131), High: new(-0.082), Blocks: 9, Answer: study.Worse, Decided: true},
		{Name: study.CPUPerByte, Unit: "ns/B", Baseline: 0.61, Arm: 0.44, Effect: -0.279, Low: new(-0.31), High: new(-0.249), Blocks: 9, Answer: study.Better, Decided: true},
	}
	return s
}

func interaction() *study.Study {
	s := veth("offlab run tso gro --factorial --budget 2m", "tso", "gro")
	s.Plan.Cross, s.Plan.BudgetS = true, 120
	toggle(s, "tso", "tx-tcp-segmentation", baseTx)
	toggle(s, "gro", "rx-gro", baseTx)
	both := study.Arm{Name: "tso=off gro=off", Settings: []study.Setting{{Knob: "tso", Value: "off"}, {Knob: "gro", Value: "off"}}}
	s.Plan.Arms = append(s.Plan.Arms, both)
	c := study.Contrast{Knob: "tso × gro", Baseline: "off", Arm: "on", Interaction: true, Cell: baseTx, Terms: []study.Term{
		{Arm: study.Current, Weight: 1}, {Arm: "tso=off", Weight: -1}, {Arm: "gro=off", Weight: -1}, {Arm: both.Name, Weight: 1},
	}}
	s.Plan.Contrast = append(s.Plan.Contrast, c)
	run(s, 7, map[string]level{
		study.Current: {20.4e9, 0.379, 0, 0.02}, "tso=off": {11.9e9, 0.612, 0, 0.02},
		"gro=off": {18.1e9, 0.391, 0, 0.02}, both.Name: {8.9e9, 0.731, 0, 0.02},
	})
	v := study.Verdict{
		Knob: c.Knob, Baseline: "off", Arm: "on", Interaction: true, Cell: baseTx,
		Acts:  study.Answer{Answer: study.CannotTell, Text: "an interaction has no counter of its own; its factors have verdicts of their own"},
		Right: study.Answer{Answer: study.Yes, Text: "9.70 GB and 9.70 GB compared byte by byte"},
		Worth: study.Worth{Answer: study.Worse, Primary: study.Goodput, Why: "together they gain 15.7 % less than one after the other", Metrics: []study.Metric{
			{Name: study.Goodput, Unit: "bit/s", Baseline: 1, Arm: 0.843, Effect: -0.157, Low: new(-0.201), High: new(-0.112), Blocks: 7, Answer: study.Worse, Decided: true},
		}},
	}
	s.Verdicts = []study.Verdict{tsoVerdict(baseTx), v}
	for i := range s.Verdicts[0].Worth.Metrics {
		s.Verdicts[0].Worth.Metrics[i].Blocks = 7
	}
	return s
}

func fixed() *study.Study {
	s := veth("offlab run lro --lab veth --budget 10s", "lro")
	s.Plan.BudgetS, s.Noise = 10, nil
	on := study.Arm{Name: "lro=on", Settings: []study.Setting{{Knob: "lro", Value: "on"}}}
	s.Plan.Arms = append(s.Plan.Arms, on)
	c := study.Cell{Path: "base", Family: "ipv4", Load: "bulk", Direction: "rx"}
	s.Plan.Contrast = []study.Contrast{{Knob: "lro", Baseline: "off", Arm: "on", Cell: c, Terms: []study.Term{{Arm: on.Name, Weight: 1}, {Arm: study.Current, Weight: -1}}}}
	s.Checks = []study.ArmCheck{{Arm: on.Name, Knobs: []study.Moved{{Knob: "lro", Asked: "on", Got: "off", Was: "off", Reason: "fixed"}}}}
	s.Verdicts = []study.Verdict{{
		Knob: "lro", Baseline: "off", Arm: "on", Cell: c,
		Acts: study.Answer{Answer: study.No, Text: "lro stays off: fixed", Proof: []study.Proof{
			{Layer: study.LayerFeatures, Source: "device: feature bits (ethtool -k)", Baseline: "off", Arm: "off", Text: "lro was set to on and is off"},
		}},
		Advice: study.Advice{Action: study.Leave, Text: "no reason to touch it: it cannot be changed here"},
	}}
	s.Ended = study.End{Why: study.EndSettled, Elapsed: 0.41}
	return s
}

func vethTrap() *study.Study {
	s := veth("offlab run gro --lab veth --raw --budget 20s", "gro")
	rx := study.Cell{Path: "base", Family: "ipv4", Load: "bulk", Direction: "rx"}
	s.Plan.Raw, s.Plan.BudgetS, s.Plan.Cells = true, 20, []study.Cell{rx}
	s.Noise = []study.Noise{{Cell: rx, Metric: study.Goodput, SD: 0.0081, Pairs: 4}}
	toggle(s, "gro", "rx-gro", rx)
	run(s, 5, map[string]level{study.Current: {19.9e9, 0.379, 0, 0.02}, "gro=off": {20.1e9, 0.381, 0, 0.02}})
	s.Ended = study.End{Why: study.EndDecided, Elapsed: 19.2}
	s.Verdicts = []study.Verdict{{
		Knob: "gro", Baseline: "off", Arm: "on", Cell: rx,
		Acts: study.Answer{Answer: study.No, Text: "both arms deliver 44.7 segments a packet: the packets were already aggregated when they reached the device", Proof: []study.Proof{
			{Layer: study.LayerFeatures, Source: "device: feature bits (ethtool -k)", Baseline: "off", Arm: "on", Text: "only rx-gro off -> on"},
			{Layer: study.LayerCounters, Source: "device: IpExt.In*Pkts (/proc/net/netstat) / Ip.InReceives (/proc/net/snmp)", Baseline: 44.6, Arm: 44.7, Text: "both arms deliver 44.7 segments a packet: the packets were already aggregated when they reached the device"},
		}},
		Advice: study.Advice{Action: study.Leave, Text: "no reason to touch it: it does nothing here"},
	}}
	return s
}

// collapse is the stmmac case: 818 Mbit/s without, 13.4 Mbit/s with 899
// retransmits on a VLAN.
func collapse() *study.Study {
	vlan := study.Cell{Path: "vlan:10", Family: "ipv4", Load: "bulk", Direction: "tx"}
	s := veth("offlab run tso --dev enp0s29f1 --peer ssh://root@203.0.113.2 --path vlan:10 --budget 2m", "tso")
	s.Plan.Lab, s.Plan.Device, s.Plan.Peer, s.Plan.BudgetS, s.Plan.Cells = "hosts", "enp0s29f1", "ssh://root@203.0.113.2", 120, []study.Cell{vlan}
	s.Environment = study.Environment{Kernel: "5.15.0", CPUs: 4, Governor: "schedutil", Hosts: []study.Host{
		{Name: "here", Role: "device", Hostname: "elkhart", Kernel: "5.15.0", CPUs: 4, CPUModel: "Intel Atom x6425RE", Device: "enp0s29f1", Driver: "stmmac", Firmware: "0x1", MTU: 1500, SpeedBPS: 1e9},
		{Name: "peer", Role: "peer", Hostname: "lab2", Kernel: "6.1.0-28-amd64", CPUs: 8, Device: "eth1", Driver: "igb", MTU: 1500, SpeedBPS: 1e9},
	}}
	s.Noise = []study.Noise{{Cell: vlan, Metric: study.Goodput, SD: 0.004, Pairs: 4}}
	toggle(s, "tso", "tx-tcp-segmentation", vlan)
	run(s, 6, map[string]level{study.Current: {13.4e6, 11.2, 899, 0.03}, "tso=off": {818e6, 3.1, 0, 0.01}})
	s.Verdicts = []study.Verdict{{
		Knob: "tso", Baseline: "off", Arm: "on", Cell: vlan,
		Acts: study.Answer{Answer: study.Yes, Text: "segments per packet handed to the device: 1.0 -> 31.8", Proof: []study.Proof{
			{Layer: study.LayerCounters, Source: "device: Tcp.OutSegs (/proc/net/snmp) / link.tx_packets (rtnetlink)", Baseline: 1.0, Arm: 31.8, Text: "segments per packet handed to the device: 1.0 -> 31.8"},
		}},
		Right: study.Answer{Answer: study.Wrong, Text: "collapse: 13.4 Mbit/s while the other arm has 818 Mbit/s, with 899 retransmits a slot", Proof: []study.Proof{
			{Layer: study.LayerCounters, Source: "device: tcp_info", Baseline: 0.0, Arm: 447000.0, Text: "retransmits per GB: 0.0 -> 447,000"},
			{Layer: study.LayerPayload, Source: "peer: the load's receiver, which compares every byte", Baseline: 736e6, Arm: 12.1e6, Text: "736 MB and 12.1 MB compared byte by byte"},
		}},
		Worth: study.Worth{Metrics: []study.Metric{
			{Name: study.Goodput, Unit: "bit/s", Baseline: 818e6, Arm: 13.4e6, Effect: -0.9836, Low: new(-0.9852), High: new(-0.9811), Blocks: 6, Answer: study.Worse, Decided: true},
			{Name: study.Retransmits, Unit: "1", Baseline: 0, Arm: 899, Blocks: 6},
		}},
		Advice: study.Advice{Action: study.TurnOff, Command: "ethtool -K enp0s29f1 tso off", Persistent: "[Match]\nOriginalName=enp0s29f1\n[Link]\nTCPSegmentationOffload=no", Text: "turn off: on is wrong (collapse)"},
	}}
	return s
}

func same() *study.Study {
	s := veth("offlab run cmd:noop='true','true' --lab veth --budget 90s", "cmd:noop='true','true'")
	s.Plan.BudgetS = 90
	s.Plan.Arms = []study.Arm{{Name: study.Current}, {Name: "cmd:noop=on", Settings: []study.Setting{{Knob: "cmd:noop", Value: "on"}}}, {Name: "cmd:noop=off", Settings: []study.Setting{{Knob: "cmd:noop", Value: "off"}}}}
	s.Plan.Contrast = []study.Contrast{{Knob: "cmd:noop", Baseline: "off", Arm: "on", Cell: baseTx, Terms: []study.Term{{Arm: "cmd:noop=on", Weight: 1}, {Arm: "cmd:noop=off", Weight: -1}}}}
	run(s, 14, map[string]level{"cmd:noop=on": {20.4e9, 0.379, 0, 0.01}, "cmd:noop=off": {20.4e9, 0.379, 0, 0.01}})
	s.Verdicts = []study.Verdict{{
		Knob: "cmd:noop", Baseline: "off", Arm: "on", Cell: baseTx,
		Acts:  study.Answer{Answer: study.CannotTell, Text: "a command's effect cannot be read back"},
		Right: study.Answer{Answer: study.Yes, Text: "33.2 GB and 33.2 GB compared byte by byte"},
		Worth: study.Worth{Answer: study.Same, Primary: study.Goodput, Metrics: []study.Metric{
			{Name: study.Goodput, Unit: "bit/s", Baseline: 20.4e9, Arm: 20.4e9, Effect: 0.0004, Low: new(-0.0081), High: new(0.0092), Blocks: 14, Answer: study.Same, Decided: true},
			{Name: study.CPUPerByte, Unit: "ns/B", Baseline: 0.379, Arm: 0.378, Effect: -0.0021, Low: new(-0.019), High: new(0.0151), Blocks: 14, Answer: study.Same, Decided: true},
		}},
		Advice: study.Advice{Action: study.Leave, Text: "no reason to touch it: no material difference in goodput"},
	}}
	return s
}

func inconclusive() *study.Study {
	s := better()
	s.Ended = study.End{Why: study.EndBudget, Elapsed: 20.3}
	s.Plan.BudgetS, s.Blocks, s.Slots = 20, 3, s.Slots[:6]
	v := &s.Verdicts[0]
	v.Worth = study.Worth{Answer: study.Inconclusive, Primary: study.Goodput, Metrics: []study.Metric{
		{Name: study.Goodput, Unit: "bit/s", Baseline: 11.9e9, Arm: 20.4e9, Effect: 0.712, Low: new(-0.99999), High: new(856506.6), Blocks: 3, Answer: study.Inconclusive, MoreBlocks: 4, Warnings: []string{"3 blocks: no answer is possible with fewer than 6 at alpha 0.05"}},
		{Name: study.CPUPerByte, Unit: "ns/B", Baseline: 0.612, Arm: 0.379, Effect: -0.381, Low: new(-0.8), Blocks: 3, Answer: study.Inconclusive, MoreBlocks: 5, Warnings: []string{"3 blocks: no answer is possible with fewer than 6 at alpha 0.05", "1 block without a CPU figure: the machine was busy with other work"}},
		{Name: study.CPUPerPacket, Unit: "ns", Baseline: 810, Arm: 540, Effect: -0.333, Blocks: 3, Answer: study.Inconclusive, MoreBlocks: 5, Warnings: []string{"3 blocks: no answer is possible with fewer than 6 at alpha 0.05", "1 block without a CPU figure: the machine was busy with other work"}},
	}}
	v.Advice = study.Advice{Action: study.Leave, Text: "not decided: about 4 more blocks would decide"}
	return s
}

func small() *study.Study {
	s := better()
	s.Ended.Why = study.EndBudget
	v := &s.Verdicts[0]
	v.Worth = study.Worth{Answer: study.Small, Primary: study.CPUPerByte, Why: "goodput is at 98.9 % of the link in both arms, so CPU decides", Metrics: []study.Metric{
		{Name: study.Goodput, Unit: "bit/s", Baseline: 941e6, Arm: 941.2e6, Effect: 0.0002, Low: new(-0.0003), High: new(0.0008), Blocks: 24, Answer: study.Same, Decided: true, Warnings: []string{"the link is saturated: 941 of 1,000 Mbit/s in both arms"}},
		{Name: study.CPUPerByte, Unit: "ns/B", Baseline: 1.21, Arm: 1.15, Effect: -0.0496, Low: new(-0.081), High: new(-0.017), Blocks: 24, Answer: study.Small, MoreBlocks: 60, Warnings: []string{"neighbouring blocks resemble each other (r1 = 0.52): lengthen the settle time"}},
	}}
	v.Advice = study.Advice{Action: study.Leave, Text: "no reason to touch it: the difference is real but small"}
	return s
}

func void() *study.Study {
	s := better()
	for i := range s.Slots {
		if s.Slots[i].Block%2 == 1 && s.Slots[i].Arm == "tso=off" {
			s.Slots[i].Void, s.Slots[i].Metrics = "the peer did not answer within 5 s", nil
		}
	}
	s.Slots[0].Void = "veth0 went down"
	s.Slots[2].Warnings = []string{"goodput rose during the slot: settle time too short"}
	s.Blocks, s.Ended = 3, study.End{Why: study.EndFailed, Text: "the peer is gone: ssh: connection reset", Elapsed: 44}
	s.Warnings = []string{"half of the slots of arm tso=off are void: the arms are not compared on equal terms"}
	s.Events = []study.Event{{At: epoch.Add(30 * time.Second), Kind: "resumed", Text: "after 12 min"}}
	v := &s.Verdicts[0]
	v.Worth = study.Worth{Answer: study.Inconclusive, Primary: study.Goodput, Metrics: []study.Metric{
		{Name: study.Goodput, Unit: "bit/s", Baseline: 11.9e9, Arm: 20.4e9, Effect: 0.71, Blocks: 3, Answer: study.Inconclusive, Warnings: []string{"5 blocks dropped, the first since veth0 went down"}},
	}}
	v.Advice = study.Advice{Action: study.Leave}
	return s
}

func interrupted() *study.Study {
	s := better()
	s.Verdicts, s.Slots, s.Blocks = nil, s.Slots[:3], 1
	s.Ended = study.End{Why: study.EndInterrupted, Elapsed: 9.4}
	return s
}

// hostile carries in every string of foreign origin what could break a
// terminal, a table, a page or a mail.
func hostile() *study.Study {
	const evil = "\x1b[2J\x1b]0;pwn\a<script>alert(1)</script>|`*_[x](http://evil.example) @all #1 \u202eabc\r\n--\n\xff漢字"
	s := better()
	s.Plan.Command = "offlab run 'cmd:x=" + evil + "' " + string(make([]byte, 40)) + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	s.Version, s.Environment.Kernel, s.Environment.Governor = evil, evil, evil
	s.Environment.Notes, s.Warnings = []string{evil}, []string{evil, "`````"}
	h := &s.Environment.Hosts[0]
	h.Device, h.Driver, h.Firmware, h.CPUModel, h.Hostname, h.Name, h.Kernel = evil, evil, evil, evil, evil, evil, evil
	h.Pinned = map[string]string{evil: evil}
	s.Checks[0].Arm, s.Checks[0].Dragged[0].Name, s.Checks[0].Knobs[0].Reason = evil, evil, evil
	s.Checks[0].Knobs[0].Moved = false
	s.Slots[0].Void, s.Ended.Text, s.Ended.Why = evil, evil, study.EndFailed
	s.Events = []study.Event{{At: epoch, Kind: evil, Text: evil}}
	v := &s.Verdicts[0]
	v.Knob, v.Baseline, v.Arm, v.Path, v.Family, v.Load = evil, evil, evil, evil, evil, evil
	v.Acts = study.Answer{Answer: evil, Text: evil, Proof: []study.Proof{{Layer: evil, Source: evil, Baseline: evil, Arm: evil, Text: evil}}}
	v.Right = study.Answer{Answer: study.Yes, Text: evil, Proof: []study.Proof{{Layer: evil, Source: evil, Text: "x"}}}
	v.Worth.Answer, v.Worth.Why, v.Worth.Primary = evil, evil, evil
	v.Worth.Metrics[0].Name, v.Worth.Metrics[0].Unit, v.Worth.Metrics[0].Warnings = evil, evil, []string{evil}
	v.Worth.Metrics[1].Answer = evil
	v.Advice = study.Advice{Action: evil, Command: evil + " ```", Persistent: evil, Text: evil}
	return s
}
