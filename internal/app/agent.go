package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/host"
	"github.com/offlab/offlab/internal/sys/cpu"
	"github.com/offlab/offlab/internal/sys/netns"
)

// AgentOptions are those of the agent command.
type AgentOptions struct {
	Own   bool   // the process was born in a namespace of its own
	CPU   int    // stay on this CPU; negative: any
	State string // directory of state files
}

// Agent serves a controller until the stream ends, and then puts back what was
// changed.
func Agent(ctx context.Context, p Program, o AgentOptions, in io.Reader, out io.WriteCloser) error {
	if o.Own {
		// Without a /sys of its own the agent still has what it must.
		_ = netns.MountSys()
	}
	if o.CPU >= 0 {
		if err := cpu.Pin(o.CPU); err != nil {
			return err
		}
	}
	s, err := host.NewServer(p.Version, o.State, p.Exe)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	err = agent.Serve(ctx, in, out, s.Methods(), agent.Options{Version: p.Version})
	return errors.Join(err, s.Close())
}
