package host

import (
	"context"
	"sync"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/wirecheck"
)

// BeginWire starts the checkers of the wire anew, for the connections that begin
// from now on. If the card under test is handed packets and sends none, it is
// started anew as well, as the watchdog of a driver would do.
func (c *Client) BeginWire(ctx context.Context) error {
	return c.Call(ctx, "nic.begin", nothing{}, nil)
}

// WireSeen is what there is to say of the wire since BeginWire.
type WireSeen struct {
	Ports []wirecheck.Report `json:"ports"` // of what each sent
	// Silent says that the card under test was handed packets lately and sent
	// none: since the counters were read, or between the last two readings.
	Silent bool `json:"silent,omitempty"`
	// Handed is what the host of the card under test has handed down, and Lost
	// what of it the card has dropped before the wire, for no lack of room.
	Handed uint64 `json:"handed"`
	Lost   uint64 `json:"lost,omitempty"`
}

// Wire returns what was seen since BeginWire.
func (c *Client) Wire(ctx context.Context) (WireSeen, error) {
	return ask[WireSeen](ctx, c, "nic.wire", nothing{})
}

// checkedPorts are those whose frames are looked at: the card under test and, for
// what it announces and acknowledges, the one at its other end. That one is
// sound, and what it sends in bulk would take time to no purpose: a tenth of the
// throughput where the card under test merges.
const (
	checkedPorts = 2
	shortFrame   = 128
)

// A wireWatch checks what ports send.
type wireWatch struct {
	agreed wirecheck.Agreed
	ports  [checkedPorts]struct {
		mu    sync.Mutex
		check *wirecheck.Checker
	}
}

func newWireWatch(cards []softnic.Card) *wireWatch {
	w := &wireWatch{}
	for i := range w.ports {
		mtu := 0
		if i < len(cards) {
			mtu = cards[i].MTU
		}
		w.ports[i].check = wirecheck.New(wirecheck.Config{MTU: mtu, Agreed: &w.agreed, Fresh: true, Alone: i > 0})
	}
	return w
}

// tap is softnic.Config.Tap.
func (w *wireWatch) tap(t softnic.Tapped) {
	if t.Port >= checkedPorts || t.Port != 0 && len(t.Data) > shortFrame {
		return
	}
	p := &w.ports[t.Port]
	p.mu.Lock()
	p.check.Frame(t.Time, t.Data)
	p.mu.Unlock()
}

func (w *wireWatch) reset() {
	for i := range w.ports {
		p := &w.ports[i]
		p.mu.Lock()
		p.check.Reset()
		p.mu.Unlock()
	}
}

func (w *wireWatch) report(port int) wirecheck.Report {
	p := &w.ports[port]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check.Report()
}

// count adds what was seen to the counters of a port, as "wire.checked",
// "wire.wrong" and by kind.
func (w *wireWatch) count(port int, m map[string]uint64) {
	r := w.report(port)
	m["wire.checked"], m["wire.wrong"] = r.Frames, r.Wrong()
	for k, n := range r.Counts {
		m["wire."+k.String()] = n
	}
}

func (s *Server) beginWire(context.Context, nothing) (nothing, error) {
	n, err := s.card(0)
	if err != nil {
		return nothing{}, err
	}
	if n.silent() {
		if err := s.restartNIC(n); err != nil {
			return nothing{}, err
		}
		if n, err = s.card(0); err != nil {
			return nothing{}, err
		}
	}
	n.begin()
	return nothing{}, nil
}

func (s *Server) wire(context.Context, nothing) (WireSeen, error) {
	n, err := s.card(0)
	if err != nil {
		return WireSeen{}, err
	}
	out := WireSeen{
		Silent: n.silent(), Handed: n.since(softnic.TXPackets),
		Lost: n.since(softnic.TXGarbage, softnic.TXFault, softnic.TXStuck, softnic.TXLost),
	}
	for port := range min(checkedPorts, n.cards) {
		out.Ports = append(out.Ports, n.watch.report(port))
	}
	return out, nil
}

// begin starts what is counted from slot to slot anew.
func (n *runningNIC) begin() {
	n.lookMu.Lock()
	n.begun = n.Counts(0)
	n.lookMu.Unlock()
	n.watch.reset()
}

// since returns what stations of the card under test have counted since then.
func (n *runningNIC) since(of ...softnic.Station) (sum uint64) {
	now := n.Counts(0)
	n.lookMu.Lock()
	defer n.lookMu.Unlock()
	for _, st := range of {
		sum += now[st] - n.begun[st]
	}
	return sum
}

// silent reports whether the card under test was handed packets and has sent
// none, from one look to the next: the last one, or some since a frame left.
// What waits on the ring for a slow wire is on its way.
func (n *runningNIC) silent() bool {
	c := n.Counts(0)
	n.lookMu.Lock()
	defer n.lookMu.Unlock()
	last := n.look
	n.look = look{packets: c[softnic.TXPackets], frames: c[softnic.WireFrames]}
	n.look.silent = n.look.frames == last.frames && c[softnic.TXPending] == 0 && (n.look.packets > last.packets || last.silent)
	return n.look.silent
}

// A look is what the card under test had been handed and had sent.
type look struct {
	packets, frames uint64
	silent          bool // packets, and no frames since
}

// restartNIC gives the ports a card that starts afresh, with the settings of the
// one before. Its counters begin at 0.
func (s *Server) restartNIC(old *runningNIC) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nic != old {
		return &agent.Error{Kind: agent.KindBusy, Text: "the soft NIC has just been replaced"}
	}
	old.stop()
	if err := <-old.done; err != nil {
		old.done <- err
		return &agent.Error{Kind: agent.KindGone, Text: "the soft NIC has stopped: " + err.Error()}
	}
	old.done <- nil // for closeNIC, if there is no other
	n, err := old.again()
	if err != nil {
		return err
	}
	n.start()
	s.nic = n
	return old.Close()
}

// again makes a card like this one.
func (n *runningNIC) again() (*runningNIC, error) {
	nic, err := softnic.New(n.cfg, n.taps.Ports)
	if err != nil {
		return nil, err
	}
	for port := range n.cards {
		for _, set := range softnic.Settings() {
			v, err := n.Setting(port, set)
			if err != nil {
				return nil, err
			}
			if now, err := nic.Setting(port, set); err != nil || now == v {
				continue
			}
			if err := nic.Set(port, set, v); err != nil {
				return nil, err
			}
		}
	}
	return &runningNIC{NIC: nic, cfg: n.cfg, taps: n.taps, cards: n.cards, watch: n.watch}, nil
}

// start lets the card carry packets.
func (n *runningNIC) start() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.done = stop, make(chan error, 1)
	go func() { n.done <- n.Run(ctx) }()
}
