package verdict_test

import (
	"testing"

	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/verdict"
)

// TestAdvice goes through present states, winners and kinds of knob.
func TestAdvice(t *testing.T) {
	for _, tt := range []struct {
		name, knob, first, second, now string
		better                         bool // whether the second value is
		action, command, persistent    string
		text                           string
	}{
		{"keep-on", "tso", "off", "on", "on", true, study.KeepOn, "ethtool -K eth0 tso on", "[Link]\nTCPSegmentationOffload=yes\nTCP6SegmentationOffload=yes", "keep on: "},
		{"turn-on", "gro", "off", "on", "off", true, study.TurnOn, "ethtool -K eth0 gro on", "[Link]\nGenericReceiveOffload=yes", "turn on: "},
		{"turn-off", "lro", "off", "on", "on", false, study.TurnOff, "ethtool -K eth0 lro off", "[Link]\nLargeReceiveOffload=no", "turn off: "},
		{"leave-off", "gso", "off", "on", "off", false, study.Leave, "ethtool -K eth0 gso off", "[Link]\nGenericSegmentationOffload=no", "leave off: "},
		{
			"joined", "sg+tso", "off", "on", "off", true, study.TurnOn, "ethtool -K eth0 sg on tso on",
			`ACTION=="add", SUBSYSTEM=="net", NAME=="eth0", RUN+="/usr/sbin/ethtool -K $name sg on tso on"`, "turn on: ",
		},
		{"long-name", "gro-hw", "off", "on", "off", true, study.TurnOn, "ethtool -K eth0 rx-gro-hw on", "[Link]\nGenericReceiveOffloadHardware=yes", "turn on: "},
		{
			"kernel-name", "tx-gso-partial", "off", "on", "on", true, study.KeepOn, "ethtool -K eth0 tx-gso-partial on",
			`ACTION=="add", SUBSYSTEM=="net", NAME=="eth0", RUN+="/usr/sbin/ethtool -K $name tx-gso-partial on"`, "keep on: ",
		},
		{"checksum", "rx", "off", "on", "on", false, study.TurnOff, "ethtool -K eth0 rx off", "[Link]\nReceiveChecksumOffload=no", "turn off: "},
		{"ring", "ring-rx", "256", "4096", "256", true, study.Set, "ethtool -G eth0 rx 4096", "[Link]\nRxBufferSize=4096", "set ring-rx to 4096: "},
		{
			"ring-push", "ring-tx-push", "off", "on", "off", true, study.TurnOn, "ethtool -G eth0 tx-push on",
			`ACTION=="add", SUBSYSTEM=="net", NAME=="eth0", RUN+="/usr/sbin/ethtool -G $name tx-push on"`, "turn on: ",
		},
		{"coalesce", "rx-usecs", "0", "50", "50", true, study.Leave, "ethtool -C eth0 rx-usecs 50", "[Link]\nRxCoalesceSec=50us", "leave rx-usecs at 50: "},
		{"adaptive", "adaptive-rx", "off", "on", "off", true, study.TurnOn, "ethtool -C eth0 adaptive-rx on", "[Link]\nUseAdaptiveRxCoalesce=yes", "turn on: "},
		{"mtu", "mtu", "1500", "9000", "1500", true, study.Set, "ip link set dev eth0 mtu 9000", "[Link]\nMTUBytes=9000", "set mtu to 9000: "},
		{
			"gro-size", "gro_max_size", "65536", "131072", "65536", true, study.Set, "ip link set dev eth0 gro_max_size 131072",
			`ACTION=="add", SUBSYSTEM=="net", NAME=="eth0", RUN+="/usr/sbin/ip link set dev $name gro_max_size 131072"`, "set gro_max_size to 131072: ",
		},
		{
			"sysctl", "net.ipv4.tcp_rmem", "4096 1 2", "4096 8 9", "4096 1 2", true, study.Set, "sysctl -w 'net.ipv4.tcp_rmem=4096 8 9'",
			"# /etc/sysctl.d/90-offlab.conf\nnet.ipv4.tcp_rmem = 4096 8 9", "set net.ipv4.tcp_rmem to 4096 8 9: ",
		},
		{"command", "cmd:irq", "echo 0", "echo 1", "", true, study.Set, "echo 1", "", "run echo 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder().knob(tt.knob, tt.first, tt.second, tt.now, tx)
			good, bad := effect{goodput: 1.3e9}, effect{goodput: 1e9}
			if !tt.better {
				good, bad = bad, good
			}
			effects := map[string]effect{tt.knob + "=" + tt.first: bad, tt.knob + "=" + tt.second: good, study.Current: bad}
			if tt.now == tt.second {
				effects[study.Current] = good
			}
			a := b.run(10, effects).only(t).Advice
			equal(t, "action", a.Action, tt.action)
			equal(t, "command", a.Command, tt.command)
			equal(t, "persistent", a.Persistent, tt.persistent)
			has(t, "text", a.Text, tt.text)
			has(t, "text", a.Text, " against ")
		})
	}
}

// TestAdviceCommand finds the commands of a switch in the factor it came from.
func TestAdviceCommand(t *testing.T) {
	for _, factor := range []string{"cmd:q='tc a, b','tc c'", "cmd:q='tc a, b',tc c"} {
		b := newBuilder().knob("cmd:q", "off", "on", "", tx)
		b.Plan.Factors = []string{"tso", factor}
		b.run(10, map[string]effect{"cmd:q=on": {goodput: 1.3e9}, "cmd:q=off": {goodput: 1e9}})
		equal(t, "command", b.only(t).Advice.Command, "tc a, b")
		b.Slots = nil
		b.run(10, map[string]effect{"cmd:q=on": {goodput: 1e9}, "cmd:q=off": {goodput: 1.3e9}})
		equal(t, "command", b.only(t).Advice.Command, "tc c")
	}
}

func TestAdviceFactorial(t *testing.T) {
	for _, v := range verdict.Make(factorial(1, 12).Study)[:2] {
		equal(t, "action", v.Advice.Action, study.KeepOn)
		equal(t, "command", v.Advice.Command, "ethtool -K eth0 "+v.Knob+" on")
	}
}
