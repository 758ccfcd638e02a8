package model_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/internal/softnic/model"
	tu "github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/vnet"
)

func find(t *testing.T, name string) softnic.Model {
	t.Helper()
	m, err := model.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestModels: each model is one that the card can be, and says where it is from.
func TestModels(t *testing.T) {
	for _, e := range model.Models.All() {
		m := e.Model
		t.Run(m.Name, func(t *testing.T) {
			if !strings.Contains(m.Source, "Linux ") {
				t.Errorf("source %q names no version", m.Source)
			}
			if extra := m.VLANOffloads &^ m.Offloads; extra != 0 {
				t.Errorf("VLAN devices get %v, which the port has not", extra)
			}
			checkRings(t, m)
			checkCounters(t, m)
			checkMerge(t, m)
		})
	}
	if _, err := model.Find("none-such"); err == nil || !strings.Contains(err.Error(), "stmmac") {
		t.Errorf("an unknown name gives %v, want the list", err)
	}
}

// TestDocument: the page for users has a row for each model and each fault.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../../docs/concepts/soft-nic.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range model.Models.All() {
		names = append(names, e.Name())
	}
	for _, e := range fault.Faults.All() {
		names = append(names, e.Name())
	}
	for _, name := range names {
		if !bytes.Contains(page, []byte("\n| `"+name+"` |")) {
			t.Errorf("no row for %s", name)
		}
	}
	if rows := bytes.Count(page, []byte("\n| `")); rows != len(names) {
		t.Errorf("%d rows for %d models and faults", rows, len(names))
	}
}

func checkRings(t *testing.T, m softnic.Model) {
	t.Helper()
	if m.TX.Stop >= m.TX.Ring-1 {
		t.Errorf("the queue stops below %d of %d descriptors, which is always", m.TX.Stop, m.TX.Ring)
	}
	if m.TX.Wake != 0 && (m.TX.Wake < m.TX.Stop || m.TX.Wake >= m.TX.Ring) {
		t.Errorf("a queue that stopped below %d goes on at %d of %d", m.TX.Stop, m.TX.Wake, m.TX.Ring)
	}
	// The largest packet, counted by hand, has room where the queue is not
	// stopped: a healthy card drops nothing of what it accepts.
	segs, size := 1, 65536
	if !m.Offloads.Has(softnic.TSO4) {
		size = 9000
	}
	if m.TX.SoftwareTSO {
		segs = m.TX.MaxSegs
	}
	per := m.TX.PerData
	if per == 0 {
		per = softnic.DefaultPerData
	}
	need := m.TX.PerPacket + segs*(m.TX.PerHeader+(size/segs+per-1)/per)
	if m.TX.Align > 1 {
		need += segs
	}
	if m.TX.Stop != 0 && need > m.TX.Stop {
		t.Errorf("a packet may need %d descriptors, and the queue stops below %d", need, m.TX.Stop)
	}
}

func checkCounters(t *testing.T, m softnic.Model) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range m.Counters {
		if seen[c.Driver] || c.Driver == "" || c.Station.Gauge() || c.Station.String() == "unknown" {
			t.Errorf("counter %q of %s", c.Driver, c.Station)
		}
		seen[c.Driver] = true
	}
	for _, s := range []softnic.Station{softnic.WireBytes, softnic.RXFrames, softnic.RXBytes} {
		found := false
		for _, c := range m.Counters {
			found = found || c.Station == s
		}
		if !found {
			t.Errorf("no counter says %s", s)
		}
	}
}

func checkMerge(t *testing.T, m softnic.Model) {
	t.Helper()
	if m.RX.Merge == nil {
		if m.RX.MergeOff {
			t.Error("what it has not cannot be off")
		}
		return
	}
	for _, mtu := range []int{68, 576, 1280, 1400, 1437, 1438, 1500, 4096, 4097, 9000, 65535} {
		if _, err := gro.New(m.RX.Merge(mtu)); err != nil {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
}

// TestFigures compares with the sources, by their own names.
func TestFigures(t *testing.T) {
	for _, f := range []struct {
		model, what string
		got, want   int
	}{
		{"bgmac", "BGMAC_TX_RING_SLOTS", find(t, "bgmac").TX.Ring, 128},
		{"bgmac", "BGMAC_RX_RING_SLOTS", find(t, "bgmac").RX.Ring, 512},
		{"bgmac", "BGMAC_DESC_CTL1_LEN", find(t, "bgmac").TX.PerData, 0x1fff},
		{"bnx2x", "MAX_TX_AVAIL", find(t, "bnx2x").TX.Ring, (4096/16-1)*16 - 2},
		{"bnx2x", "MAX_RX_AVAIL", find(t, "bnx2x").RX.Ring, (4096/8-2)*8 - 2},
		{"bnx2x", "MAX_DESC_PER_TX_PKT", find(t, "bnx2x").TX.Stop, 17 + 3 + 1},
		{"bnx2x", "TPA_AGG_SIZE", find(t, "bnx2x").RX.Merge(1500).MaxSize - 1, 8 * 4096},
		{"bnx2x", "ETH_MAX_AGGREGATION_QUEUES_E1H_E2", find(t, "bnx2x").RX.Merge(1500).MaxFlows, 64},
		{"fec", "TX_RING_SIZE", find(t, "fec").TX.Ring, 1024},
		{"fec", "FEC_ENET_RX_PAGES", find(t, "fec").RX.Ring, 256},
		{"fec", "FEC_MAX_TSO_SEGS", find(t, "fec").TX.MaxSegs, 100},
		{"fec", "tx_wake_threshold - tx_stop_threshold", find(t, "fec").TX.Wake - find(t, "fec").TX.Stop, 2 * 17},
		{"fec", "fep->tx_align + 1", find(t, "fec").TX.Align, 16},
		{"mv643xx", "DEFAULT_TX_QUEUE_SIZE", find(t, "mv643xx").TX.Ring, 256},
		{"mv643xx", "DEFAULT_RX_QUEUE_SIZE", find(t, "mv643xx").RX.Ring, 128},
		{"mv643xx", "MAX_SKB_FRAGS + 1", find(t, "mv643xx").TX.Stop, 18},
		{"mv643xx", "lro_mgr.max_aggr", find(t, "mv643xx").RX.Merge(1500).MaxSegments, 32},
		{"mv643xx", "set_rx_coal", int(find(t, "mv643xx").RX.Moderation.Usecs / time.Microsecond), 250},
		{"qede", "NUM_TX_BDS_DEF", find(t, "qede").TX.Ring - 1, 1<<13 - 1},
		{"qede", "NUM_RX_BDS_DEF", find(t, "qede").RX.Ring, 1<<10 - 1},
		{"qede", "MAX_SKB_FRAGS + 1", find(t, "qede").TX.Stop, 18},
		{"qede", "tpa_min_size_to_start", find(t, "qede").RX.Merge(1500).Limits.MinSize, 750},
		{"qede", "tpa_max_size", find(t, "qede").RX.Merge(1500).MaxSize - 1, 65535},
		{"stmmac", "DMA_DEFAULT_TX_SIZE", find(t, "stmmac").TX.Ring, 512},
		{"stmmac", "DMA_DEFAULT_RX_SIZE", find(t, "stmmac").RX.Ring, 512},
		{"stmmac", "TSO_MAX_BUFF_SIZE", find(t, "stmmac").TX.PerData, 16<<10 - 1},
		{"stmmac", "STMMAC_TX_THRESH + 1", find(t, "stmmac").TX.Wake, 512/4 + 1},
	} {
		if f.got != f.want {
			t.Errorf("%s: %s is %d, want %d", f.model, f.what, f.got, f.want)
		}
	}
}

// merge pushes n segments of a flow as one poll, and returns what comes out.
func merge(t *testing.T, o gro.Options, n, size int, over ...tu.Layer) (segments []int, header vnet.Header) {
	t.Helper()
	o.TrustChecksums = true
	e, err := gro.New(o)
	if err != nil {
		t.Fatal(err)
	}
	payload := bytes.Repeat([]byte{1}, size)
	for i := range n {
		ip := tu.IP4{ID: uint16(i), DF: true}
		outer := append([]tu.Layer{}, over...)
		for j, l := range outer {
			if o, ok := l.(tu.IP4); ok {
				o.ID = uint16(i)
				outer[j] = o
			}
		}
		f := tu.Build(append(outer, ip, tu.TCP{Seq: uint32(i * size)}, tu.Payload(payload))...)
		for _, out := range e.Push(0, gro.Packet{Data: f, Header: vnet.Header{Flags: vnet.DataValid}, Level: 1}) {
			segments, header = append(segments, out.Segments), out.Header
		}
	}
	for _, out := range e.Flush(0) {
		segments, header = append(segments, out.Segments), out.Header
	}
	return segments, header
}

// TestAggregation: what each model's driver or firmware makes of 40 segments
// that arrive at once.
func TestAggregation(t *testing.T) {
	eth, ip := tu.Eth{}, tu.IP4{DF: true}
	vxlan := []tu.Layer{eth, ip, tu.VXLAN{VNI: 1, Checksum: true}, eth}
	for _, s := range []struct {
		name, model string
		mtu, size   int
		over        []tu.Layer
		largest     int // segments of the largest aggregate
		gso         vnet.GSOType
	}{
		{"lro", "mv643xx", 1500, 1448, []tu.Layer{eth}, 32, vnet.GSONone},
		// Known to be wrong: gro.LRO does not look at NoVLAN; it should be 1.
		{"lro-tagged", "mv643xx", 1500, 1448, []tu.Layer{eth, tu.Tag{TCI: 1}}, 32, vnet.GSONone},
		{"two-in-each-of-8-pages", "bnx2x", 1500, 1448, []tu.Layer{eth}, 17, vnet.GSOTCPv4},
		{"mss-1388", "bnx2x", 1440, 1388, []tu.Layer{eth}, 17, vnet.GSOTCPv4},
		{"three-in-a-page", "bnx2x", 1400, 1348, []tu.Layer{eth}, 1, vnet.GSONone},
		{"larger-than-a-page", "bnx2x", 9000, 8948, []tu.Layer{eth}, 1, vnet.GSONone},
		{"one-in-a-page", "bnx2x", 4000, 3948, []tu.Layer{eth}, 8, vnet.GSOTCPv4},
		{"no-tunnel", "bnx2x", 1500, 1000, vxlan, 1, vnet.GSONone},
		{"full-pages", "bnx2x-lro", 1500, 1448, []tu.Layer{eth}, 22, vnet.GSONone},
		{"up-to-64k", "qede", 1500, 1448, []tu.Layer{eth}, 40, vnet.GSOTCPv4},
		{"tagged", "qede", 1500, 1448, []tu.Layer{eth, tu.Tag{TCI: 1}}, 40, vnet.GSOTCPv4},
		{"below-half-an-mtu", "qede", 1500, 700, []tu.Layer{eth}, 1, vnet.GSONone},
		{"vxlan", "qede", 1500, 1000, vxlan, 40, vnet.GSOTCPv4 | vnet.GSOUDPTunnel4},
		{"geneve", "qede", 1500, 1000, []tu.Layer{eth, ip, tu.Geneve{Checksum: true}, eth}, 40, vnet.GSOTCPv4 | vnet.GSOUDPTunnel4},
		{"gre", "qede", 1500, 1000, []tu.Layer{eth, ip, tu.GRE{}}, 40, vnet.GSOTCPv4},
	} {
		t.Run(s.model+"/"+s.name, func(t *testing.T) {
			got, header := merge(t, find(t, s.model).RX.Merge(s.mtu), 40, s.size, s.over...)
			sum, largest := 0, 0
			for _, n := range got {
				sum, largest = sum+n, max(largest, n)
			}
			if sum != 40 || largest != s.largest {
				t.Errorf("aggregates of %v, want %d at most", got, s.largest)
			}
			if s.largest > 1 && header.GSOType != s.gso {
				t.Errorf("type %v, want %v", header.GSOType, s.gso)
			}
		})
	}
}
