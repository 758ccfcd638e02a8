package softnic

import (
	"context"
	"errors"
)

// A NIC is a card with an even number of ports; ports 0 and 1 are joined, 2 and
// 3, and so on.
type NIC struct{}

// New makes a card. Each two ports that follow each other are joined by a wire;
// the ports stay the caller's to close, after Run.
func New(cfg Config, ports []Port) (*NIC, error) { return nil, errors.ErrUnsupported }

// Run carries packets until the context ends, which is no error, or a port is
// gone.
func (n *NIC) Run(ctx context.Context) error { return errors.ErrUnsupported }

// Counters returns what was counted so far, by port and station:
// "p0.tx_packets".
func (n *NIC) Counters() map[string]uint64 { return nil }

// Set changes a setting of a port, for packets that come later. What it becomes
// is what [NIC.Setting] returns: a hook may have refused.
func (n *NIC) Set(port int, s Setting, value int) error { return errors.ErrUnsupported }

// Setting returns the present value of a setting.
func (n *NIC) Setting(port int, s Setting) (int, error) { return 0, errors.ErrUnsupported }

// Close releases what the NIC holds. Run has ended.
func (n *NIC) Close() error { return nil }
