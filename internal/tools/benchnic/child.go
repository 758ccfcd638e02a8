package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/sys/cpu"
	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/rtnl"
)

// A request is one line to a child; one of the fields is set.
type request struct {
	Veth     int            `json:"veth,omitempty"` // make a pair with the process
	Setup    *setup         `json:"setup,omitempty"`
	Listen   *load.Spec     `json:"listen,omitempty"`
	Dial     *load.Spec     `json:"dial,omitempty"`
	Addr     netip.AddrPort `json:"addr"`
	Snapshot bool           `json:"snapshot,omitempty"`
	Stop     bool           `json:"stop,omitempty"`
}

type setup struct {
	Address  netip.Prefix    `json:"address"`
	Features map[string]bool `json:"features"`
}

// An answer is the line that comes back.
type answer struct {
	Error string          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

func reply(out io.Writer, v any, err error) error {
	var a answer
	if err == nil {
		a.Value, err = json.Marshal(v)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(a)
}

// A host runs one end of a load.
type host struct {
	end interface {
		Snapshot() load.Snapshot
		Stop() load.Result
	}
}

func hostChild(ctx context.Context, pin string, in io.Reader, out io.Writer) error {
	n, err := strconv.Atoi(pin)
	if err != nil {
		return err
	}
	if n >= 0 {
		if err := cpu.Pin(n); err != nil {
			return err
		}
	}
	if err := reply(out, nil, nil); err != nil {
		return err
	}
	var h host
	for dec := json.NewDecoder(in); ; {
		var r request
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		v, err := h.serve(ctx, r)
		if err := reply(out, v, err); err != nil {
			return err
		}
	}
}

func (h *host) serve(ctx context.Context, r request) (any, error) {
	switch {
	case r.Veth != 0:
		nl, err := rtnl.Open()
		if err != nil {
			return nil, err
		}
		return nil, errors.Join(nl.AddVeth(device, device, r.Veth), nl.Close())
	case r.Setup != nil:
		return nil, r.Setup.apply()
	case r.Listen != nil:
		rcv, err := load.Listen(ctx, *r.Listen, r.Addr.Addr())
		if err != nil {
			return nil, err
		}
		h.end = rcv
		return rcv.Addr(), nil
	case r.Dial != nil:
		snd, err := load.Dial(ctx, *r.Dial, r.Addr)
		h.end = snd
		return nil, err
	case r.Snapshot:
		return h.end.Snapshot(), nil
	case r.Stop:
		h.end.Stop()
		return nil, nil
	}
	return nil, fmt.Errorf("nothing to do in %+v", r)
}

func (s *setup) apply() error {
	nl, err := rtnl.Open()
	if err != nil {
		return err
	}
	eth, err := ethtool.Open()
	if err != nil {
		return err
	}
	err = errors.Join(nl.SetUp("lo", true), nl.AddAddress(device, s.Address), nl.SetUp(device, true))
	if err == nil && len(s.Features) > 0 {
		_, err = eth.Set(device, s.Features)
	}
	return errors.Join(err, nl.Close(), eth.Close())
}
