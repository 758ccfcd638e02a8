package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/sys/bpf"
)

// EtherTypes of VLAN tags.
const (
	dot1Q  = 0x8100
	dot1AD = 0x88a8
)

// A PathSetup asks for a path on a device.
type PathSetup struct {
	Device string `json:"device"`
	Path   string `json:"path"`
}

// A PathResult says by what a path was brought about.
type PathResult struct {
	By string `json:"by"`
}

// SetPath brings a path about on a device of a lab, in place of the one before.
func (c *Client) SetPath(ctx context.Context, p PathSetup) (PathResult, error) {
	return ask[PathResult](ctx, c, "path.set", p)
}

func (s *Server) setPath(_ context.Context, p PathSetup) (PathResult, error) {
	path, err := study.ParsePath(p.Path)
	if err != nil {
		return PathResult{}, &agent.Error{Kind: agent.KindUsage, Text: err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.dropPath(); err != nil {
		return PathResult{}, err
	}
	var tags []bpf.Tag
	switch path.Kind {
	case study.PathBase:
		return PathResult{By: "the device itself"}, nil
	case study.PathVLAN:
		tags = []bpf.Tag{{Proto: dot1Q, ID: path.IDs[0]}}
	case study.PathQinQ:
		tags = []bpf.Tag{{Proto: dot1AD, ID: path.IDs[0]}, {Proto: dot1Q, ID: path.IDs[1]}}
	case study.PathForwarded:
		return PathResult{}, &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("path %s: this lab cannot bring it about", p.Path)}
	}
	if s.vlan, err = bpf.AttachVLAN(p.Device, tags...); err != nil {
		return PathResult{}, &agent.Error{Kind: agent.KindEnv, Text: fmt.Sprintf("path %s: %v", p.Path, err)}
	}
	return PathResult{By: "tags pushed and popped on the port by tcx, which the stack and the driver treat as tagged traffic"}, nil
}

// dropPath takes the present path down. The caller holds mu.
func (s *Server) dropPath() error {
	if s.vlan == nil {
		return nil
	}
	err := s.vlan.Close()
	s.vlan = nil
	return errors.Join(err)
}
