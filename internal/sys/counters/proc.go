package counters

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Set maps a counter to its value: "Tcp.OutSegs", "IpExt.InNoECTPkts",
// "Ip6.InReceives", "link.rx_dropped".
type Set map[string]uint64

// Root is where the files of the namespace's counters are.
const Root = "/proc/thread-self/net"

// Protocols reads snmp, netstat and snmp6 below root. A file that does not
// exist (no IPv6) adds nothing.
func Protocols(root string) (Set, error) {
	set := Set{}
	for file, parse := range map[string]func(Set, []byte) error{
		"snmp": parsePaired, "netstat": parsePaired, "snmp6": parseSnmp6,
	} {
		b, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("counters: %w", err)
		}
		if err := parse(set, b); err != nil {
			return nil, fmt.Errorf("counters: %s: %w", filepath.Join(root, file), err)
		}
	}
	return set, nil
}

// parsePaired reads the form of /proc/net/snmp: a line of names, then a line of
// values, both after "Proto:".
func parsePaired(set Set, b []byte) error {
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 1<<20) // the TcpExt line is long
	for sc.Scan() {
		names := strings.Fields(sc.Text())
		if !sc.Scan() {
			return fmt.Errorf("line %q has no values", names)
		}
		values := strings.Fields(sc.Text())
		if len(names) != len(values) || len(names) == 0 || names[0] != values[0] {
			return fmt.Errorf("names and values differ: %d and %d", len(names), len(values))
		}
		proto := strings.TrimSuffix(names[0], ":")
		for i := 1; i < len(names); i++ {
			// Tcp MaxConn is -1: "no limit", which is no counter.
			if v, err := strconv.ParseUint(values[i], 10, 64); err == nil {
				set[proto+"."+names[i]] = v
			}
		}
	}
	return sc.Err()
}

// parseSnmp6 reads "Ip6InReceives 12" as Ip6.InReceives.
func parseSnmp6(set Set, b []byte) error {
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			name, value, _ = strings.Cut(strings.TrimSpace(line), "\t")
		}
		v, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if err != nil {
			continue
		}
		for _, proto := range []string{"Ip6", "Icmp6", "Udp6", "UdpLite6"} {
			if rest, ok := strings.CutPrefix(name, proto); ok {
				set[proto+"."+rest] = v
			}
		}
	}
	return nil
}

// Rise returns the counters of after that exceed before, by how much. A counter
// that went down was reset; it rises from 0.
func Rise(before, after Set) map[string]float64 {
	rise := map[string]float64{}
	for name, a := range after {
		b := before[name]
		if a < b {
			b = 0
		}
		if a > b {
			rise[name] = float64(a - b)
		}
	}
	return rise
}
