package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/testutil/need"
)

// A faultCase is a study that must tell what is wrong with a card.
type faultCase struct {
	args string // of offlab run, without --fault
	// answer is that of the last verdict: study.Wrong, or study.No to "does it
	// act".
	answer string
	words  string // of its reason
	// unit says why no study of the built-in lab shows the fault; then it is
	// tested in packages internal/softnic/fault and internal/wirecheck.
	unit string
}

// noTunnel: csum-port, outer-csum and tunnel6-drop break packets inside VXLAN
// and Geneve.
const noTunnel = "the lab has no path through a UDP tunnel"

// faultCases: each fault, with a knob, a path and a direction in which it shows.
var faultCases = map[string]faultCase{
	// Only what the card merges is taken at its word: a TAP does not pass on that
	// a single packet was found good.
	"bad-csum-good": {args: "gro-hw --wire-corrupt 0.002", answer: study.Wrong, words: "payload: stream 0, byte"},
	"csum-partial":  {args: "tx --budget 40s", answer: study.Wrong, words: "never completed, it is the sum of the pseudo-header"},
	"csum-port":     {unit: noTunnel},
	"csum-second":   {args: "tx", answer: study.Wrong, words: "checksum bad: "},
	// A packet below 60 bytes is an acknowledgment without the 12 bytes of
	// timestamps.
	"csum-short": {args: "net.ipv4.tcp_timestamps=1,0", answer: study.Wrong, words: "checksum bad below 60 bytes"},
	"csum-vlan":  {args: "tx --path vlan:10 --budget 40s", answer: study.Wrong, words: "the field was not cleared"},
	// A loss makes a sender with ECN say CWR as well.
	"cwr-all":         {args: "net.ipv4.tcp_ecn=2,1 --wire-loss 0.002", answer: study.Wrong, words: "CWR repeated"},
	"forwarded-drop":  {args: "tso --path forwarded --direction tx", answer: study.Wrong, words: "packets lost in the card"},
	"forwarded-tso":   {args: "tso --path forwarded --direction tx", answer: study.Wrong, words: "checksum bad"},
	"ip-id":           {args: "tso", answer: study.Wrong, words: "IPv4 ID constant"},
	"lro-forward":     {args: "gro-hw --path forwarded --direction rx", answer: study.Wrong, words: "packets too long to send on"},
	"merge-fixed":     {args: "gro-hw", answer: study.No, words: "gro-hw stays on"},
	"mss-bits":        {args: "tso", answer: study.Wrong, words: "segments smaller than the MSS"},
	"mss-min":         {args: "mtu=1500,100", answer: study.Wrong, words: "packets lost in the card"},
	"outer-csum":      {unit: noTunnel},
	"partial-drop":    {args: "tx --budget 40s", answer: study.Wrong, words: "no connection"},
	"psh-lost":        {args: "tso", answer: study.Wrong, words: "PSH lost"},
	"retransmit-drop": {args: "tso --wire-loss 0.03 --budget 30s", answer: study.Wrong, words: "packets lost in the card"},
	"ring-stuck":      {args: "tso", answer: study.Wrong, words: "transmit queue stuck"},
	"segment-order":   {args: "tso", answer: study.Wrong, words: "order by up to 1 × MSS"},
	"trailer":         {args: "tso", answer: study.Wrong, words: "trailer bytes after the packet"},
	"tso-claimed":     {args: "tso --nic bgmac", answer: study.Wrong, words: "frames longer than the MTU"},
	"tunnel6-drop":    {unit: noTunnel},
	"vlan-first":      {args: "tso --path vlan:10", answer: study.Wrong, words: "tag missing on segments 2...n"},
}

// healthyCases have nothing to be said against them.
var healthyCases = []string{
	"tso --nic generic",
	"tso --nic generic",
	"tso --nic generic",
	"tso --nic generic -6",
	"tso --nic generic --wire-loss 0.002",
	"tso --nic fec",
	"tso --nic bnx2x",
	"tso --nic qede",
	"tso --nic stmmac",
	"tso --nic generic --path vlan:10",
	"tso --nic generic --path forwarded --direction tx",
	"gro-hw --nic generic",
	"net.ipv4.tcp_ecn=2,1 --nic generic --wire-loss 0.002",
	"mtu=1500,1400 --nic generic",
}

// TestKernelFaults: a study of each broken card says what is wrong with it.
func TestKernelFaults(t *testing.T) {
	need.Root(t)
	need.NetNS(t)
	need.TUN(t)
	bin := build(t)
	for _, e := range fault.Faults.All() {
		c, ok := faultCases[e.Name()]
		if !ok {
			t.Errorf("%s has no row in the table", e.Name())
		}
		if c.unit != "" {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			s, report := runStudy(t, bin, "--fault "+e.Name()+" --budget 12s "+c.args)
			v := s.Verdicts[len(s.Verdicts)-1]
			a := v.Right
			if c.answer == study.No {
				a = v.Acts
			}
			if a.Answer != c.answer || !strings.Contains(a.Text, c.words) {
				t.Errorf("%q: %s; want %q with %q\n%s", a.Answer, a.Text, c.answer, c.words, report)
			}
			if c.answer == study.Wrong && s.Ended.Why != study.EndDecided {
				t.Errorf("ended %q, want it decided", s.Ended.Why)
			}
		})
	}
	for name := range faultCases {
		if _, err := fault.Find(name); err != nil {
			t.Errorf("the table has %s: %v", name, err)
		}
	}
}

// TestKernelHealthy: a study of a sound card finds nothing wrong, in no slot.
func TestKernelHealthy(t *testing.T) {
	need.Root(t)
	need.NetNS(t)
	need.TUN(t)
	bin := build(t)
	for i, args := range healthyCases {
		t.Run(fmt.Sprintf("%d-%s", i, strings.Fields(args)[2]), func(t *testing.T) {
			s, report := runStudy(t, bin, "--budget 3s "+args)
			for _, v := range s.Verdicts {
				if v.Right.Answer != study.Yes || v.Acts.Answer == study.No {
					t.Errorf("acts %q (%s), right %q (%s)\n%s", v.Acts.Answer, v.Acts.Text, v.Right.Answer, v.Right.Text, report)
				}
			}
			for _, slot := range s.Slots {
				for _, f := range slot.Findings {
					t.Errorf("%s, block %d, %s: %s: %s", slot.Phase, slot.Block, slot.Arm, f.Kind, f.Text)
				}
			}
			checked := false
			for _, p := range s.Verdicts[0].Right.Proof {
				checked = checked || p.Layer == study.LayerPackets && strings.Contains(p.Text, "0 wrong")
			}
			if !checked {
				t.Errorf("no proof tells how many frames were checked\n%s", report)
			}
		})
	}
}

// runStudy runs a study of short slots and returns it with its report.
func runStudy(t *testing.T, bin, args string) (*study.Study, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	line := append([]string{"run"}, strings.Fields(args)...)
	line = append(line, "--measure", "300ms", "--settle", "100ms", "--quiet", "-o", file)
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "offlab"), line...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir) //nolint:forbidigo // a program needs its environment
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) { // 1: a verdict
		t.Fatalf("offlab %v: %v\n%s", line, err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := study.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Verdicts) == 0 {
		t.Fatalf("no verdict\n%s", out)
	}
	return s, string(out)
}
