package load

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/offlab/offlab/internal/sys/sock"
)

// A Sender is the end that dials and sends.
type Sender struct{ eng *engine }

// Dial connects the streams of a spec to the receiver at addr. When it returns
// all of them stand and data flows. ctx and Spec.SetupTimeout bound the set-up
// alone; the traffic ends with [Sender.Stop]. A failed set-up leaves nothing
// behind and is a *SpecError or a *SetupError.
func Dial(ctx context.Context, spec Spec, addr netip.AddrPort) (*Sender, error) {
	spec, err := spec.resolve(addr.Addr())
	if err != nil {
		return nil, err
	}
	eng, err := newEngine(spec, newSender)
	if err != nil {
		return nil, err
	}
	d := &dialer{eng: eng, addr: addr, deadline: eng.start.Add(spec.SetupTimeout)}
	if err := d.dial(ctx); err != nil {
		eng.stop()
		return nil, err
	}
	eng.run()
	return &Sender{eng}, nil
}

// Snapshot returns what the sender has counted so far; after Stop, for good.
func (s *Sender) Snapshot() Snapshot { return s.eng.snapshot() }

// Stop ends the traffic, resets the connections and waits for all goroutines.
// It is prompt, and may be called again.
func (s *Sender) Stop() Result { return s.eng.stop() }

// A dialer sets the streams of a sender up: all at once, in one poller, since
// a thousand handshakes in turn would take a thousand round trips.
type dialer struct {
	eng      *engine
	addr     netip.AddrPort
	poller   *sock.Poller
	deadline time.Time
	calls    []call
	have     int
}

// A call is a stream on its way.
type call struct {
	asked bool   // the hello is sent
	reply []byte // what has come of the answer
}

func (d *dialer) dial(ctx context.Context) error {
	p, err := sock.NewPoller(pollSize)
	if err != nil {
		return err
	}
	d.poller, d.calls = p, make([]call, d.eng.spec.Streams)
	release := context.AfterFunc(ctx, p.Wake)
	defer release()
	err = d.connect()
	if err == nil {
		err = d.shakeHands(ctx)
	}
	if e := p.Close(); err == nil {
		err = e
	}
	for id := 0; err == nil && id < len(d.calls); id++ {
		err = d.eng.add(id)
	}
	return err
}

func (d *dialer) connect() error {
	for id, st := range d.eng.streams {
		fd, err := sock.Connect(d.addr, d.eng.spec.options())
		if err != nil {
			return d.failed("connect", err)
		}
		st.sock.Store(int64(fd))
		if err := d.poller.Add(fd, sock.ForWrite, id); err != nil {
			return err
		}
	}
	return nil
}

func (d *dialer) shakeHands(ctx context.Context) error {
	var events []sock.Event
	for d.have < len(d.calls) {
		if err := ctx.Err(); err != nil {
			return d.failed("connect", err)
		}
		left := time.Until(d.deadline)
		if left <= 0 {
			return d.failed("connect", ErrTimeout)
		}
		var err error
		if events, _, err = d.poller.Wait(events[:0], left); err != nil {
			return err
		}
		for _, ev := range events {
			if err := d.advance(ev.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance takes a stream whose socket is ready one step on.
func (d *dialer) advance(id int) error {
	c := &d.calls[id]
	fd, _ := d.eng.streams[id].socket()
	if !c.asked {
		if err := fd.Err(); err != nil {
			return d.failed("connect", err)
		}
		h := hello{d.eng.spec.Token, id, len(d.calls)}.bytes()
		if n, e := fd.Send(h); e != 0 || n != len(h) { // the first bytes of a connection always fit
			return d.failed("handshake", e)
		}
		c.asked = true
		return d.poller.Set(fd, sock.ForRead, id)
	}
	var buf [acceptSize]byte
	n, e := fd.Recv(buf[:acceptSize-len(c.reply)])
	switch {
	case e == sock.ErrAgain:
		return nil
	case e == sock.ErrReset, e == 0 && n == 0:
		return d.failed("handshake", ErrRejected)
	case e != 0:
		return d.failed("handshake", e)
	}
	c.reply = append(c.reply, buf[:n]...)
	if len(c.reply) < acceptSize {
		return nil
	}
	if [acceptSize]byte(c.reply) != magic {
		return d.failed("handshake", errForeign)
	}
	d.have++
	return d.poller.Remove(fd)
}

func (d *dialer) failed(op string, err error) error {
	if errors.Is(err, sock.ErrTimedOut) {
		err = ErrTimeout
	}
	return &SetupError{Op: op, Addr: d.addr, Have: d.have, Want: len(d.calls), Err: err}
}
