package verdict

import (
	"fmt"
	"strings"
)

// A kind is a way of setting knobs.
type kind int

const (
	kindFeature kind = iota
	kindCoalesce
	kindRing
	kindLink
	kindSysctl
	kindCommand
)

// A way is how a knob is set by hand, and where its value is read back from.
type way struct {
	kind   kind
	set    string // command before the settings, %s is the device
	source string
}

// ways is indexed by kind.
var ways = [...]way{
	kindFeature:  {kindFeature, "ethtool -K %s", "feature bits (ethtool -k)"},
	kindCoalesce: {kindCoalesce, "ethtool -C %s", "coalescing (ethtool -c)"},
	kindRing:     {kindRing, "ethtool -G %s", "ring sizes (ethtool -g)"},
	kindLink:     {kindLink, "ip link set dev %s", "link attributes (rtnetlink)"},
	kindSysctl:   {kindSysctl, "sysctl -w", "/proc/sys"},
	kindCommand:  {kindCommand, "", "the command's exit status"},
}

// A knobInfo is what the tools call a knob. Keys of .link files: systemd.link(5)
// of systemd 250, with the unit of the value behind the key.
type knobInfo struct {
	knob string
	kind kind
	name string   // in the command; empty: the knob's name
	link []string // keys of a .link file; empty: it has none
	unit string   // of the value in a .link file
}

var knobs = []knobInfo{
	// TCPSegmentationOffload alone leaves tx-tcp6-segmentation on
	// (systemd issue 6854).
	{"tso", kindFeature, "", []string{"TCPSegmentationOffload", "TCP6SegmentationOffload"}, ""},
	{"tx-tcp-segmentation", kindFeature, "", []string{"TCPSegmentationOffload"}, ""},
	{"tx-tcp6-segmentation", kindFeature, "", []string{"TCP6SegmentationOffload"}, ""},
	{"gso", kindFeature, "", []string{"GenericSegmentationOffload"}, ""},
	{"gro", kindFeature, "", []string{"GenericReceiveOffload"}, ""},
	{"lro", kindFeature, "", []string{"LargeReceiveOffload"}, ""},
	{"gro-hw", kindFeature, "rx-gro-hw", []string{"GenericReceiveOffloadHardware"}, ""},
	{"rx-gro-hw", kindFeature, "", []string{"GenericReceiveOffloadHardware"}, ""},
	{"rx", kindFeature, "", []string{"ReceiveChecksumOffload"}, ""},
	{"tx", kindFeature, "", []string{"TransmitChecksumOffload"}, ""},
	{"rxvlan", kindFeature, "", []string{"ReceiveVLANCTAGHardwareAcceleration"}, ""},
	{"txvlan", kindFeature, "", []string{"TransmitVLANCTAGHardwareAcceleration"}, ""},
	{"ntuple", kindFeature, "", []string{"NTupleFilter"}, ""},
	{"uso", kindFeature, "tx-udp-segmentation", nil, ""},
	{"fraglist", kindFeature, "rx-gro-list", nil, ""},
	{"gro-udp-fwd", kindFeature, "rx-udp-gro-forwarding", nil, ""},
	{"hw-tc", kindFeature, "hw-tc-offload", nil, ""},

	{"adaptive-rx", kindCoalesce, "", []string{"UseAdaptiveRxCoalesce"}, ""},
	{"adaptive-tx", kindCoalesce, "", []string{"UseAdaptiveTxCoalesce"}, ""},
	{"rx-usecs", kindCoalesce, "", []string{"RxCoalesceSec"}, "us"},
	{"rx-frames", kindCoalesce, "", []string{"RxMaxCoalescedFrames"}, ""},
	{"rx-usecs-irq", kindCoalesce, "", []string{"RxCoalesceIrqSec"}, "us"},
	{"rx-frames-irq", kindCoalesce, "", []string{"RxMaxCoalescedIrqFrames"}, ""},
	{"tx-usecs", kindCoalesce, "", []string{"TxCoalesceSec"}, "us"},
	{"tx-frames", kindCoalesce, "", []string{"TxMaxCoalescedFrames"}, ""},
	{"tx-usecs-irq", kindCoalesce, "", []string{"TxCoalesceIrqSec"}, "us"},
	{"tx-frames-irq", kindCoalesce, "", []string{"TxMaxCoalescedIrqFrames"}, ""},
	{"stats-block-usecs", kindCoalesce, "", []string{"StatisticsBlockCoalesceSec"}, "us"},
	{"pkt-rate-low", kindCoalesce, "", []string{"CoalescePacketRateLow"}, ""},
	{"rx-usecs-low", kindCoalesce, "", []string{"RxCoalesceLowSec"}, "us"},
	{"rx-frames-low", kindCoalesce, "", []string{"RxMaxCoalescedLowFrames"}, ""},
	{"tx-usecs-low", kindCoalesce, "", []string{"TxCoalesceLowSec"}, "us"},
	{"tx-frames-low", kindCoalesce, "", []string{"TxMaxCoalescedLowFrames"}, ""},
	{"pkt-rate-high", kindCoalesce, "", []string{"CoalescePacketRateHigh"}, ""},
	{"rx-usecs-high", kindCoalesce, "", []string{"RxCoalesceHighSec"}, "us"},
	{"rx-frames-high", kindCoalesce, "", []string{"RxMaxCoalescedHighFrames"}, ""},
	{"tx-usecs-high", kindCoalesce, "", []string{"TxCoalesceHighSec"}, "us"},
	{"tx-frames-high", kindCoalesce, "", []string{"TxMaxCoalescedHighFrames"}, ""},
	{"sample-interval", kindCoalesce, "", []string{"CoalescePacketRateSampleIntervalSec"}, "s"},
	{"cqe-mode-rx", kindCoalesce, "", nil, ""},
	{"cqe-mode-tx", kindCoalesce, "", nil, ""},
	{"tx-aggr-max-bytes", kindCoalesce, "", nil, ""},
	{"tx-aggr-max-frames", kindCoalesce, "", nil, ""},
	{"tx-aggr-time-usecs", kindCoalesce, "", nil, ""},

	{"ring-rx", kindRing, "rx", []string{"RxBufferSize"}, ""},
	{"ring-tx", kindRing, "tx", []string{"TxBufferSize"}, ""},
	{"ring-rx-mini", kindRing, "rx-mini", []string{"RxMiniBufferSize"}, ""},
	{"ring-rx-jumbo", kindRing, "rx-jumbo", []string{"RxJumboBufferSize"}, ""},

	{"mtu", kindLink, "", []string{"MTUBytes"}, ""},
	{"gso_max_size", kindLink, "", []string{"GenericSegmentOffloadMaxBytes"}, ""},
	{"gso_max_segs", kindLink, "", []string{"GenericSegmentOffloadMaxSegments"}, ""},
	{"gro_max_size", kindLink, "", nil, ""},
	{"gso_ipv4_max_size", kindLink, "", nil, ""},
	{"gro_ipv4_max_size", kindLink, "", nil, ""},
	{"txqueuelen", kindLink, "", []string{"TransmitQueueLength"}, ""},
}

const (
	commandPrefix = "cmd:"
	ringPrefix    = "ring-" // tells the ring rx from the checksum rx
)

// infoOf returns what is known of a knob. A name that is in no table is a
// feature by the kernel's name, as ethtool takes it.
func infoOf(knob string) knobInfo {
	for _, k := range knobs {
		if k.knob == knob {
			return k
		}
	}
	switch {
	case strings.HasPrefix(knob, commandPrefix):
		return knobInfo{knob: knob, kind: kindCommand}
	case strings.ContainsAny(knob, "./"):
		return knobInfo{knob: knob, kind: kindSysctl}
	case strings.HasPrefix(knob, ringPrefix):
		return knobInfo{knob: knob, kind: kindRing, name: strings.TrimPrefix(knob, ringPrefix)}
	default:
		return knobInfo{knob: knob, kind: kindFeature}
	}
}

func wayOf(knob string) way { return ways[infoOf(partsOf(knob)[0]).kind] }

// partsOf splits knobs that are set together.
func partsOf(knob string) []string {
	if strings.HasPrefix(knob, commandPrefix) {
		return []string{knob}
	}
	return strings.Split(knob, "+")
}

// commandFor returns the command line that sets a knob on a device.
func commandFor(knob, value, device string) string {
	parts := partsOf(knob)
	how := wayOf(knob)
	if how.kind == kindSysctl {
		return how.set + " " + quote(infoOf(parts[0]).knob+"="+value)
	}
	words := []string{fmt.Sprintf(how.set, device)}
	for _, part := range parts {
		words = append(words, infoOf(part).option(), quote(value))
	}
	return strings.Join(words, " ")
}

// option is the knob's name on the command line.
func (k knobInfo) option() string { return firstOf(k.name, k.knob) }

// persistentFor returns what keeps the setting over a reboot: lines for the
// device's .link file or, where systemd has no key for it, a udev rule.
func persistentFor(knob, value, device string) string {
	if wayOf(knob).kind == kindSysctl {
		return fmt.Sprintf("# /etc/sysctl.d/90-offlab.conf\n%s = %s", infoOf(knob).knob, value)
	}
	lines := []string{"[Link]"}
	for _, part := range partsOf(knob) {
		info := infoOf(part)
		if len(info.link) == 0 {
			return fmt.Sprintf(`ACTION=="add", SUBSYSTEM=="net", NAME=="%s", RUN+="/usr/sbin/%s"`, device, commandFor(knob, value, "$name"))
		}
		for _, key := range info.link {
			lines = append(lines, key+"="+linkValue(value)+info.unit)
		}
	}
	return strings.Join(lines, "\n")
}

func linkValue(value string) string {
	switch value {
	case "on":
		return "yes"
	case "off":
		return "no"
	default:
		return value
	}
}

// quote quotes a word for the shell if it needs it.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/=:,+@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
