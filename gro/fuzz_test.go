package gro_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/offlab/offlab/gro"
	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/packet"
	"github.com/offlab/offlab/vnet"
)

var allKinds = func() (k []tunnelKind) {
	for i := range tunnelKinds {
		k = append(k, i)
	}
	return k
}()

// fuzzOptions are the options of one byte.
func fuzzOptions(b byte) gro.Options {
	return gro.Options{
		Policy: gro.Policy(b & 3 % 3), Gather: b&4 != 0, Semantics: gro.Semantics(b >> 3 & 3), UDP: b&32 != 0,
		MaxFlows: 1 + int(b>>6), VXLANPort: packet.PortVXLAN, GenevePort: packet.PortGeneve,
	}
}

// FuzzPush: whatever the bytes, nothing panics; each packet leaves exactly once,
// alone as it came or as a piece of an aggregate; the pieces are of one flow, in
// the order they were pushed; and nothing that was pushed is written to.
func FuzzPush(f *testing.F) {
	for i := range uint64(40) { // short packets of all kinds of the generator
		f.Add(byte(i*37), join(smallBurst(rand.New(rand.NewPCG(7, i)))))
	}
	f.Add(byte(0x20), join([][]byte{{}, {1}, make([]byte, 14), make([]byte, 34), make([]byte, 54)}))
	f.Fuzz(func(t *testing.T, opt byte, data []byte) {
		frames := split(data)
		o := fuzzOptions(opt)
		if len(data)%2 == 1 {
			o.Start = packet.StartIP
		}
		e := newEngine(t, o)
		var pkts []gro.Packet
		for _, b := range frames {
			p := gro.Packet{Data: append([]byte{}, b...)}
			if len(b)%5 == 1 { // in parts
				p.Data, p.Rest = p.Data[:len(b)/2], [][]byte{p.Data[len(b)/2:]}
			}
			pkts = append(pkts, p)
		}
		got := pushAll(e, pkts)
		checkConserved(t, frames, got, o)
		for i, p := range pkts {
			if b := append(append([]byte{}, p.Data...), join2(p.Rest)...); string(b) != string(frames[i]) {
				t.Fatalf("packet %d was written to", i)
			}
		}
		if e.Held() != 0 || len(e.FlushAll()) != 0 {
			t.Fatal("something is still held after Flush")
		}
	})
}

// FuzzPushAny adds what a receiver may claim about a packet, true or not: an
// aggregate, verified checksums, one to be completed. Nothing panics, nothing
// stays held, and no byte comes out that did not go in beside the headers.
func FuzzPushAny(f *testing.F) {
	for i := range uint64(30) {
		f.Add(byte(i*37), i*0x9e3779b97f4a7c15, join(smallBurst(rand.New(rand.NewPCG(8, i)))))
	}
	f.Fuzz(func(t *testing.T, opt byte, claims uint64, data []byte) {
		o := fuzzOptions(opt)
		o.TunnelChecksum, o.TrustChecksums = claims&1 != 0, claims&2 != 0
		e := newEngine(t, o)
		r := rand.New(rand.NewPCG(claims, 5))
		in, segs := 0, 0
		var pkts []gro.Packet
		for _, b := range split(data) {
			p := gro.Packet{Data: b, Hash: r.Uint32(), Level: byte(r.IntN(3)), Trusted: r.IntN(2) == 0}
			p.Header = vnet.Header{
				Flags: vnet.Flags(r.IntN(4)), GSOType: vnet.GSOType([]byte{0, 0, 1, 4, 5, 0x21, 0x81, 77}[r.IntN(8)]),
				GSOSize: uint16(r.IntN(30)), CsumStart: uint16(r.IntN(80)), CsumOffset: 16,
			}
			in += len(b)
			pkts = append(pkts, p)
		}
		for _, out := range pushAll(e, pkts) {
			in -= len(out.Data)
			segs += out.Segments
		}
		if in < 0 || segs < 0 || segs < len(pkts) && segs == 0 || e.Held() != 0 {
			t.Fatalf("%d bytes too many, %d segments of %d packets, %d held", -in, segs, len(pkts), e.Held())
		}
	})
}

// smallBurst is a burst of few bytes: what the fuzzer can vary.
func smallBurst(r *rand.Rand) (frames [][]byte) {
	fl := randomFlow(r, allKinds)
	fl.mss = 1 + r.IntN(24)
	for range 4 {
		frames = append(frames, fl.step(r, 0.2))
	}
	return frames
}

func join(frames [][]byte) (b []byte) {
	for _, f := range frames {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(f))), f...)
	}
	return b
}

func join2(parts [][]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func split(b []byte) (frames [][]byte) {
	for len(b) >= 2 && len(frames) < 64 {
		n := min(int(be.Uint16(b)), len(b)-2)
		frames = append(frames, b[2:2+n])
		b = b[2+n:]
	}
	return frames
}

// checkConserved takes each output apart and finds its pieces among the packets
// pushed, in order.
func checkConserved(t *testing.T, frames [][]byte, got []result, o gro.Options) {
	t.Helper()
	used := make([]bool, len(frames))
	total := 0
	for i, r := range got {
		total += r.Segments
		if r.Segments == 1 {
			if findFrame(frames, used, 0, func(f []byte) bool { return string(f) == string(r.Data) }) < 0 {
				t.Fatalf("output %d (%v) is none of the packets: %x", i, r.Reason, head(r.Data))
			}
			continue
		}
		takeApart(t, frames, used, r, o)
	}
	if total != len(frames) {
		t.Fatalf("%d packets went in, %d came out", len(frames), total)
	}
}

func takeApart(t *testing.T, frames [][]byte, used []bool, r result, o gro.Options) {
	t.Helper()
	p := packet.Parser{Start: o.Start}
	var l packet.Layout
	if err := p.Parse(&l, r.Data); err != nil {
		t.Fatalf("aggregate does not parse: %v", err)
	}
	s := l.Innermost()
	payload := r.Data[s.Payload:]
	seq := uint32(0)
	if s.Proto == packet.ProtoTCP {
		seq = packet.TCP(r.Data[s.Transport:]).Seq()
	}
	last := -1
	for off := 0; off < len(payload); {
		var n int
		at := findFrame(frames, used, last+1, func(f []byte) bool {
			var k packet.Layout
			if len(f) <= s.Payload || p.Parse(&k, f) != nil {
				return false
			}
			q := k.Innermost()
			n = len(f) - q.Payload
			if q.Payload != s.Payload || q.Transport != s.Transport || n > len(payload)-off || string(f[q.Payload:]) != string(payload[off:off+n]) {
				return false
			}
			if q.Proto == packet.ProtoTCP && packet.TCP(f[q.Transport:]).Seq() != seq+uint32(off) {
				return false
			}
			return q.Proto == s.Proto && string(f[q.Transport:q.Transport+4]) == string(r.Data[s.Transport:s.Transport+4]) &&
				sameAddresses(f[q.Network:], r.Data[s.Network:])
		})
		if at < 0 {
			t.Fatalf("aggregate of %d segments (%v): bytes %d on are of no packet of the flow", r.Segments, r.Reason, off)
		}
		last = at
		off += n
	}
}

func sameAddresses(a, b []byte) bool {
	if a[0]>>4 == 4 {
		return string(a[12:20]) == string(b[12:20])
	}
	return string(a[8:40]) == string(b[8:40])
}

func findFrame(frames [][]byte, used []bool, from int, ok func([]byte) bool) int {
	for i := from; i < len(frames); i++ {
		if !used[i] && ok(frames[i]) {
			used[i] = true
			return i
		}
	}
	return -1
}

// resegment cuts an output again, as the doc comment of Output says.
func resegment(o *gro.Output, accECN bool) ([][]byte, error) {
	whole := append([]byte{}, o.Data...)
	for _, p := range o.Payload {
		whole = append(whole, p...)
	}
	if o.Header.GSOType == vnet.GSONone {
		return [][]byte{whole}, nil
	}
	dst := make([][]byte, o.Segments)
	sizes := make([]int, o.Segments)
	for i := range dst {
		dst[i] = make([]byte, gro.MaxHeader+1<<16)
	}
	n, err := gso.Split(dst, sizes, whole, o.Header, gso.Options{FixedID: o.FixedID, FixedInnerID: o.FixedInnerID, AccECN: accECN})
	if err != nil {
		return nil, err
	}
	if n != o.Segments {
		return nil, fmt.Errorf("%d frames of an output of %d segments", n, o.Segments)
	}
	for i := range dst {
		dst[i] = dst[i][:sizes[i]]
	}
	return dst, nil
}

// FuzzGSOofGRO: gso.Split(gro(xs)) = xs, frame for frame in the order of the
// outputs. What GRO may not preserve, and is left out:
//
//   - the urgent pointer, which Linux does not compare: the first one stays;
//   - with the rules of 6.12 and 6.16 the outer IDs of a tunnel under DF.
//
// Then the inverse: gro(gso.Split(p)) = p for each aggregate p.
func FuzzGSOofGRO(f *testing.F) {
	for i := range uint64(30) {
		f.Add(i, byte(i), byte(i%16))
	}
	f.Fuzz(func(t *testing.T, seed uint64, opt, kind byte) {
		r := rand.New(rand.NewPCG(seed, 11))
		kinds := allKinds
		if int(kind) < len(allKinds) {
			kinds = allKinds[kind : kind+1]
		}
		frames := burst(r, 64, kinds)
		o := fuzzOptions(opt)
		o.Policy, o.MaxFlows = gro.Linux, 64
		e := newEngine(t, o)
		var pkts []gro.Packet
		for _, b := range frames {
			pkts = append(pkts, gro.Packet{Data: b})
		}
		roundTrip(t, e, o, frames, pkts)
	})
}

func roundTrip(t *testing.T, e *gro.Engine, o gro.Options, frames [][]byte, pkts []gro.Packet) {
	t.Helper()
	back := newEngine(t, o)
	left := map[string]int{}
	for _, b := range frames {
		left[string(lossy(b, o))]++
	}
	check := func(outs []gro.Output) {
		for i := range outs {
			out := &outs[i]
			segs, err := resegment(out, o.Semantics == gro.Linux72)
			if err != nil {
				t.Fatalf("output (%v, %+v): %v: %x", out.Reason, out.Header, err, head(out.Data))
			}
			for _, s := range segs {
				k := string(lossy(s, o))
				if left[k] == 0 {
					t.Fatalf("a segment of an output of %d (%v, fixed %v %v, %+v) is no packet pushed: %x", out.Segments, out.Reason, out.FixedID, out.FixedInnerID, out.Header, head(s))
				}
				left[k]--
			}
			if out.Segments > 1 {
				checkInverse(t, back, out, segs)
			}
		}
	}
	check(e.Push(0, pkts...))
	check(e.Flush(0))
	for k, n := range left {
		if n != 0 {
			t.Fatalf("a packet did not come back %d times: %x", n, head([]byte(k)))
		}
	}
}

func checkInverse(t *testing.T, e *gro.Engine, want *gro.Output, segs [][]byte) {
	t.Helper()
	w := keep(nil, []gro.Output{*want})
	got := runBurst(e, segs)
	if d := diffResults(got, w); d != "" {
		t.Fatalf("gro(gso(p)) of %d segments (%v): %s", want.Segments, want.Reason, d)
	}
}

// lossy clears in a copy of the frame what GRO does not preserve.
func lossy(b []byte, o gro.Options) []byte {
	b = append([]byte{}, b...)
	l, err := packet.Parse(b, packet.StartEthernet)
	if err != nil {
		return b
	}
	s := l.Innermost()
	if s.Proto == packet.ProtoTCP && s.Transport != 0 {
		clear(b[s.Transport+16 : s.Transport+20]) // with the checksum over it
	}
	oldID := o.Semantics == gro.Linux612 || o.Semantics == gro.Linux616
	if l.Tunnel != packet.NoTunnel && oldID && l.Version == 4 {
		clear(b[l.Network+4 : l.Network+6])
		clear(b[l.Network+10 : l.Network+12])
	}
	if l.Tunnel == packet.GRE && packet.GREHeader(b[l.TunnelAt:]).HasChecksum() {
		clear(b[l.TunnelAt+4 : l.TunnelAt+6])
	}
	if u := l.Tunnel; u == packet.VXLAN || u == packet.Geneve {
		clear(b[l.Transport+6 : l.Transport+8])
	}
	return b
}

// FuzzGROofGSO: gro(gso.Split(p)) = p, byte for byte with its virtio_net_hdr,
// for super-packets that GRO can make: at least two segments, all but the last
// full, CWR only where the version merges it, PSH and FIN as the last segment
// will have them.
func FuzzGROofGSO(f *testing.F) {
	f.Add(uint64(1), uint16(1448), uint16(45*1448&0xffff), byte(0))
	f.Add(uint64(2), uint16(1), uint16(64), byte(1))
	f.Add(uint64(3), uint16(1200), uint16(5000), byte(2))
	f.Add(uint64(4), uint16(536), uint16(60000), byte(7))
	f.Fuzz(func(t *testing.T, seed uint64, size, n uint16, kind byte) {
		segs := (int(n) + int(size) - 1) / max(1, int(size))
		udp := kind&1 != 0
		if size == 0 || segs < 2 || n > 65000 || udp && segs > gro.MaxUDPSegments {
			return
		}
		r := rand.New(rand.NewPCG(seed, 3))
		fl := randomFlow(r, allKinds)
		if udp && (fl.kind == vxlan || fl.kind == geneve || fl.kind == vxlanCsum || fl.kind == geneveCsum) {
			fl.kind = plain
		}
		if fl.kind == greKeyCsum { // a short last segment does not merge, as in Linux: see sameTunnel
			fl.kind = greKey
		}
		fl.udp, fl.ecn, fl.mss = udp, 0, int(size)
		super := fl.frame(r, int(n), 0x10|byte(r.IntN(2)*9), 0)
		h := superHeader(super, int(size))
		out := gro.Output{Data: super, Header: h, Segments: segs}
		frames, err := resegment(&out, false)
		if err != nil {
			t.Fatalf("%v: %x", err, head(super))
		}
		got := runBurst(newEngine(t, gro.Options{UDP: true, VXLANPort: packet.PortVXLAN, GenevePort: packet.PortGeneve}), frames)
		if len(got) != 1 || got[0].Segments != segs {
			t.Fatalf("%d segments became %d outputs, kind %d, %x", segs, len(got), fl.kind, head(super))
		}
		if g, w := lossy(got[0].Data, gro.Options{}), lossy(super, gro.Options{}); string(g) != string(w) {
			t.Fatalf("%s", diffBytes(g, w))
		}
	})
}

// superHeader describes a frame that the generator made with all its checksums.
func superHeader(b []byte, size int) vnet.Header {
	l, err := packet.Parse(b, packet.StartEthernet)
	if err != nil {
		panic(err)
	}
	s := l.Innermost()
	h := vnet.Header{Flags: vnet.NeedsCsum, GSOSize: uint16(size), CsumStart: uint16(s.Transport)}
	at := s.Transport + packet.TCPChecksumOffset
	switch {
	case s.Proto == packet.ProtoUDP:
		h.GSOType, at = vnet.GSOUDPL4, s.Transport+packet.UDPChecksumOffset
	case s.Version == 6:
		h.GSOType = vnet.GSOTCPv6
	default:
		h.GSOType = vnet.GSOTCPv4
	}
	h.CsumOffset = uint16(at - s.Transport)
	be.PutUint16(b[at:], pkttest.Pseudo(b[s.Network:], s.Proto, len(b)-s.Transport))
	if l.Tunnel == packet.VXLAN || l.Tunnel == packet.Geneve {
		h.GSOType |= vnet.GSOUDPTunnel4
		if l.Version == 6 {
			h.GSOType ^= vnet.GSOUDPTunnel4 | vnet.GSOUDPTunnel6
		}
		if packet.UDP(b[l.Transport:]).Checksum() != 0 {
			h.Flags |= vnet.UDPTunnelCsum
		}
		h.OuterTransport, h.InnerNetwork = uint16(l.Transport), uint16(s.Network)
	}
	return h
}
