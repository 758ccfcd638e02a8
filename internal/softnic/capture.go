package softnic

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// A Capture writes the frames of a wire to a pcapng file: an interface for each
// port, whose frames are those that it sent. Its Tap is a [Config.Tap].
type Capture struct {
	start time.Time // when the card's clock was 0

	mu      sync.Mutex
	w       *pcapgo.NgWriter
	out     *bufio.Writer // the writer's own buffer holds three frames
	flushed time.Duration
	frames  uint64
	err     error // the first; nothing is written behind it
}

// NewCapture begins a capture of the named ports; now is the card's clock,
// [Config.Now].
func NewCapture(w io.Writer, ports []string, now func() time.Duration) (*Capture, error) {
	c := &Capture{start: time.Now().Add(-now()), out: bufio.NewWriterSize(w, captureBuffer)}
	for i, name := range ports {
		intf := pcapgo.NgInterface{
			Name: name, Description: "sent by " + name, LinkType: layers.LinkTypeEthernet,
			TimestampResolution: 9, // nanoseconds
		}
		if i > 0 {
			if _, err := c.w.AddInterface(intf); err != nil {
				return nil, fmt.Errorf("softnic: capture: %w", err)
			}
			continue
		}
		o := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "offlab nic"}}
		var err error
		if c.w, err = pcapgo.NewNgWriterInterface(c.out, intf, o); err != nil {
			return nil, fmt.Errorf("softnic: capture: %w", err)
		}
	}
	return c, c.flush()
}

const captureBuffer = 256 << 10

// flushTime is how old what the file lacks may get while frames come.
const flushTime = time.Second

// Tap writes one frame.
func (c *Capture) Tap(t Tapped) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = c.w.WritePacket(gopacket.CaptureInfo{
		Timestamp: c.start.Add(t.Time), CaptureLength: len(t.Data), Length: len(t.Data), InterfaceIndex: t.Port,
	}, t.Data)
	c.frames++
	if c.err == nil && t.Time-c.flushed > flushTime {
		c.flushed = t.Time
		c.err = c.flush()
	}
}

func (c *Capture) flush() error { return errors.Join(c.w.Flush(), c.out.Flush()) }

// Close writes the rest, and returns the number of frames and the first error
// that there was. The file is the caller's to close.
func (c *Capture) Close() (frames uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.flush()
	}
	if c.err != nil {
		return c.frames, fmt.Errorf("softnic: capture: %w", c.err)
	}
	return c.frames, nil
}
