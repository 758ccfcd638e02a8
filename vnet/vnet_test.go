package vnet_test

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/offlab/offlab/vnet"
)

var full = vnet.Header{
	Flags: vnet.NeedsCsum | vnet.UDPTunnelCsum, GSOType: vnet.GSOTCPv6 | vnet.GSOUDPTunnel4,
	HdrLen: 0x0102, GSOSize: 0x0304, CsumStart: 0x0506, CsumOffset: 0x0708, NumBuffers: 0x090a,
	HashValue: 0x0b0c0d0e, HashReport: 0x0f10, Reserved: 0x1112, OuterTransport: 0x1314, InnerNetwork: 0x1516,
}

// TestBytes has the bytes of every size and order, as the structures of
// include/uapi/linux/virtio_net.h lay them out.
func TestBytes(t *testing.T) {
	big := []byte{9, 0x24, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}
	little := []byte{9, 0x24, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 14, 13, 12, 11, 16, 15, 18, 17, 20, 19, 22, 21}
	for _, size := range []int{10, 12, 20, 24} {
		for _, tt := range []struct {
			big  bool
			want []byte
		}{{true, big}, {false, little}} {
			b := bytes.Repeat([]byte{0xee}, 30)
			f := vnet.Format{Size: size, BigEndian: tt.big}
			if err := f.Put(b, full); err != nil {
				t.Fatal(err)
			}
			want := append(append([]byte{}, tt.want[:size]...), bytes.Repeat([]byte{0xee}, 30-size)...)
			if !bytes.Equal(b, want) {
				t.Errorf("%+v.Put = %x, want %x", f, b, want)
			}
		}
	}
}

// TestOneByteOrder is a fault of another library: written little-endian and
// read big-endian, a HdrLen of 54 came back as 13,824.
func TestOneByteOrder(t *testing.T) {
	for _, big := range []bool{false, true} {
		f := vnet.Format{Size: 10, BigEndian: big}
		b := make([]byte, 10)
		if err := f.Put(b, vnet.Header{HdrLen: 54}); err != nil {
			t.Fatal(err)
		}
		if h, err := f.Get(b); err != nil || h.HdrLen != 54 {
			t.Errorf("%+v: HdrLen = %d, %v, want 54", f, h.HdrLen, err)
		}
	}
}

// TestNative compares with an integer in memory.
func TestNative(t *testing.T) {
	v := uint16(1)
	big := *(*[2]byte)(unsafe.Pointer(&v)) == [2]byte{0, 1}
	if got := vnet.Native(12); got != (vnet.Format{Size: 12, BigEndian: big}) {
		t.Errorf("Native(12) = %+v, the machine is big-endian: %v", got, big)
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		size, room int
		want       error
	}{
		{0, 30, vnet.ErrSize},
		{11, 30, vnet.ErrSize},
		{28, 30, vnet.ErrSize},
		{10, 9, vnet.ErrShort},
		{24, 23, vnet.ErrShort},
		{24, 24, nil},
	} {
		f := vnet.Format{Size: tt.size}
		if err := f.Put(make([]byte, tt.room), full); !errors.Is(err, tt.want) {
			t.Errorf("size %d, room %d: Put = %v, want %v", tt.size, tt.room, err, tt.want)
		}
		if _, err := f.Get(make([]byte, tt.room)); !errors.Is(err, tt.want) {
			t.Errorf("size %d, room %d: Get = %v, want %v", tt.size, tt.room, err, tt.want)
		}
	}
}

// TestGSOTypeValid lists the valid types; all other of the 256 are not.
func TestGSOTypeValid(t *testing.T) {
	valid := map[vnet.GSOType]string{
		0: "none", 1: "tcp4", 3: "ufo", 4: "tcp6", 5: "udp",
		0x81: "tcp4+ecn", 0x84: "tcp6+ecn",
		0x21: "tcp4+tunnel4", 0x24: "tcp6+tunnel4", 0x25: "udp+tunnel4",
		0x41: "tcp4+tunnel6", 0x44: "tcp6+tunnel6", 0x45: "udp+tunnel6",
		0xa1: "tcp4+tunnel4+ecn", 0xa4: "tcp6+tunnel4+ecn", 0xc1: "tcp4+tunnel6+ecn", 0xc4: "tcp6+tunnel6+ecn",
	}
	for i := range 256 {
		typ := vnet.GSOType(i)
		name, ok := valid[typ]
		if typ.Valid() != ok {
			t.Errorf("GSOType(%#x).Valid() = %v, want %v", i, typ.Valid(), ok)
		}
		if ok && typ.String() != name {
			t.Errorf("GSOType(%#x).String() = %q, want %q", i, typ.String(), name)
		}
	}
}

func TestNoAllocs(t *testing.T) {
	b := make([]byte, 24)
	if n := testing.AllocsPerRun(100, func() {
		_ = vnet.Tunnel.Put(b, full)
		_, _ = vnet.Tunnel.Get(b)
		_, _ = vnet.Tunnel.Get(b[:3])
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzRoundTrip holds two laws for each size and both byte orders: what Put
// wrote Get reads, and what Get read Put writes.
func FuzzRoundTrip(f *testing.F) {
	f.Add(make([]byte, 24), uint8(0))
	f.Add([]byte("\x01\x05\x36\x00\xa8\x05\x22\x00\x06\x00"), uint8(0)) // UDP L4 in the legacy form
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), uint8(7))               // every byte differs, big-endian
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		format := vnet.Format{Size: []int{10, 12, 20, 24}[kind&3], BigEndian: kind&4 != 0}
		h, err := format.Get(b)
		if (err != nil) != (len(b) < format.Size) {
			t.Fatalf("Get(%d bytes, %+v): %v", len(b), format, err)
		}
		if err != nil {
			return
		}
		out := make([]byte, format.Size)
		if err := format.Put(out, h); err != nil || !bytes.Equal(out, b[:format.Size]) {
			t.Fatalf("%+v: Put(Get(%x)) = %x, %v", format, b[:format.Size], out, err)
		}
		if again, err := format.Get(out); err != nil || again != h {
			t.Fatalf("%+v: Get(Put(%+v)) = %+v, %v", format, h, again, err)
		}
	})
}
