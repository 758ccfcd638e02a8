package fault_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
	tu "github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// The packets that each fault is tried on. Super-packets are cut into three.
const mss = 1448

var (
	data   = bytes.Repeat([]byte("0123456789abcdef"), 256)[:2*mss+1000]
	last   = byte(packet.ACK | packet.PSH)
	ip     = tu.IP4{ID: 0xfffe, DF: true}
	routed = tu.IP4{ID: 7, DF: true, TTL: 63}
	tcp    = tu.TCP{Seq: 1000, Flags: last, Partial: true}
	cwr    = tu.TCP{Seq: 1000, Flags: last | packet.CWR, Partial: true}
	eth    = tu.Eth{}
	tag    = tu.Tag{TCI: 100}
)

func gsoHeader(t vnet.GSOType, start int) vnet.Header {
	return vnet.Header{Flags: vnet.NeedsCsum, GSOType: t, GSOSize: mss, CsumStart: uint16(start), CsumOffset: 16}
}

func partial(start, offset int) vnet.Header {
	return vnet.Header{Flags: vnet.NeedsCsum, CsumStart: uint16(start), CsumOffset: uint16(offset)}
}

func tunnel(h vnet.Header, outer, inner int) vnet.Header {
	h.Flags |= vnet.UDPTunnelCsum
	h.OuterTransport, h.InnerNetwork = uint16(outer), uint16(inner)
	return h
}

var inputs = map[string]packetIn{
	"tcp4":        {tu.Build(eth, ip, tcp, tu.Payload(data)), gsoHeader(vnet.GSOTCPv4, 34)},
	"tcp6":        {tu.Build(eth, tu.IP6{}, tcp, tu.Payload(data)), gsoHeader(vnet.GSOTCPv6, 54)},
	"tcp4-cwr":    {tu.Build(eth, ip, cwr, tu.Payload(data)), gsoHeader(vnet.GSOTCPv4|vnet.GSOECN, 34)},
	"tcp4-tag":    {tu.Build(eth, tag, ip, tcp, tu.Payload(data)), gsoHeader(vnet.GSOTCPv4, 38)},
	"tcp4-routed": {tu.Build(eth, routed, tcp, tu.Payload(data)), gsoHeader(vnet.GSOTCPv4, 34)},
	"tcp4-vxlan": {
		tu.Build(eth, ip, tu.VXLAN{VNI: 1, Checksum: true, Partial: true}, eth, ip, tcp, tu.Payload(data)),
		tunnel(gsoHeader(vnet.GSOTCPv4|vnet.GSOUDPTunnel4, 84), 34, 64),
	},
	"tcp4-geneve6": {
		tu.Build(eth, tu.IP6{}, tu.Geneve{VNI: 1, Checksum: true, Partial: true}, eth, ip, tcp, tu.Payload(data)),
		tunnel(gsoHeader(vnet.GSOTCPv4|vnet.GSOUDPTunnel6, 104), 54, 84),
	},
	"one":          {tu.Build(eth, ip, tcp, tu.Payload("small")), partial(34, 16)},
	"one-tag":      {tu.Build(eth, tag, ip, tcp, tu.Payload("as long as it need not be padded")), partial(38, 16)},
	"one-complete": {tu.Build(eth, ip, tu.TCP{Flags: last}, tu.Payload("small")), vnet.Header{}},
	"udp":          {tu.Build(eth, ip, tu.UDP{Partial: true}, tu.Payload(data[:1000])), partial(34, 6)},
	"udp-short":    {tu.Build(eth, ip, tu.UDP{Partial: true}, tu.Payload("")), partial(34, 6)},
	"udp-zero":     {tu.Build(eth, ip, tu.UDP{NoChecksum: true}, tu.Payload(data[:1000])), vnet.Header{}},
	"small-mss":    {tu.Build(eth, ip, tcp, tu.Payload(data[:144])), gsoHeaderSize(48)},
}

func gsoHeaderSize(size uint16) vnet.Header {
	h := gsoHeader(vnet.GSOTCPv4, 34)
	h.GSOSize = size
	return h
}

// effects says what each fault does to each packet. What is not in here stays
// as it is: that is the other half of the test.
var effects = map[string]map[string]string{
	"bad-csum-good": {}, // TestBadCsumGood
	"csum-partial": {
		"tcp4": "0:sum! 1:sum! 2:sum!", "tcp6": "0:sum! 1:sum! 2:sum!", "tcp4-cwr": "0:sum! 1:sum! 2:sum!",
		"tcp4-tag": "0:sum! 1:sum! 2:sum!", "tcp4-routed": "0:sum! 1:sum! 2:sum!",
		"tcp4-vxlan":   "0:sum!+unexplained outer-sum! 1:sum!+unexplained outer-sum! 2:sum!+unexplained outer-sum!",
		"tcp4-geneve6": "0:sum!+unexplained outer-sum! 1:sum!+unexplained outer-sum! 2:sum!+unexplained outer-sum!",
		"one":          "0:sum!", "one-tag": "0:sum!", "udp": "0:sum!", "udp-short": "0:sum!",
		"small-mss": "0:sum! 1:sum! 2:sum!",
	},
	"csum-port": {
		"tcp4-vxlan": "0:sum!+unexplained outer-sum! 1:sum!+unexplained outer-sum! 2:sum!+unexplained outer-sum!",
	},
	"csum-second": {
		"tcp4": "1:sum!", "tcp6": "1:sum!", "tcp4-cwr": "1:sum!", "tcp4-tag": "1:sum!", "tcp4-routed": "1:sum!",
		"tcp4-vxlan": "1:sum!+unexplained outer-sum!", "tcp4-geneve6": "1:sum!+unexplained outer-sum!",
		"small-mss": "1:sum!",
	},
	"csum-short": {"one": "0:sum!", "udp-short": "0:sum!"},
	"csum-vlan":  {"tcp4-tag": "0:sum! 1:sum! 2:sum!", "one-tag": "0:sum!"},
	"cwr-all":    {"tcp4-cwr": "1:flags+sum 2:flags+sum"},
	"forwarded-drop": {
		"tcp4-routed": "dropped",
	},
	"forwarded-tso": {"tcp4-routed": "1:sum! 2:sum!"},
	"ip-id": {
		"tcp4": "1:id+ip-sum 2:id+ip-sum", "tcp4-cwr": "1:id+ip-sum 2:id+ip-sum", "tcp4-tag": "1:id+ip-sum 2:id+ip-sum",
		"tcp4-routed":  "1:id+ip-sum 2:id+ip-sum",
		"tcp4-vxlan":   "1:outer-id+outer-ip-sum+id+ip-sum 2:outer-id+outer-ip-sum+id+ip-sum",
		"tcp4-geneve6": "1:id+ip-sum 2:id+ip-sum", "small-mss": "1:id+ip-sum 2:id+ip-sum",
	},
	"lro-forward": {}, // TestLROForward
	"merge-fixed": {}, // TestMergeFixed
	"mss-bits": {
		"tcp4": "10 frames for 3", "tcp6": "10 frames for 3", "tcp4-cwr": "10 frames for 3", "tcp4-tag": "10 frames for 3",
		"tcp4-routed": "10 frames for 3", "tcp4-vxlan": "10 frames for 3", "tcp4-geneve6": "10 frames for 3",
	},
	"mss-min": {"small-mss": "dropped"},
	"outer-csum": {
		"tcp4-vxlan":   "0:outer-sum! 1:outer-sum! 2:outer-sum!",
		"tcp4-geneve6": "0:outer-sum! 1:outer-sum! 2:outer-sum!",
	},
	"partial-drop": {
		"tcp4": "dropped", "tcp6": "dropped", "tcp4-cwr": "dropped", "tcp4-tag": "dropped", "tcp4-routed": "dropped",
		"tcp4-vxlan": "dropped", "tcp4-geneve6": "dropped", "one": "dropped", "one-tag": "dropped", "udp": "dropped",
		"udp-short": "dropped", "small-mss": "dropped",
	},
	"psh-lost": {
		"tcp4": "2:flags+sum", "tcp6": "2:flags+sum", "tcp4-cwr": "2:flags+sum", "tcp4-tag": "2:flags+sum",
		"tcp4-routed": "2:flags+sum", "tcp4-vxlan": "2:flags+sum", "tcp4-geneve6": "2:flags+sum",
		"small-mss": "2:flags+sum",
	},
	"retransmit-drop": {}, // TestRetransmitDrop
	"ring-stuck":      {}, // TestRingStuck
	"segment-order": {
		"tcp4": "2@1 1@2", "tcp6": "2@1 1@2", "tcp4-cwr": "2@1 1@2", "tcp4-tag": "2@1 1@2", "tcp4-routed": "2@1 1@2",
		"tcp4-vxlan": "2@1 1@2", "tcp4-geneve6": "2@1 1@2", "small-mss": "2@1 1@2",
	},
	"trailer": {
		"tcp4": "0:+4 1:+4 2:+4", "tcp6": "0:+4 1:+4 2:+4", "tcp4-cwr": "0:+4 1:+4 2:+4", "tcp4-tag": "0:+4 1:+4 2:+4",
		"tcp4-routed": "0:+4 1:+4 2:+4", "tcp4-vxlan": "0:+4 1:+4 2:+4", "tcp4-geneve6": "0:+4 1:+4 2:+4",
		"small-mss": "0:+4 1:+4 2:+4",
	},
	"tso-claimed": {
		"tcp4": "1 of 1 lost on the wire", "tcp6": "1 of 1 lost on the wire", "tcp4-cwr": "1 of 1 lost on the wire",
		"tcp4-tag": "1 of 1 lost on the wire", "tcp4-routed": "1 of 1 lost on the wire",
		"tcp4-vxlan": "1 of 1 lost on the wire", "tcp4-geneve6": "1 of 1 lost on the wire",
		"small-mss": "1 of 1 lost on the wire",
	},
	"tunnel6-drop": {"tcp4-geneve6": "dropped"},
	"vlan-first":   {"tcp4-tag": "1:untagged 2:untagged"},
}

// TestEffects: each fault breaks exactly what it says, in the packets that it
// says, and nothing else.
func TestEffects(t *testing.T) {
	for _, e := range fault.Faults.All() {
		want, ok := effects[e.Name()]
		if !ok {
			t.Errorf("%s has no row in this table", e.Name())
		}
		for name, in := range inputs {
			t.Run(e.Name()+"/"+name, func(t *testing.T) {
				healthy, broken := &card{}, &card{hooks: hooksOf(e.Fault)}
				before := bytes.Clone(in.data)
				healthy.send(t, in)
				good := healthy.clone()
				for i := range good {
					if wrong := wrongSums(good[i].Data); wrong != nil {
						t.Fatalf("the healthy card gets %v of frame %d wrong", wrong, i)
					}
				}
				broken.send(t, in)
				if got := broken.compare(good); got != want[name] {
					t.Errorf("%q, want %q", got, want[name])
				}
				if !bytes.Equal(in.data, before) {
					t.Error("the host's packet was changed")
				}
			})
		}
		for name := range want {
			if _, ok := inputs[name]; !ok {
				t.Errorf("%s: no packet is called %s", e.Name(), name)
			}
		}
	}
}

// TestCatalog: each fault is described, and its words do not end as a sentence
// does, since they are quoted.
func TestCatalog(t *testing.T) {
	for _, e := range fault.Faults.All() {
		if e.Fault.Source == "" || e.Hooks == nil {
			t.Errorf("%s has no source or does nothing", e.Name())
		}
		if strings.HasSuffix(e.About(), ".") || len(e.About()) > 100 {
			t.Errorf("%s: %q is not one short line", e.Name(), e.About())
		}
	}
	if _, err := fault.Find("none-such"); err == nil || !strings.Contains(err.Error(), "vlan-first") {
		t.Errorf("an unknown name gives %v, want the list", err)
	}
}

// TestNoAllocs: no hook allocates.
func TestNoAllocs(t *testing.T) {
	for _, e := range fault.Faults.All() {
		c := &card{hooks: hooksOf(e.Fault)}
		for name, in := range inputs {
			c.send(t, in)
			if n := testing.AllocsPerRun(20, func() { c.send(t, in) }); n != 0 {
				t.Errorf("%s allocates %.0f times on %s", e.Name(), n, name)
			}
		}
		if h := c.hooks.Receive; h != nil {
			f := softnic.Frame{Data: inputs["tcp4"].data, Checked: true}
			if n := testing.AllocsPerRun(20, func() { h(&f) }); n != 0 {
				t.Errorf("%s allocates %.0f times on receive", e.Name(), n)
			}
		}
	}
}

// TestGarbage: no hook panics on frames that make no sense.
func TestGarbage(t *testing.T) {
	for _, e := range fault.Faults.All() {
		h := hooksOf(e.Fault)
		for _, in := range inputs {
			for n := 14; n <= min(len(in.data), 140); n++ {
				for _, start := range []uint16{0, in.header.CsumStart, uint16(n), 65535} {
					head := in.header
					head.CsumStart, head.Flags = start, vnet.NeedsCsum
					for _, hook := range []func(*softnic.Frame) softnic.Action{h.Super, h.Segment, h.Wire, h.Receive} {
						if hook != nil {
							hook(&softnic.Frame{Data: bytes.Clone(in.data[:n]), Header: head, Index: 1, Count: 3, Checked: true})
						}
					}
				}
			}
		}
	}
}

// TestCsumShort: the sum is 6 too low, as in the thread's captures.
func TestCsumShort(t *testing.T) {
	healthy, broken := &card{}, &card{hooks: hooksOf(find(t, "csum-short"))}
	healthy.send(t, inputs["udp-short"])
	broken.send(t, inputs["udp-short"])
	good := packet.UDP(healthy.out[0].Data[34:]).Checksum()
	if got := packet.UDP(broken.out[0].Data[34:]).Checksum(); got != good-6 {
		t.Errorf("checksum %#x, want %#x - 6", got, good)
	}
}

// TestCsumVLAN: what was in the field is in the sum.
func TestCsumVLAN(t *testing.T) {
	healthy, broken := &card{}, &card{hooks: hooksOf(find(t, "csum-vlan"))}
	in := inputs["one-tag"]
	healthy.send(t, in)
	broken.send(t, in)
	seed := uint32(packet.TCP(in.data[38:]).Checksum())
	sum := uint32(^packet.TCP(healthy.out[0].Data[38:]).Checksum()) + seed
	want := ^uint16(sum + sum>>16)
	if got := packet.TCP(broken.out[0].Data[38:]).Checksum(); got != want {
		t.Errorf("checksum %#x, want %#x", got, want)
	}
}

// TestMSSBits: the segments are good ones, of the size that is left.
func TestMSSBits(t *testing.T) {
	c := &card{hooks: hooksOf(find(t, "mss-bits"))}
	c.send(t, inputs["tcp4"])
	var got []byte
	for i, f := range c.out {
		if wrong := wrongSums(f.Data); wrong != nil {
			t.Errorf("frame %d: %v wrong", i, wrong)
		}
		if n := len(f.Data) - 54; i < len(c.out)-1 && n != mss&1023 {
			t.Errorf("frame %d has %d bytes, want %d", i, n, mss&1023)
		}
		got = append(got, f.Data[54:]...)
	}
	if !bytes.Equal(got, data) {
		t.Error("the data is not what was sent")
	}
}

// TestTSOClaimed: what leaves is the uncut packet, with a good checksum, and the
// card offers what it cannot do.
func TestTSOClaimed(t *testing.T) {
	h := hooksOf(find(t, "tso-claimed"))
	if got := h.Offer(softnic.SG | softnic.Checksum); !got.Has(softnic.TSO) {
		t.Errorf("offers %v, want TSO", got)
	}
	h.Wire = nil
	c := &card{hooks: h}
	c.send(t, inputs["tcp4"])
	if len(c.out) != 1 || len(c.out[0].Data) != len(inputs["tcp4"].data) || wrongSums(c.out[0].Data) != nil {
		t.Errorf("%d frames, want the packet as it was, with its checksum", len(c.out))
	}
}

// TestRingStuck: the 257th super-packet stays, and everything behind it; other
// packets alone do no harm.
func TestRingStuck(t *testing.T) {
	c := &card{hooks: hooksOf(find(t, "ring-stuck"))}
	for range 1000 {
		c.send(t, inputs["one"])
		if c.ended != softnic.Pass {
			t.Fatal("a packet that is not cut sticks")
		}
	}
	for i := range 256 {
		c.send(t, inputs["tcp4"])
		if c.ended != softnic.Pass {
			t.Fatalf("super-packet %d sticks", i)
		}
	}
	for _, name := range []string{"tcp4", "one", "udp"} {
		c.send(t, inputs[name])
		if c.ended != softnic.Stick {
			t.Errorf("%s goes on behind the hang", name)
		}
	}
}

// TestRetransmitDrop: only what is longer than one packet, and sent again.
func TestRetransmitDrop(t *testing.T) {
	c := &card{hooks: hooksOf(find(t, "retransmit-drop"))}
	super := func(seq uint32, port uint16) packetIn {
		s := tu.TCP{Src: port, Seq: seq, Partial: true}
		return packetIn{tu.Build(eth, ip, s, tu.Payload(data)), gsoHeader(vnet.GSOTCPv4, 34)}
	}
	single := func(seq uint32) packetIn {
		return packetIn{tu.Build(eth, ip, tu.TCP{Src: 1, Seq: seq, Partial: true}, tu.Payload(data[:mss])), partial(34, 16)}
	}
	n := uint32(len(data))
	start := ^uint32(0) - n/2 // wraps around
	for _, s := range []struct {
		what string
		in   packetIn
		want softnic.Action
	}{
		{"first", super(start, 1), softnic.Pass},
		{"next", super(start+n, 1), softnic.Pass},
		{"other-flow", super(start, 2), softnic.Pass},
		{"again-single", single(start), softnic.Pass},
		{"again", super(start, 1), softnic.Drop},
		{"half-again", super(start+n+n/2, 1), softnic.Drop},
		{"new", super(start+2*n+n/2, 1), softnic.Pass},
	} {
		if c.send(t, s.in); c.ended != s.want {
			t.Errorf("%s: action %d, want %d", s.what, c.ended, s.want)
		}
	}
}

// TestBadCsumGood: what the card checked is good, whatever it found; what it did
// not look at, or cannot know, is not.
func TestBadCsumGood(t *testing.T) {
	h := hooksOf(find(t, "bad-csum-good")).Receive
	arp := make([]byte, 60)
	arp[12], arp[13] = 8, 6
	for _, s := range []struct {
		name    string
		data    []byte
		checked bool
		want    bool
	}{
		{"bad-tcp", inputs["tcp4"].data, true, true}, // its checksum is partial
		{"bad-udp", inputs["udp"].data, true, true},
		{"unchecked", inputs["tcp4"].data, false, false},
		{"arp", arp, true, false},
	} {
		f := softnic.Frame{Data: s.data, Checked: s.checked, Count: 1}
		if a := h(&f); a != softnic.Pass || f.Valid != s.want {
			t.Errorf("%s: action %d, valid %t; want %t", s.name, a, f.Valid, s.want)
		}
	}
}

// TestLROForward: the same packets merge, and nothing says how to cut them.
func TestLROForward(t *testing.T) {
	c := &card{}
	c.send(t, inputs["tcp4"])
	merge := hooksOf(find(t, "lro-forward")).Merge
	healthy := gro.Options{Policy: gro.Hardware, TrustChecksums: true}
	for _, s := range []struct {
		name string
		opt  gro.Options
		gso  vnet.GSOType
	}{
		{"healthy", healthy, vnet.GSOTCPv4},
		{"broken", merge(healthy), vnet.GSONone},
		{"big-tcp", merge(gro.Options{Policy: gro.Hardware, TrustChecksums: true, MaxSize: gro.MaxMaxSize}), vnet.GSONone},
	} {
		e, err := gro.New(s.opt)
		if err != nil {
			t.Fatal(err)
		}
		var outs []gro.Output
		for i := range c.out {
			outs = append(outs, e.Push(0, gro.Packet{Data: c.out[i].Data})...)
		}
		outs = append(outs, e.Flush(0)...)
		if len(outs) != 1 || outs[0].Segments != 3 || outs[0].Header.GSOType != s.gso {
			t.Errorf("%s: %+v, want one aggregate of type %v", s.name, outs, s.gso)
		}
	}
}

// TestMergeFixed: off is refused, on is not, and nothing else is touched.
func TestMergeFixed(t *testing.T) {
	h := hooksOf(find(t, "merge-fixed")).Setting
	for _, s := range []struct {
		setting               softnic.Setting
		present, wanted, want int
	}{
		{softnic.SetMerge, 1, 0, 1},
		{softnic.SetMerge, 0, 1, 1},
		{softnic.SetMerge, 0, 0, 0},
		{softnic.SetChecksum, 1, 0, 0},
		{softnic.SetUsecs, 50, 0, 0},
	} {
		if got := h(s.setting, s.present, s.wanted); got != s.want {
			t.Errorf("%s from %d to %d is %d, want %d", s.setting, s.present, s.wanted, got, s.want)
		}
	}
}
