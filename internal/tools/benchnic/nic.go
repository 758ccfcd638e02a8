package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/offlab/offlab/internal/softnic"
	"github.com/offlab/offlab/internal/softnic/model"
	"github.com/offlab/offlab/internal/sys/netns"
	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/sys/tap"
)

// nicSpec says what joins the hosts.
type nicSpec struct {
	Kind     string       `json:"kind"`     // softnic, loop or veth
	Offloads bool         `json:"offloads"` // the hosts send super-packets
	Merge    bool         `json:"merge"`    // softnic: hardware GRO
	Through  bool         `json:"through"`  // softnic: pass-through wire
	NAPI     softnic.NAPI `json:"napi"`     // softnic
	Queues   int          `json:"queues"`
	PIDs     [2]int       `json:"pids"`
}

// features returns what is set on the devices of both hosts.
func (s nicSpec) features() map[string]bool {
	switch {
	case s.Kind == "loop" || s.Offloads && s.Kind == "softnic":
		return nil // the TAP has what it was given
	case s.Offloads:
		return map[string]bool{"rx-gro": true}
	}
	f := map[string]bool{"tx-tcp-segmentation": false, "tx-tcp6-segmentation": false, "rx-gro": false}
	if s.Kind == "veth" {
		f["tx-checksum-ip-generic"] = false
	}
	return f
}

func (s nicSpec) hosts() []softnic.Host {
	return []softnic.Host{{Device: device, PID: s.PIDs[0]}, {Device: device, PID: s.PIDs[1]}}
}

// nicChild is what lies between the hosts. It ends with its input.
func nicChild(ctx context.Context, arg string, in io.Reader, out io.Writer) error {
	var s nicSpec
	if err := json.Unmarshal([]byte(arg), &s); err != nil {
		return err
	}
	if err := netns.MountSys(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is all that matters
		cancel()
	}()
	if s.Kind == "loop" {
		return loop(ctx, s, out)
	}
	generic, err := model.Find("generic")
	if err != nil {
		return err
	}
	generic.RX.MergeOff = !s.Merge && !s.Through
	cfg := softnic.Config{Cards: []softnic.Card{{Model: generic}}, Wire: softnic.Wire{PassThrough: s.Through}}
	taps, err := softnic.OpenTaps(cfg, s.hosts(), softnic.TapOptions{
		Queues: s.Queues, NAPI: s.NAPI,
	})
	if err != nil {
		return err
	}
	defer taps.Close() //nolint:errcheck // the process ends
	nic, err := softnic.New(cfg, taps.Ports)
	if err != nil {
		return err
	}
	if err := reply(out, nil, nil); err != nil {
		return err
	}
	err = nic.Run(ctx)
	if os.Getenv("BENCHNIC_COUNTERS") != "" { //nolint:forbidigo // for whoever looks into a figure
		_ = json.NewEncoder(os.Stderr).Encode(nic.Counters())
	}
	return errors.Join(err, nic.Balance())
}

// loop copies packets from each TAP to the other: the least that there is to
// do.
func loop(ctx context.Context, s nicSpec, out io.Writer) error {
	var d [2]*tap.Device
	o := tap.Options{HeaderSize: 12}
	if s.Offloads {
		o.Offloads = tap.Csum | tap.TSO4 | tap.TSO6 | tap.TSOECN
	}
	for i, h := range s.hosts() {
		dev, err := openLoop(h, o)
		if err != nil {
			return err
		}
		d[i] = dev
	}
	if err := reply(out, nil, nil); err != nil {
		return err
	}
	done := make(chan error, 2)
	for i := range d {
		go func() { done <- forward(ctx, d[i].Queues[0], d[1-i].Queues[0]) }()
	}
	<-ctx.Done()
	for i := range d {
		d[i].Queues[0].Wake()
	}
	return errors.Join(<-done, <-done)
}

func forward(ctx context.Context, from, to *tap.Queue) error {
	buf := make([]byte, tap.MaxPacket)
	parts := make([][]byte, 1)
	for ctx.Err() == nil {
		n, err := from.Read(buf)
		if errors.Is(err, tap.ErrAgain) {
			if err := from.Wait(-1, false); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		parts[0] = buf[:n]
		if err := to.Write(parts); err != nil && !errors.Is(err, tap.ErrDown) {
			return err
		}
	}
	return nil
}

func openLoop(h softnic.Host, o tap.Options) (*tap.Device, error) {
	nl, err := rtnl.Open()
	if err != nil {
		return nil, err
	}
	d, err := tap.Open(h.Device, o)
	if err == nil {
		err = nl.Move(h.Device, h.PID)
	}
	return d, errors.Join(err, nl.Close())
}
