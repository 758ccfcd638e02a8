package load

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/offlab/offlab/internal/sys/sock"
)

// A Receiver is the end that listens and receives.
type Receiver struct {
	eng   *engine
	addr  netip.AddrPort
	ready chan struct{} // closed when the set-up is over
	err   error         // of the set-up; set before ready is closed
}

// Listen waits for the streams of a spec on a free port of addr. It is ready
// when it returns. From then on it accepts in the background, until all
// streams stand, Spec.SetupTimeout is over, ctx ends or Stop is called.
// Connections that do not show the token are closed and not counted.
func Listen(ctx context.Context, spec Spec, addr netip.Addr) (*Receiver, error) {
	spec, err := spec.resolve(addr)
	if err != nil {
		return nil, err
	}
	a, err := newAcceptor(spec, addr)
	if err != nil {
		return nil, err
	}
	eng, err := newEngine(spec, newReceiver)
	if err != nil {
		a.close()
		return nil, err
	}
	r := &Receiver{eng: eng, addr: a.addr, ready: make(chan struct{})}
	a.eng = eng
	eng.wakers = append(eng.wakers, a.poller.Wake)
	eng.wg.Go(func() {
		release := context.AfterFunc(ctx, a.poller.Wake)
		defer release()
		r.err = a.run(ctx)
		if r.err != nil {
			eng.fail(r.err)
		}
		close(r.ready)
	})
	eng.run()
	return r, nil
}

// Addr returns the address to dial.
func (r *Receiver) Addr() netip.AddrPort { return r.addr }

// Wait returns when all streams stand, or a *SetupError that says why they
// never will.
func (r *Receiver) Wait(ctx context.Context) error {
	select {
	case <-r.ready:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Snapshot returns what the receiver has counted so far; after Stop, for good.
func (r *Receiver) Snapshot() Snapshot { return r.eng.snapshot() }

// Stop ends the traffic, resets the connections and waits for all goroutines.
// It is prompt, and may be called again.
func (r *Receiver) Stop() Result { return r.eng.stop() }

// helloTimeout is how long a connection may take to say who it is.
const helloTimeout = 5 * time.Second

// spare is how many connections more than streams may be in the handshake. The
// oldest has to go when another one comes.
const spare = 64

// An acceptor sets the streams of a receiver up.
type acceptor struct {
	eng     *engine
	spec    Spec
	addr    netip.AddrPort
	socket  sock.Socket
	poller  *sock.Poller
	guests  map[int]*guest // in the handshake, by their ID
	nextID  int
	oldest  int // no guest has a smaller ID
	have    int
	limit   time.Time
	turned  int // connections turned away
	lastWhy error
}

// A guest is a connection that has not yet said all of its hello.
type guest struct {
	fd    sock.Socket
	hello []byte
	limit time.Time
}

// listenerID marks the listening socket among the events; guests count from 1.
const listenerID = 0

func newAcceptor(spec Spec, addr netip.Addr) (*acceptor, error) {
	want := netip.AddrPortFrom(addr, 0)
	fd, err := sock.Listen(want, spec.Streams+spare, spec.options())
	if err != nil {
		return nil, &SetupError{Op: "listen", Addr: want, Want: spec.Streams, Err: err}
	}
	a := &acceptor{
		spec: spec, socket: fd, guests: map[int]*guest{}, nextID: 1, oldest: 1,
		limit: time.Now().Add(spec.SetupTimeout),
	}
	if a.addr, err = fd.LocalAddr(); err == nil {
		a.poller, err = sock.NewPoller(pollSize)
	}
	if err != nil {
		_ = fd.Close() // the error that counts is the other
		return nil, err
	}
	if err := a.poller.Add(fd, sock.ForRead, listenerID); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// run accepts until all streams stand or there is no hope.
func (a *acceptor) run(ctx context.Context) error {
	defer a.close()
	var events []sock.Event
	for a.have < a.spec.Streams {
		if err := a.hopeless(ctx, time.Now()); err != nil {
			return &SetupError{Op: "accept", Addr: a.addr, Have: a.have, Want: a.spec.Streams, Err: err}
		}
		var err error
		if events, _, err = a.poller.Wait(events[:0], time.Until(a.nextLimit())); err != nil {
			return err
		}
		for _, ev := range events {
			if err := a.serve(ev.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// hopeless says why to stop, and drops guests that were silent for too long.
func (a *acceptor) hopeless(ctx context.Context, now time.Time) error {
	if a.eng.stopping.Load() {
		return errStopped
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !now.Before(a.limit) {
		if a.turned > 0 {
			return fmt.Errorf("%w; %d connections turned away, the last: %w", ErrTimeout, a.turned, a.lastWhy)
		}
		return ErrTimeout
	}
	for id := a.first(); id != 0 && !now.Before(a.guests[id].limit); id = a.first() {
		a.turnAway(id, errSilent)
	}
	return nil
}

// first returns the ID of the guest that waits longest, 0 if there is none.
func (a *acceptor) first() int {
	for ; a.oldest < a.nextID; a.oldest++ {
		if a.guests[a.oldest] != nil {
			return a.oldest
		}
	}
	return 0
}

func (a *acceptor) nextLimit() time.Time {
	if id := a.first(); id != 0 && a.guests[id].limit.Before(a.limit) {
		return a.guests[id].limit
	}
	return a.limit
}

func (a *acceptor) serve(id int) error {
	if id == listenerID {
		return a.welcome()
	}
	if g := a.guests[id]; g != nil {
		return a.listen(id, g)
	}
	return nil // turned away by an earlier event of this round
}

// welcome takes what is in the backlog.
func (a *acceptor) welcome() error {
	for {
		fd, ok, err := a.socket.Accept()
		if err != nil || !ok {
			return err
		}
		if len(a.guests) >= a.spec.Streams+spare {
			a.turnAway(a.first(), errCrowd)
		}
		id := a.nextID
		a.nextID++
		a.guests[id] = &guest{fd: fd, limit: time.Now().Add(helloTimeout)}
		if err := a.poller.Add(fd, sock.ForRead, id); err != nil {
			return err
		}
	}
}

// listen reads more of a guest's hello, and lets him in if it is right.
func (a *acceptor) listen(id int, g *guest) error {
	var buf [helloSize]byte
	n, e := g.fd.Recv(buf[:helloSize-len(g.hello)])
	switch {
	case e == sock.ErrAgain:
		return nil
	case e != 0:
		a.turnAway(id, e)
		return nil
	case n == 0:
		a.turnAway(id, errSilent)
		return nil
	}
	g.hello = append(g.hello, buf[:n]...)
	if len(g.hello) < helloSize {
		return nil
	}
	h, err := parseHello(g.hello, a.spec.Token, a.spec.Streams)
	if err == nil {
		if _, taken := a.eng.streams[h.stream].socket(); taken {
			err = errTaken
		}
	}
	if err != nil {
		a.turnAway(id, err)
		return nil
	}
	return a.letIn(id, g, h.stream)
}

// letIn makes a guest a stream, and only then says so: when the sender knows
// that its streams stand, a snapshot here shows them.
func (a *acceptor) letIn(id int, g *guest, stream int) error {
	if err := a.poller.Remove(g.fd); err != nil {
		return err
	}
	if err := g.fd.SetLowWater(a.spec.LowWater); err != nil {
		return err
	}
	delete(a.guests, id)
	a.eng.streams[stream].sock.Store(int64(g.fd))
	a.have++
	if err := a.eng.add(stream); err != nil {
		return err
	}
	_, _ = g.fd.Send(magic[:]) // if it fails the worker finds the stream dead
	return nil
}

// turnAway closes the connection of a guest; the descriptor leaves the poller
// by itself.
func (a *acceptor) turnAway(id int, why error) {
	a.turned++
	a.lastWhy = why
	_ = a.guests[id].fd.Close() // a stranger's; nothing depends on it
	delete(a.guests, id)
}

func (a *acceptor) close() {
	for id := range a.guests {
		a.turnAway(id, errCrowd)
	}
	_ = a.socket.Close() // nothing was written to either
	_ = a.poller.Close()
}
