package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"

	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/sys/cpu"
)

// A child is this program again, inside a namespace: one end of offlab's load.
// It answers each line "snapshot" or "stop" with one line of JSON, and stops at
// the end of its input. The first line it writes is its address.
const childArg = "child"

// childSpec is the last argument of a child.
type childSpec struct {
	Spec load.Spec      `json:"spec"`
	Addr netip.AddrPort `json:"addr"` // where to listen, or to dial
	CPU  int            `json:"cpu"`  // -1: anywhere
}

type end interface {
	Snapshot() load.Snapshot
	Stop() load.Result
}

func child(ctx context.Context, role, arg string, in io.Reader, out io.Writer) error {
	var c childSpec
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		return err
	}
	if c.CPU >= 0 {
		if err := cpu.Pin(c.CPU); err != nil {
			return err
		}
	}
	e, addr, err := open(ctx, role, c)
	if err != nil {
		return err
	}
	defer e.Stop()
	enc := json.NewEncoder(out)
	if err := enc.Encode(addr); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case "snapshot":
			err = enc.Encode(e.Snapshot())
		case "stop":
			return enc.Encode(e.Stop().Final)
		default:
			err = fmt.Errorf("unknown request %q", lines.Text())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func open(ctx context.Context, role string, c childSpec) (end, netip.AddrPort, error) {
	switch role {
	case "receive":
		r, err := load.Listen(ctx, c.Spec, c.Addr.Addr())
		if err != nil {
			return nil, netip.AddrPort{}, err
		}
		return r, r.Addr(), nil
	case "send":
		s, err := load.Dial(ctx, c.Spec, c.Addr)
		return s, c.Addr, err
	default:
		return nil, netip.AddrPort{}, fmt.Errorf("unknown role %q", role)
	}
}
