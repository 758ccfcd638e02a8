package gso_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

// FuzzSplit holds these laws for any bytes and any virtio header: no panic, no
// read beyond the input, and the input unchanged; Split and Scatter agree; n,
// contents and error agree when room runs out. And if the packet was cut: the
// payloads, joined, are the payload; every frame parses like the super-packet;
// each is no longer than the segment size allows; its checksums are valid;
// sequence numbers, IDs and flags follow the law.
func FuzzSplit(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 40 { // one of every kind, more or less
		p := gen(r, limits{tunnels: true, maxSegs: 4, maxLen: 1500})
		pkt, h, _ := p.packet()
		b := make([]byte, vnet.Tunnel.Size)
		if err := vnet.Tunnel.Put(b, h); err != nil {
			f.Fatal(err)
		}
		f.Add(b, pkt, p.noEth, uint8(r.Uint32()))
	}
	for _, e := range edges { // what Linux was asked in odd ways
		pkt, h := e.build()
		b := make([]byte, vnet.Tunnel.Size)
		if err := vnet.Tunnel.Put(b, h); err != nil {
			f.Fatal(err)
		}
		f.Add(b, pkt, false, uint8(0))
	}
	f.Fuzz(func(t *testing.T, hdr, pkt []byte, ip bool, opt uint8) {
		h, err := vnet.Tunnel.Get(hdr)
		if err != nil {
			return
		}
		o := gso.Options{FixedID: opt&1 != 0, FixedInnerID: opt&2 != 0, AccECN: opt&4 != 0, Partial: opt&8 != 0, TrimPadding: opt&16 != 0}
		if opt&32 != 0 {
			o.Checksum = gso.Pseudo
		}
		if ip {
			o.Start = packet.StartIP
		}
		in := bytes.Clone(pkt)[:len(pkt):len(pkt)]
		frames, err := split(in, h, o)
		again, err2 := scatter(in, h, o)
		if !bytes.Equal(in, pkt) {
			t.Fatal("the super-packet changed")
		}
		if !errors.Is(err, err2) || diff(frames, again) != "" {
			t.Fatalf("Split: %v, Scatter: %v %s", err, err2, diff(frames, again))
		}
		if err != nil {
			var known gso.Error
			if !errors.As(err, &known) || len(frames) > 0 {
				t.Fatalf("%d frames and %v", len(frames), err)
			}
			return
		}
		if len(frames) > 1 {
			n, err := gso.Split(frames[:len(frames)-1], make([]int, len(frames)), in, h, o)
			if n != len(frames)-1 || !errors.Is(err, gso.ErrRoom) {
				t.Fatalf("one buffer less: %d of %d, %v", n, len(frames), err)
			}
		}
		var s gso.Splitter
		if err := s.Reset(in, h, o); err != nil {
			t.Fatal(err)
		}
		if len(frames) > 1 && h.GSOType.Base() != vnet.GSOUDP && !o.Partial {
			c := law{frames: frames, h: h, o: o, hl: s.HeaderLen()}
			c.check(t, pkt)
		}
	})
}

// law is what the frames of a packet that was cut into more than one obey.
type law struct {
	frames [][]byte
	h      vnet.Header
	o      gso.Options
	hl     int // bytes of headers
}

func (c *law) check(t *testing.T, pkt []byte) {
	t.Helper()
	frames, h, o, hl := c.frames, c.h, c.o, c.hl
	payload := 0
	for i, f := range frames {
		if len(f) > hl+int(h.GSOSize) || i < len(frames)-1 && len(f) != hl+int(h.GSOSize) {
			t.Fatalf("frame %d of %d has %d bytes behind %d of headers, size %d", i, len(frames), len(f), hl, h.GSOSize)
		}
		payload += len(f) - hl
	}
	start := len(pkt) - payload
	if o.TrimPadding {
		start = bytes.Index(pkt[hl:], frames[0][hl:]) + hl
	}
	rest := pkt[start:]
	for i, f := range frames {
		if !bytes.HasPrefix(rest, f[hl:]) {
			t.Fatalf("frame %d: payload differs", i)
		}
		rest = rest[len(f)-hl:]
		c.frame(t, i)
	}
}

func (c *law) frame(t *testing.T, i int) {
	t.Helper()
	f, first, h, o, n := c.frames[i], c.frames[0], c.h, c.o, len(c.frames)
	if h.GSOType.UDPTunnel() {
		return // the offsets need not be those of a tunnel that Parse knows
	}
	l, err := packet.Parse(f, o.Start)
	if err != nil && h.GSOType.Base() != vnet.GSOUDPL4 {
		t.Fatalf("frame %d does not parse: %v", i, err)
	}
	st := l.Innermost()
	if h.GSOType.Base() == vnet.GSOUDPL4 && l.Transport == int(h.CsumStart) {
		st = &l.Stack
	}
	if st.Version == 4 {
		ip, ip0 := packet.IPv4(f[st.Network:]), packet.IPv4(first[st.Network:])
		fixed := o.FixedID && st == &l.Stack || o.FixedInnerID && st == &l.Inner
		if want := ip0.ID() + uint16(i); !ip.ChecksumValid() || !fixed && ip.ID() != want || fixed && ip.ID() != ip0.ID() {
			t.Fatalf("frame %d: IPv4 checksum or ID %d, first %d", i, ip.ID(), ip0.ID())
		}
	}
	if st.Network+st.Length != len(f) {
		t.Fatalf("frame %d: %d bytes claimed, %d are there", i, st.Network+st.Length, len(f))
	}
	if st.Proto == packet.ProtoTCP {
		a, b := packet.TCP(f[st.Transport:]), packet.TCP(first[st.Transport:])
		if want := b.Seq() + uint32(i)*uint32(h.GSOSize); a.Seq() != want {
			t.Fatalf("frame %d: sequence number %d, want %d", i, a.Seq(), want)
		}
		if i < n-1 && a.Flags()&(packet.FIN|packet.PSH) != 0 || i > 0 && !o.AccECN && a.Flags()&packet.CWR != 0 {
			t.Fatalf("frame %d of %d: flags %#x", i, n, a.Flags())
		}
	}
	// With NEEDS_CSUM the sum depends on what the field held. Without, the
	// checksum has to be right.
	if h.Flags&vnet.NeedsCsum == 0 && o.Checksum == gso.Full {
		seg := f[st.Transport:]
		if s := pkttest.Sum(seg, uint32(pkttest.Pseudo(f[st.Network:], st.Proto, len(seg)))); s != 0xffff {
			t.Fatalf("frame %d: transport checksum is wrong: sum %#04x", i, s)
		}
	}
}
