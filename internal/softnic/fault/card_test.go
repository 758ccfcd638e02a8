package fault_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/fault"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/packet/checksum"
	"github.com/offlab/offlab/vnet"
)

func find(t *testing.T, name string) softnic.Fault {
	t.Helper()
	f, err := fault.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func hooksOf(f softnic.Fault) softnic.Hooks {
	return f.Hooks(softnic.Env{Rand: rand.New(rand.NewPCG(1, 2))})
}

// A packetIn is what a host hands down.
type packetIn struct {
	data   []byte
	header vnet.Header
}

// A card is the sending half of a soft NIC, without its ring and its wire.
type card struct {
	hooks  softnic.Hooks
	cutter gso.Splitter
	packet softnic.Frame
	frames []softnic.Frame
	bufs   [][]byte
	out    []softnic.Frame // what has reached the other end
	ended  softnic.Action  // of the packet
	lost   int             // frames on the wire
}

// send carries one packet. Frames of fewer than 60 bytes are padded, and each
// has room for 64 bytes more, as on the real card.
func (c *card) send(t *testing.T, p packetIn) {
	t.Helper()
	c.packet = softnic.Frame{Data: p.data, Header: p.header, Count: 1}
	c.out, c.ended, c.lost = c.out[:0], softnic.Pass, 0
	if c.hooks.Super != nil {
		if c.ended = c.hooks.Super(&c.packet); c.ended != softnic.Pass {
			return
		}
	}
	if err := c.cutter.Reset(c.packet.Data, c.packet.Header, gso.Options{}); err != nil {
		t.Fatal(err)
	}
	n := c.cutter.Len()
	for len(c.frames) < n {
		c.frames = append(c.frames, softnic.Frame{})
		c.bufs = append(c.bufs, make([]byte, 1<<16+256))
	}
	var later *softnic.Frame
	for i := range n {
		f := &c.frames[i]
		size, err := c.cutter.Frame(c.bufs[i], i)
		if err != nil {
			t.Fatal(err)
		}
		clear(c.bufs[i][size:max(size, 60)])
		size = max(size, 60)
		*f = softnic.Frame{Data: c.bufs[i][: size : size+64], Header: c.packet.Header, Index: i, Count: n}
		if c.hooks.Segment != nil {
			switch a := c.hooks.Segment(f); {
			case a == softnic.Later && later == nil && i < n-1:
				later = f
				continue
			case a != softnic.Pass && a != softnic.Later:
				t.Fatalf("action %d behind segmentation", a)
			}
		}
		c.leave(f)
		if later != nil {
			c.leave(later)
			later = nil
		}
	}
}

func (c *card) leave(f *softnic.Frame) {
	if c.hooks.Wire != nil && c.hooks.Wire(f) == softnic.Drop {
		c.lost++
		return
	}
	c.out = append(c.out, *f)
}

// clone returns what has reached the other end, to keep.
func (c *card) clone() []softnic.Frame {
	out := slices.Clone(c.out)
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out
}

// compare says what a broken card did with a packet, beside a healthy one that
// made the frames good. "" is nothing; "1:id+ip-sum" that these fields of frame
// 1 are others; "2:sum!" that the checksum is wrong besides.
func (c *card) compare(good []softnic.Frame) string {
	switch {
	case c.ended == softnic.Drop:
		return "dropped"
	case c.ended == softnic.Stick:
		return "stuck"
	case c.lost > 0:
		return fmt.Sprintf("%d of %d lost on the wire", c.lost, c.lost+len(c.out))
	case len(c.out) != len(good):
		return fmt.Sprintf("%d frames for %d", len(c.out), len(good))
	}
	var words []string
	for i := range c.out {
		f := &c.out[i]
		if f.Index != i {
			words = append(words, fmt.Sprintf("%d@%d", f.Index, i))
		}
		if s := differ(f.Data, good[f.Index].Data); s != "" {
			words = append(words, fmt.Sprintf("%d:%s", f.Index, s))
		}
	}
	return strings.Join(words, " ")
}

// differ names what is different in two frames, and which checksums of the
// first are wrong.
func differ(got, good []byte) string {
	l, err := packet.Parse(good, packet.StartEthernet)
	if err != nil {
		return err.Error()
	}
	var names []string
	if len(got) > len(good) {
		names = append(names, fmt.Sprintf("+%d", len(got)-len(good)))
		got = got[:len(good)]
	}
	if len(got) == len(good)-packet.VLANLen && l.Tags > 0 {
		names = append(names, "untagged")
		got = slices.Concat(got[:12], good[12:16], got[12:])
	}
	if len(got) != len(good) {
		return fmt.Sprintf("%d bytes for %d", len(got), len(good))
	}
	wrong := wrongSums(got)
	for i := range got {
		if got[i] == good[i] {
			continue
		}
		name := fieldAt(&l, i)
		if slices.Contains(wrong, name) {
			name += "!"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, w := range wrong {
		if !slices.Contains(names, w+"!") {
			names = append(names, "unexplained "+w+"!")
		}
	}
	return strings.Join(names, "+")
}

// fieldAt names the field at an offset.
func fieldAt(l *packet.Layout, at int) string {
	s, pre := &l.Stack, ""
	if l.Tunnel != packet.NoTunnel {
		if pre = "outer-"; at >= l.TunnelAt {
			s, pre = &l.Inner, ""
		}
	}
	switch off := at - s.Network; {
	case at < s.Network:
		return pre + "link"
	case at >= s.Payload:
		return pre + "payload"
	case at >= s.Transport && s.Proto == packet.ProtoTCP:
		switch at - s.Transport {
		case 4, 5, 6, 7:
			return pre + "seq"
		case 13:
			return pre + "flags"
		case 16, 17:
			return pre + "sum"
		}
		return pre + "tcp"
	case at >= s.Transport:
		if off := at - s.Transport; off == 6 || off == 7 {
			return pre + "sum"
		}
		return pre + "udp"
	case s.Version == 4 && (off == 4 || off == 5):
		return pre + "id"
	case s.Version == 4 && (off == 10 || off == 11):
		return pre + "ip-sum"
	}
	return pre + "ip"
}

// wrongSums names the checksums of a frame that are wrong.
func wrongSums(b []byte) (wrong []string) {
	l, err := packet.Parse(b, packet.StartEthernet)
	if err != nil {
		return []string{err.Error()}
	}
	pre := ""
	if l.Tunnel != packet.NoTunnel {
		wrong = wrongIn(wrong, "", b, &l.Inner)
		pre = "outer-"
	}
	return wrongIn(wrong, pre, b, &l.Stack)
}

func wrongIn(wrong []string, pre string, b []byte, s *packet.Stack) []string {
	if s.Version == 4 && !packet.IPv4(b[s.Network:]).ChecksumValid() {
		wrong = append(wrong, pre+"ip-sum")
	}
	seg := b[s.Transport : s.Network+s.Length]
	if s.Proto == packet.ProtoUDP && packet.UDP(seg).Checksum() == 0 {
		return wrong
	}
	sum := packet.Pseudo(b[s.Network:], s.Proto, len(seg)) + checksum.Sum(seg)
	if sum.Fold() != 0xffff {
		wrong = append(wrong, pre+"sum")
	}
	return wrong
}
