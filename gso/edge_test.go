package gso_test

import (
	"errors"
	"testing"

	"github.com/offlab/offlab/gso"
	"github.com/offlab/offlab/internal/testutil/pkttest"
	"github.com/offlab/offlab/vnet"
)

// result is what Linux 6.18 does with an odd request.
type result int

const (
	cut     result = iota // makes the frames
	refused               // EINVAL to the writer
	dropped               // takes the frame, and nothing comes out
)

// edge is an odd request: a packet of n bytes of payload and a change to it
// and to its virtio header.
type edge struct {
	name   string
	udp    bool
	n      int
	flags  byte
	id     uint16
	df, mf bool
	size   uint16
	edit   func(b []byte, h *vnet.Header)
	result result
	err    error
	sizes  []int // of the frames, if there are few
	// of the first and the last frame
	ids      [2]uint16
	tcpFlags [2]byte
	lastSeq  uint32
}

func (e *edge) build() ([]byte, vnet.Header) {
	ip := pkttest.IP4{ID: e.id, DF: e.df, MF: e.mf}
	payload := make(pkttest.Payload, e.n)
	h := vnet.Header{Flags: vnet.NeedsCsum, GSOType: vnet.GSOTCPv4, HdrLen: 54, GSOSize: e.size, CsumStart: 34, CsumOffset: 16}
	var b []byte
	if e.udp {
		h.GSOType, h.HdrLen, h.CsumOffset = vnet.GSOUDPL4, 42, 6
		b = pkttest.Build(pkttest.Eth{}, ip, pkttest.UDP{Partial: true}, payload)
	} else {
		b = pkttest.Build(pkttest.Eth{}, ip, pkttest.TCP{Seq: 0xfffffff0, Flags: e.flags, Partial: true}, payload)
	}
	if e.edit != nil {
		e.edit(b, &h)
	}
	return b, h
}

// edges were run on Linux 6.18; TestKernelGSOEdges runs them on the kernel
// there is.
var edges = []edge{
	{name: "tcp-seq-and-id-wrap-all-flags", n: 250, flags: 0xd9, id: 65535, df: true, size: 100, sizes: []int{154, 154, 104}, ids: [2]uint16{65535, 1}, tcpFlags: [2]byte{0xd0, 0x59}, lastSeq: 0xb8},
	{name: "tcp-ecn-bit", n: 250, flags: 0xd9, id: 65535, df: true, size: 100, edit: func(_ []byte, h *vnet.Header) { h.GSOType |= vnet.GSOECN }, sizes: []int{154, 154, 104}, ids: [2]uint16{65535, 1}, tcpFlags: [2]byte{0xd0, 0x59}, lastSeq: 0xb8},
	{name: "tcp-rst-syn-urg-replicated", n: 250, flags: 0x36, id: 1, size: 100, sizes: []int{154, 154, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x36, 0x36}, lastSeq: 0xb8},
	{name: "tcp-size-8", n: 100, flags: 0x10, id: 1, size: 8, ids: [2]uint16{1, 13}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0x50},
	{name: "tcp-size-0", n: 100, flags: 0x10, id: 1, size: 0, result: refused, err: gso.ErrSize},
	{name: "tcp-size-equals-payload", n: 100, flags: 0x10, id: 1, size: 100, sizes: []int{154}, ids: [2]uint16{1, 1}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xfffffff0},
	{name: "tcp-size-above-payload", n: 100, flags: 0x10, id: 1, size: 1000, sizes: []int{154}, ids: [2]uint16{1, 1}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xfffffff0},
	{name: "tcp-size-65535", n: 100, flags: 0x10, id: 1, size: 65535, result: refused, err: gso.ErrSize},
	{name: "tcp-without-needs-csum", n: 250, flags: 0x10, id: 1, size: 100, edit: func(_ []byte, h *vnet.Header) { h.Flags = 0 }, sizes: []int{154, 154, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xb8},
	{name: "tcp-csum-offset-6", n: 250, flags: 0x10, id: 1, size: 100, edit: func(_ []byte, h *vnet.Header) { h.CsumOffset = 6 }, result: refused, err: gso.ErrChecksum},
	{name: "tcp-hdr-len-0", n: 250, flags: 0x10, id: 1, size: 100, edit: func(_ []byte, h *vnet.Header) { h.HdrLen = 0 }, sizes: []int{154, 154, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xb8},
	{name: "tcp-hdr-len-200", n: 250, flags: 0x10, id: 1, size: 100, edit: func(_ []byte, h *vnet.Header) { h.HdrLen = 200 }, sizes: []int{154, 154, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xb8},
	{name: "tcp-wrong-ipv4-checksum", n: 250, flags: 0x10, id: 1, size: 100, edit: func(b []byte, _ *vnet.Header) { b[24] ^= 0x55 }, sizes: []int{154, 154, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xb8},
	{name: "tcp-wrong-total-length", n: 250, flags: 0x10, id: 1, size: 100, edit: func(b []byte, _ *vnet.Header) { b[16], b[17] = 0, 60 }, sizes: []int{154, 154, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xb8},
	{name: "tcp-doff-60-eats-payload", n: 250, flags: 0x10, id: 1, size: 100, edit: func(b []byte, _ *vnet.Header) { b[46] = 0xf0 }, sizes: []int{194, 194, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xb8},
	{name: "tcp-doff-16", n: 250, flags: 0x10, id: 1, size: 100, edit: func(b []byte, _ *vnet.Header) { b[46] = 0x40 }, result: dropped, err: gso.ErrHeader},
	{name: "tcp-mf-set", n: 250, flags: 0x10, id: 1, mf: true, size: 100, sizes: []int{154, 154, 104}, ids: [2]uint16{1, 3}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0xb8},
	{name: "tcp-type-on-udp", n: 250, flags: 0x10, id: 1, size: 100, edit: func(b []byte, _ *vnet.Header) { b[23] = 17 }, result: dropped, err: gso.ErrProtocol},
	{name: "udp", udp: true, n: 250, id: 65535, df: true, size: 100, sizes: []int{142, 142, 92}, ids: [2]uint16{65535, 1}},
	{name: "udp-128-segments", udp: true, n: 128, id: 1, size: 1, ids: [2]uint16{1, 128}},
	{name: "udp-129-segments", udp: true, n: 129, id: 1, size: 1, result: refused, err: gso.ErrSegments},
	{name: "udp-without-needs-csum", udp: true, n: 250, id: 1, size: 100, edit: func(_ []byte, h *vnet.Header) { h.Flags = 0 }, result: refused, err: gso.ErrChecksum},
	{name: "udp-ecn-bit", udp: true, n: 250, id: 1, size: 100, edit: func(_ []byte, h *vnet.Header) { h.GSOType |= vnet.GSOECN }, result: refused, err: gso.ErrType},
	{name: "udp-legacy-ufo", udp: true, n: 250, id: 9, size: 104, edit: func(_ []byte, h *vnet.Header) { h.GSOType = vnet.GSOUDP }, sizes: []int{138, 138, 84}, ids: [2]uint16{9, 9}},
	{name: "udp-checksum-field-0", udp: true, n: 250, id: 1, size: 100, edit: func(b []byte, _ *vnet.Header) { b[40], b[41] = 0, 0 }, sizes: []int{142, 142, 92}, ids: [2]uint16{1, 3}},
}

// edges618 differ between kernels: below 8 bytes Linux 6.12 and 7.2 make
// segments of 8 bytes, 6.18 those it is asked for.
var edges618 = []edge{
	{name: "tcp-size-1", n: 100, flags: 0x10, id: 1, size: 1, ids: [2]uint16{1, 100}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0x53},
	{name: "tcp-size-7", n: 100, flags: 0x10, id: 1, size: 7, ids: [2]uint16{1, 15}, tcpFlags: [2]byte{0x10, 0x10}, lastSeq: 0x52},
}

// TestEdges holds what Linux 6.18 was seen to do, where no kernel is at hand.
func TestEdges(t *testing.T) {
	for _, tt := range append(edges, edges618...) {
		t.Run(tt.name, func(t *testing.T) {
			pkt, h := tt.build()
			got, err := split(pkt, h, gso.Options{})
			if tt.result != cut {
				if !errors.Is(err, tt.err) || len(got) != 0 {
					t.Errorf("Split = %d frames, %v, want %v", len(got), err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.check(t, got)
			again, err := scatter(pkt, h, gso.Options{})
			if d := diff(again, got); d != "" || err != nil {
				t.Errorf("Scatter and Split differ: %v %s", err, d)
			}
		})
	}
}

func (e *edge) check(t *testing.T, got [][]byte) {
	t.Helper()
	if e.sizes != nil {
		if len(got) != len(e.sizes) {
			t.Fatalf("%d frames, want %d", len(got), len(e.sizes))
		}
		for i, f := range got {
			if len(f) != e.sizes[i] {
				t.Errorf("frame %d has %d bytes, want %d", i, len(f), e.sizes[i])
			}
		}
	}
	first, last := got[0], got[len(got)-1]
	be16 := func(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }
	if ids := [2]uint16{be16(first[18:]), be16(last[18:])}; ids != e.ids {
		t.Errorf("IDs %d, want %d", ids, e.ids)
	}
	if e.udp {
		return
	}
	if flags := [2]byte{first[47], last[47]}; flags != e.tcpFlags {
		t.Errorf("flags %#x, want %#x", flags, e.tcpFlags)
	}
	if seq := uint32(be16(last[38:]))<<16 | uint32(be16(last[40:])); seq != e.lastSeq {
		t.Errorf("last sequence number %#x, want %#x", seq, e.lastSeq)
	}
}
