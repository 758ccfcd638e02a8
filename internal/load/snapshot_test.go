package load

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/offlab/offlab/internal/sys/sock"
)

func TestDelta(t *testing.T) {
	a := Snapshot{
		Elapsed: time.Second, UserCPU: 1, SystemCPU: 2, Bytes: 100, Calls: 10, Connected: 2,
		PerStream: []uint64{40, 60}, Sizes: [bins]uint64{0: 4, 7: 6},
		Info: Info{Streams: 2, SegsOut: 5, BytesAcked: 7, Busy: time.Second, SndCwnd: 10},
	}
	b := Snapshot{
		Elapsed: 3 * time.Second, UserCPU: 4, SystemCPU: 8, Bytes: 400, Calls: 30, Connected: 2, Corrupt: 3,
		PerStream: []uint64{340, 60}, Sizes: [bins]uint64{0: 5, 7: 25},
		Info: Info{Streams: 2, SegsOut: 25, BytesAcked: 17, Busy: 3 * time.Second, SndCwnd: 20},
	}
	want := Window{
		Elapsed: 2 * time.Second, UserCPU: 3, SystemCPU: 6, Bytes: 300, Calls: 20, Corrupt: 3,
		Sizes: [bins]uint64{0: 1, 7: 19}, Idle: 1, Slowest: 0, Fastest: 300,
		Info: Info{Streams: 2, SegsOut: 20, BytesAcked: 10, Busy: 2 * time.Second, SndCwnd: 20},
	}
	got := Delta(a, b)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Delta (-want +got):\n%s", d)
	}
	if got.BitsPerSecond() != 1200 || got.CPU() != 9 {
		t.Errorf("rate %v, CPU %v, want 1200, 9", got.BitsPerSecond(), got.CPU())
	}
	if r := (Window{}).BitsPerSecond(); r != 0 {
		t.Errorf("rate of nothing = %v, want 0", r)
	}
}

func TestDeltaVoid(t *testing.T) {
	good := func() (a, b Snapshot) {
		a = Snapshot{Elapsed: 1, Bytes: 1, Connected: 1, PerStream: []uint64{1}}
		return a, Snapshot{Elapsed: 2, Bytes: 2, Connected: 1, PerStream: []uint64{2}}
	}
	for _, tt := range []struct {
		name, want string
		spoil      func(a, b *Snapshot)
	}{
		{"good", "", func(_, _ *Snapshot) {}},
		{"dead", "stream 0 ended after 7 bytes: reset", func(_, b *Snapshot) { b.Dead = []Death{{At: 7, Reason: "reset"}} }},
		{"error", "broken", func(_, b *Snapshot) { b.Error = "broken" }},
		{"swapped", "in order", func(a, b *Snapshot) { *a, *b = *b, *a }},
		{"other-end", "of one end", func(a, _ *Snapshot) { a.PerStream = nil }},
		{"early", "not all streams", func(a, _ *Snapshot) { a.Connected = 0 }},
		{"stalled", "no data", func(a, b *Snapshot) { b.Bytes = a.Bytes }},
	} {
		a, b := good()
		tt.spoil(&a, &b)
		if got := Delta(a, b).Void; (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: void = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestWiden checks that the 32-bit counters of the kernel may wrap.
func TestWiden(t *testing.T) {
	var s infoState
	for _, v := range []uint32{0xFFFFFFF0, 0x10, 0x20} {
		s.update(sock.TCPInfo{SegsOut: v, DataSegsIn: v / 2})
	}
	if got := s.wide[0]; got != 1<<32+0x20 {
		t.Errorf("segs_out = %#x, want %#x", got, uint64(1<<32+0x20))
	}
}

func TestRing(t *testing.T) {
	var r ring
	for n := range ringSize + 7 {
		r.push(Sample{Bytes: uint64(n)})
	}
	all := r.all()
	if len(all) != ringSize {
		t.Fatalf("%d samples kept, want %d", len(all), ringSize)
	}
	for k, s := range all {
		if s.Bytes != uint64(k+7) {
			t.Fatalf("sample %d is number %d, want %d", k, s.Bytes, k+7)
		}
	}
}

func TestSpec(t *testing.T) {
	good := Spec{Load: "bulk", Family: 4, Streams: 1, Token: NewToken()}
	for _, tt := range []struct {
		field string // wrong; "" for none
		spoil func(*Spec)
	}{
		{"", func(*Spec) {}},
		{"", func(s *Spec) { s.Family, s.Streams, s.Size = 6, MaxStreams, 1 }},
		{"load", func(s *Spec) { s.Load = "bulky" }},
		{"family", func(s *Spec) { s.Family = 0 }},
		{"streams", func(s *Spec) { s.Streams = 0 }},
		{"streams", func(s *Spec) { s.Streams = MaxStreams + 1 }},
		{"token", func(s *Spec) { s.Token = Token{} }},
		{"mss", func(s *Spec) { s.MSS = -1 }},
		{"size", func(s *Spec) { s.Size = 1 << 30 }},
		{"read_size", func(s *Spec) { s.ReadSize = -5 }},
		{"low_water", func(s *Spec) { s.LowWater = -5 }},
		{"workers", func(s *Spec) { s.Workers = -1 }},
		{"setup_timeout_ns", func(s *Spec) { s.SetupTimeout = -1 }},
	} {
		s := good
		tt.spoil(&s)
		err := s.Check()
		se, _ := err.(*SpecError) //nolint:errorlint // Check returns this type itself
		if (err == nil) != (tt.field == "") || se != nil && (se.Field != tt.field || !strings.Contains(err.Error(), tt.field)) {
			t.Errorf("Check(%+v) = %v, want field %q", s, err, tt.field)
		}
	}
	b, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	var back Spec
	if err := json.Unmarshal(b, &back); err != nil || back != good {
		t.Errorf("%s reads back as %+v, %v", b, back, err)
	}
	if err := json.Unmarshal([]byte(`{"token":"12"}`), &back); err == nil {
		t.Error("a short token was read")
	}
}
