package softnic_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/testutil/need"
	"github.com/offlab/offlab/vnet"
)

// captured sends a super-packet from port 0 and a frame from port 1, and
// returns the file.
func captured(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	c := cfg(healthy(), softnic.Wire{Rate: 1e9})
	var b *bench
	w, err := softnic.NewCapture(&file, []string{"p0", "p1"}, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	c.Tap = w.Tap
	b = newBench(t, c)
	h, f := super(3000, 1000)
	b.send(0, h, f)
	b.send(1, vnet.Header{}, segment(1, numbers(10)))
	b.advance(100 * time.Microsecond)
	if n, err := w.Close(); n != 4 || err != nil {
		t.Fatalf("%d frames, %v", n, err)
	}
	return file.Bytes()
}

// TestCapture reads back what was captured, with another implementation's
// reader.
func TestCapture(t *testing.T) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(captured(t)), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	var from []int
	var times []time.Time
	var frames [][]byte
	for {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		from, times = append(from, ci.InterfaceIndex), append(times, ci.Timestamp)
		if ci.InterfaceIndex == 0 {
			frames = append(frames, data)
		}
	}
	if len(from) != 4 || !bytes.Equal(payload(t, frames), numbers(3000)) {
		t.Errorf("frames of ports %v", from)
	}
	// The second frame of the super-packet leaves (1054+24) bytes at 1 Gbit/s
	// behind the first.
	var own []time.Time
	for i := range from {
		if from[i] == 0 {
			own = append(own, times[i])
		}
	}
	if d := own[1].Sub(own[0]); d != 8624*time.Nanosecond {
		t.Errorf("the second comes %v behind the first", d)
	}
}

// TestInteropTcpdump lets tcpdump read the file.
func TestInteropTcpdump(t *testing.T) {
	need.Tool(t, "tcpdump")
	file := filepath.Join(t.TempDir(), "wire.pcapng")
	if err := os.WriteFile(file, captured(t), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "tcpdump", "-n", "-v", "-r", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s := string(out); strings.Count(s, "192.0.2.1.1000 > 192.0.2.2.443") != 4 || strings.Contains(s, "incorrect") || !strings.Contains(s, "length 1000") {
		t.Errorf("tcpdump says\n%s", s)
	}
}

// failing is a disk that is full.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

// TestCaptureFails keeps the first error, and the card running.
func TestCaptureFails(t *testing.T) {
	if _, err := softnic.NewCapture(&failing{}, []string{"p0"}, func() time.Duration { return 0 }); err == nil {
		t.Error("no error for the header")
	}
	w, err := softnic.NewCapture(&failing{left: 1000}, []string{"p0"}, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	w.Tap(softnic.Tapped{Data: make([]byte, 2000)})
	w.Tap(softnic.Tapped{Data: make([]byte, 2000), Time: time.Minute})
	w.Tap(softnic.Tapped{Data: make([]byte, 2000)})
	if n, err := w.Close(); err == nil || n != 2 {
		t.Errorf("%d frames, %v", n, err)
	}
}
