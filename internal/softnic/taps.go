package softnic

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/sys/tap"
)

// A Host is where the device of a port goes.
type Host struct {
	Device string // its name; two ports may have the same in different hosts
	PID    int    // a process in the host's network namespace; 0: stays here
}

// Taps are the TAP devices of a card.
type Taps struct {
	Ports   []Port
	devices []*tap.Device
}

// TapOptions say how the hosts see their devices.
type TapOptions struct {
	// Queues of each device; 0 means 1.
	Queues int
	// NAPI is how the host's kernel takes what it receives.
	NAPI NAPI
	// Hold lets the host's GRO hold packets for so long (gro_flush_timeout with
	// napi_defer_hard_irqs), so that it finds something to merge without a
	// thread of its own; NAPIAuto is Inline then. Shorter than about 100 µs it
	// costs more than it gains, since each packet sets the timer. It needs a /sys
	// of the present network namespace.
	Hold time.Duration
}

// NAPI is how the kernel of a host takes what it receives.
type NAPI uint8

// The ways.
const (
	// NAPIAuto is Inline if the model merges by itself when fresh, and Off if
	// the wire passes super-packets through as well; else Threaded.
	NAPIAuto NAPI = iota
	// NAPIThreaded polls in a thread of the host's kernel, which finds several
	// packets at a time, so that the host's GRO has something to merge. It needs
	// a /sys of the present network namespace.
	NAPIThreaded
	// NAPIInline polls within the write: cheaper, but GRO sees one packet at a
	// time and merges nothing.
	NAPIInline
	// NAPIOff has no GRO at all.
	NAPIOff
)

// OpenTaps makes a device for each host in the namespace of the calling thread,
// with the offloads that its card offers, and moves it to the host. There it
// is down and has no address. An error is a [*tap.OpenError] where the system
// or the rights lack something.
func OpenTaps(cfg Config, hosts []Host, o TapOptions) (*Taps, error) {
	t := &Taps{}
	h, err := rtnl.Open()
	if err != nil {
		return nil, err
	}
	for i, host := range hosts {
		card, own := cfg.card(i), o
		if own.NAPI == NAPIAuto {
			own.NAPI = card.napi(cfg.Wire, o)
		}
		if err = t.open(h, host, card, own); err != nil {
			break
		}
	}
	if err = errors.Join(err, h.Close()); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close removes the devices. Nobody may use the ports any more.
func (t *Taps) Close() error {
	var errs []error
	for _, d := range t.devices {
		errs = append(errs, d.Close())
	}
	t.devices = nil
	return errors.Join(errs...)
}

func (t *Taps) open(h *rtnl.Handle, host Host, card Card, o TapOptions) error {
	offer := card.Offer()
	d, err := tap.Open(host.Device, tap.Options{Queues: o.Queues, Offloads: offer.tap(), NAPI: o.NAPI != NAPIOff})
	if err != nil {
		return err
	}
	t.devices = append(t.devices, d)
	p := Port{Name: d.Name, Format: d.Format}
	for slices.ContainsFunc(t.Ports, func(q Port) bool { return q.Name == p.Name }) {
		p.Name = fmt.Sprintf("%s#%d", d.Name, len(t.Ports)) // the same name in another host
	}
	for _, q := range d.Queues {
		p.Queues = append(p.Queues, q)
	}
	t.Ports = append(t.Ports, p)
	if err := limit(h, d.Name, card); err != nil {
		return err
	}
	if offer&SG == 0 {
		if err := withoutSG(d.Name); err != nil {
			return err
		}
	}
	if err := o.poll(d.Name); err != nil {
		return err
	}
	if host.PID == 0 {
		return nil
	}
	return h.Move(d.Name, host.PID)
}

// napi decides how the host of a card receives.
func (c Card) napi(w Wire, o TapOptions) NAPI {
	merges := c.Model.RX.Merge != nil && !c.Model.RX.MergeOff
	switch {
	case merges && w.PassThrough:
		return NAPIOff
	case merges || o.Hold > 0:
		return NAPIInline
	}
	return NAPIThreaded
}

// limit sets what the model bounds.
func limit(h *rtnl.Handle, dev string, card Card) error {
	for _, v := range []struct {
		name string
		n    int
	}{{"mtu", card.MTU}, {"gso_max_segs", card.Model.TX.MaxSegs}, {"gso_max_size", card.Model.TX.MaxSize}} {
		if v.n > 0 {
			if err := h.Set(dev, v.name, v.n); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutSG turns off what a TAP always offers. A host can turn it on again.
func withoutSG(dev string) error {
	h, err := ethtool.Open()
	if err != nil {
		return err
	}
	_, err = h.Set(dev, map[string]bool{"tx-scatter-gather": false})
	return errors.Join(err, h.Close())
}

// poll sets how the kernel polls the queues of the device.
func (o TapOptions) poll(dev string) error {
	files := map[string]string{}
	if o.NAPI == NAPIThreaded {
		files["threaded"] = "1"
	}
	if o.Hold > 0 && o.NAPI != NAPIOff {
		files["gro_flush_timeout"] = strconv.FormatInt(int64(o.Hold), 10)
		files["napi_defer_hard_irqs"] = "1"
	}
	for name, v := range files {
		if err := os.WriteFile("/sys/class/net/"+dev+"/"+name, []byte(v), 0o644); err != nil {
			return fmt.Errorf("softnic: %s of %s: %w", name, dev, err)
		}
	}
	return nil
}

// tap returns the bits of a TAP. There is none for SG.
func (o Offloads) tap() (bits tap.Offloads) {
	for _, m := range []struct {
		own Offloads
		bit tap.Offloads
	}{
		{Checksum, tap.Csum},
		{TSO4, tap.TSO4},
		{TSO6, tap.TSO6},
		{TSOECN, tap.TSOECN},
		{USO, tap.USO},
		{TunnelTSO, tap.Tunnel},
		{TunnelCsum, tap.TunnelCsum},
	} {
		if o.Has(m.own) {
			bits |= m.bit
		}
	}
	if !o.Has(Checksum) { // nothing without it
		return 0
	}
	return bits
}
