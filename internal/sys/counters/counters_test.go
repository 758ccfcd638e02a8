package counters

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProtocols(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("snmp", "Ip: Forwarding InReceives\nIp: 1 12\nTcp: MaxConn OutSegs\nTcp: -1 7\n")
	write("netstat", "IpExt: InNoECTPkts\nIpExt: 99\n")
	write("snmp6", "Ip6InReceives                   \t3\nIcmp6InMsgs 4\n")
	got, err := Protocols(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Set{
		"Ip.Forwarding": 1, "Ip.InReceives": 12, "Tcp.OutSegs": 7, "IpExt.InNoECTPkts": 99,
		"Ip6.InReceives": 3, "Icmp6.InMsgs": 4,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	write("snmp", "Ip: A B\nIp: 1\n")
	if _, err := Protocols(dir); err == nil {
		t.Error("a line with a value missing was taken")
	}
}

// TestProtocolsHere reads the files of the running kernel: the counters that
// verdicts rest on must be there.
func TestProtocolsHere(t *testing.T) {
	got, err := Protocols(Root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"Tcp.OutSegs", "Tcp.RetransSegs", "Tcp.InCsumErrors", "Ip.OutRequests", "Ip.InReceives",
		"IpExt.InNoECTPkts", "IpExt.InECT0Pkts", "TcpExt.TCPTimeouts", "Ip6.InReceives", "Ip6.InNoECTPkts",
	} {
		if _, ok := got[name]; !ok {
			t.Errorf("the kernel has no %s", name)
		}
	}
}

func TestRise(t *testing.T) {
	got := Rise(Set{"a": 5, "b": 7, "c": 1}, Set{"a": 9, "b": 3, "c": 1, "d": 2})
	want := map[string]float64{"a": 4, "b": 3, "d": 2}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLinkUnknown(t *testing.T) {
	if _, err := Link("no-such-device"); err == nil {
		t.Error("a device that is not there has counters")
	}
}
