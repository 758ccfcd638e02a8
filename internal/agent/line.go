package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits on what a peer may send.
const (
	maxLine   = 64 << 20 // bytes of one message: a slot's samples and histograms are far below
	maxBanner = 1 << 20  // bytes before the banner: a boot log fits
)

// line is a jrpc2 channel: one JSON message a line, of bounded length.
type line struct {
	r *bufio.Reader
	w io.WriteCloser
}

func (l *line) Send(msg []byte) error {
	_, err := l.w.Write(append(bytes.ReplaceAll(msg, []byte("\n"), nil), '\n'))
	return err
}

func (l *line) Recv() ([]byte, error) {
	msg, err := readLine(l.r, maxLine)
	if errors.Is(err, io.EOF) && len(msg) > 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return msg, err
}

func (l *line) Close() error { return l.w.Close() }

// readLine reads up to and without the next newline. It holds at most limit
// bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var msg []byte
	for {
		part, err := r.ReadSlice('\n')
		msg = append(msg, part...)
		switch {
		case len(msg) > limit:
			return nil, fmt.Errorf("agent: a message of over %d bytes", limit)
		case err == nil:
			return bytes.TrimRight(msg, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return msg, err
		}
	}
}

// banner is the first line an agent writes.
const banner = "offlab-agent"

// skipToBanner reads up to the agent's banner. What stands before it is
// returned as text, for the error of a stream that has none.
func skipToBanner(r *bufio.Reader) (before string, err error) {
	var seen bytes.Buffer
	for seen.Len() < maxBanner {
		l, err := readLine(r, maxBanner)
		if string(bytes.TrimSpace(l)) == banner {
			return seen.String(), nil
		}
		seen.Write(l)
		if err != nil {
			return seen.String(), err
		}
		seen.WriteByte('\n')
	}
	return seen.String(), fmt.Errorf("no %q line in the first %d bytes", banner, maxBanner)
}
