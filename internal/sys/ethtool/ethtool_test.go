package ethtool

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

func TestBits(t *testing.T) {
	for want, b := range map[string]Bits{
		"off [fixed]":         {},
		"on [fixed]":          {Active: true},
		"on":                  {HW: true, Wanted: true, Active: true},
		"off":                 {HW: true},
		"off [requested on]":  {HW: true, Wanted: true},
		"on [requested off]":  {HW: true, Active: true},
		"off [fixed] nothing": {HW: true, NoChange: true, Wanted: true},
	} {
		want = want[:min(len(want), len(b.String()))]
		if got := b.String(); got != want {
			t.Errorf("%+v.String() = %q, want %q", b, got, want)
		}
	}
}

// TestWords is about sets that are no multiple of 32 bits.
func TestWords(t *testing.T) {
	for _, n := range []int{1, 31, 32, 33, 64, 65} {
		s := newBitset(n)
		s.add(n - 1)
		for i := range n {
			if s.has(i) != (i == n-1) {
				t.Errorf("newBitset(%d) with %d: has(%d) = %v", n, n-1, i, s.has(i))
			}
		}
		if s.has(32*len(s)) || len(s.bytes()) != 4*len(s) {
			t.Errorf("newBitset(%d) has %d bytes and bit %d = %v", n, len(s.bytes()), 32*len(s), s.has(32*len(s)))
		}
	}
}

func TestGroups(t *testing.T) {
	for _, g := range []group{coalescing, rings} {
		seen := map[any]bool{}
		for _, p := range g.params {
			if seen[p.name] || seen[p.attr] || p.word != 0 && seen[p.word] || p.word >= g.size {
				t.Errorf("%s %s repeats a name or number, or lies outside %d words", g.what, p.name, g.size)
			}
			seen[p.name], seen[p.attr], seen[p.word] = true, true, true
		}
	}
	if !slices.Contains(CoalesceNames(), "rx-usecs") || !slices.Contains(RingNames(), "rx") {
		t.Errorf("names: %v, %v", CoalesceNames(), RingNames())
	}
}

func TestDecodeLink(t *testing.T) {
	for _, tt := range []struct {
		name   string
		speed  uint32
		duplex byte
		want   Link
	}{
		{"full", 10000, 1, Link{10000, "full"}},
		{"half", 100, 0, Link{100, "half"}},
		{"unknown", 1<<32 - 1, 0xff, Link{}},
		{"speed-only", 2500, 0xff, Link{2500, ""}},
		{"zeroed", 0, 0, Link{}},
	} {
		if got := decodeLink(tt.speed, tt.duplex); got != tt.want {
			t.Errorf("%s: decodeLink(%d, %d) = %+v, want %+v", tt.name, tt.speed, tt.duplex, got, tt.want)
		}
	}
}

func closed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// fake answers generic netlink requests in place of the kernel.
func fake(t *testing.T, f genltest.Func) *Handle {
	t.Helper()
	conn := genltest.Dial(f)
	t.Cleanup(func() { closed(t, conn.Close()) })
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, unix.Close(fd)) })
	return &Handle{conn: conn, fd: fd}
}

// TestRings writes rings to a fake that keeps what it is given: no device that
// a namespace can have has rings.
func TestRings(t *testing.T) {
	kept := map[uint16][]byte{}
	h := fake(t, func(req genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
		if req.Header.Command == unix.ETHTOOL_MSG_RINGS_SET {
			err := decode(req.Data, func(ad *netlink.AttributeDecoder) { kept[ad.Type()] = ad.Bytes() })
			return []genetlink.Message{{}}, err
		}
		var attrs []netlink.Attribute
		for typ, data := range kept {
			attrs = append(attrs, netlink.Attribute{Type: typ, Data: data})
		}
		data, err := netlink.MarshalAttributes(attrs)
		return []genetlink.Message{{Data: data}}, err
	})
	want := map[string]uint32{"rx": 512, "tx": 1024, "tx-push": 1}
	if err := h.SetRings("eth7", want); err != nil {
		t.Fatal(err)
	}
	if len(kept[unix.ETHTOOL_A_RINGS_TX_PUSH]) != 1 || len(kept[unix.ETHTOOL_A_RINGS_RX]) != 4 {
		t.Errorf("widths on the wire: %v", kept)
	}
	got, err := h.Rings("eth7")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Rings after SetRings: %v\n%s", err, diff)
	}
	if err := h.SetRings("eth7", map[string]uint32{"tx-push": 256}); !errors.Is(err, unix.ERANGE) {
		t.Errorf("a value too wide: %v", err)
	}
	if err := h.SetRings("eth7", map[string]uint32{"rx-usecs": 1}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a foreign name: %v", err)
	}
}

// TestErrors is about what a caller can tell from a failure.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		errno unix.Errno
		is    error
	}{{unix.EPERM, fs.ErrPermission}, {unix.ENODEV, ErrNoDevice}, {unix.EOPNOTSUPP, ErrUnsupported}} {
		h := fake(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			return nil, genltest.Error(int(tt.errno))
		})
		_, err := h.Coalesce("eth7")
		var op *Error
		if !errors.Is(err, tt.is) || !errors.As(err, &op) || op.Device != "eth7" || op.Op != "get coalescing" {
			t.Errorf("%v: got %v, want %v of eth7", tt.errno, err, tt.is)
		}
	}
	h := fake(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) { return nil, nil })
	if _, err := h.Coalesce("eth7"); err == nil {
		t.Error("an empty reply is no error")
	}
}
