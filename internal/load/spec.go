package load

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/sys/sock"
)

// A Spec says what traffic to make. It is plain data and means the same on
// every machine; the zero value of an optional field is its default.
type Spec struct {
	Load    string `json:"load"`    // one of Names
	Family  int    `json:"family"`  // 4 or 6
	Streams int    `json:"streams"` // 1 to MaxStreams
	Verify  bool   `json:"verify"`  // the receiver compares every byte
	Token   Token  `json:"token"`   // tells this load's connections from strangers'

	MSS           int    `json:"mss,omitempty"`            // TCP_MAXSEG, both ends
	Congestion    string `json:"congestion,omitempty"`     // TCP_CONGESTION, both ends
	SendBuffer    int    `json:"send_buffer,omitempty"`    // SO_SNDBUF; 0: the kernel sizes it
	ReceiveBuffer int    `json:"receive_buffer,omitempty"` // SO_RCVBUF; 0: the kernel sizes it
	Size          int    `json:"size,omitempty"`           // bytes per write, DefaultSize
	ReadSize      int    `json:"read_size,omitempty"`      // bytes per read, DefaultReadSize or DiscardSize
	// LowWater is how many bytes wake the reader (SO_RCVLOWAT): 1 with Verify,
	// since more would shape the distribution of read sizes, and DiscardWater
	// without.
	LowWater int `json:"low_water,omitempty"`

	// Workers is the number of goroutines that move the data of one end: by
	// default one per CPU the process may use, no more than Streams.
	Workers int `json:"workers,omitempty"`
	// SetupTimeout bounds the time until all streams stand, DefaultSetupTimeout.
	SetupTimeout time.Duration `json:"setup_timeout_ns,omitempty"`
}

// Limits and defaults of a Spec.
const (
	MaxStreams = 1000
	// DefaultSize: acknowledgements that arrive during a write are taken in one
	// go at its end, and the next super-packets leave together. Over veth with
	// Linux 6.18 on Zen 3 (2026-11; benchload -against, 8 pairs) 256 KiB moves
	// 29 % more than 64 KiB for 23 % less CPU per byte, 128 KiB lies between,
	// and 512 KiB gives nothing certain and leaves no room in a second-level
	// cache of 512 KiB.
	DefaultSize = 256 << 10
	// DefaultReadSize is that of iperf2 and iperf3.
	DefaultReadSize = 128 << 10
	// DiscardSize and DiscardWater are what a reader that copies nothing uses.
	// Its sender spends a fifth of its time on waking it; with these, less
	// than a tenth (measured as above).
	DiscardSize         = 1 << 20
	DiscardWater        = 256 << 10
	DefaultSetupTimeout = 10 * time.Second
	maxSize             = 4 << 20
)

// Names returns the names that Spec.Load may have.
func Names() []string { return []string{"bulk"} }

// A SpecError says which field of a Spec is wrong.
type SpecError struct {
	Field string
	Value any
	Want  string
}

// Error names the field, its value and what it may be.
func (e *SpecError) Error() string {
	return fmt.Sprintf("load: %s is %v, want %s", e.Field, e.Value, e.Want)
}

// Check returns a *SpecError for the first field that is out of range.
func (s Spec) Check() error {
	if !slices.Contains(Names(), s.Load) {
		return &SpecError{"load", fmt.Sprintf("%q", s.Load), strings.Join(Names(), " or ")}
	}
	if s.Family != 4 && s.Family != 6 {
		return &SpecError{"family", s.Family, "4 or 6"}
	}
	if s.Token == (Token{}) {
		return &SpecError{"token", "empty", "a token of NewToken"}
	}
	if s.Streams < 1 {
		return &SpecError{"streams", s.Streams, fmt.Sprintf("1 to %d", MaxStreams)}
	}
	for _, f := range []struct {
		name     string
		got, max int
	}{
		{"streams", s.Streams, MaxStreams},
		{"mss", s.MSS, 65535},
		{"send_buffer", s.SendBuffer, 1 << 30},
		{"receive_buffer", s.ReceiveBuffer, 1 << 30},
		{"size", s.Size, maxSize},
		{"read_size", s.ReadSize, maxSize},
		{"low_water", s.LowWater, maxSize},
		{"workers", s.Workers, 1024},
	} {
		if f.got < 0 || f.got > f.max {
			return &SpecError{f.name, f.got, fmt.Sprintf("0 to %d", f.max)}
		}
	}
	if s.SetupTimeout < 0 {
		return &SpecError{"setup_timeout_ns", int64(s.SetupTimeout), "0 or more"}
	}
	return nil
}

// resolve checks the spec and puts the defaults in.
func (s Spec) resolve(addr netip.Addr) (Spec, error) {
	if err := s.Check(); err != nil {
		return s, err
	}
	if addr.Is4() != (s.Family == 4) || !addr.IsValid() {
		return s, &SpecError{"address", addr, fmt.Sprintf("one of IPv%d", s.Family)}
	}
	if s.Size == 0 {
		s.Size = DefaultSize
	}
	s = s.withReads()
	if s.SetupTimeout == 0 {
		s.SetupTimeout = DefaultSetupTimeout
	}
	if s.Workers == 0 {
		s.Workers = sock.CPUs()
	}
	s.Workers = min(s.Workers, s.Streams)
	return s, nil
}

// withReads puts the defaults of the reader in.
func (s Spec) withReads() Spec {
	size, water := DefaultReadSize, 1
	if !s.Verify {
		size, water = DiscardSize, DiscardWater
	}
	if s.ReadSize == 0 {
		s.ReadSize = size
	}
	if s.LowWater == 0 {
		s.LowWater = min(water, s.ReadSize)
	}
	return s
}

// userTimeout ends a stream whose data stays unacknowledged: the peer has
// vanished. It is longer than any retransmission pause worth measuring.
const userTimeout = 30 * time.Second

func (s Spec) options() sock.Options {
	return sock.Options{
		MSS: s.MSS, Congestion: s.Congestion,
		SendBuffer: s.SendBuffer, ReceiveBuffer: s.ReceiveBuffer,
		UserTimeout: userTimeout,
	}
}

// A Token is a shared secret of one run of a load. It keeps port scanners and
// left-over connections out of the figures; it is sent in the clear.
type Token [16]byte

// NewToken returns a random token.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:]) // never fails: it would end the program (crypto/rand, Go 1.24)
	return t
}

// String returns the token in hexadecimal.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// MarshalText encodes the token in hexadecimal.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText has written.
func (t *Token) UnmarshalText(b []byte) error {
	if len(b) != hex.EncodedLen(len(t)) {
		return fmt.Errorf("load: token of %d characters, want %d", len(b), hex.EncodedLen(len(t)))
	}
	_, err := hex.Decode(t[:], b)
	return err
}
