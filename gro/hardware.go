package gro

import (
	"github.com/offlab/offlab/packet"
)

// eligible reports whether the device of the policy Hardware aggregates such a
// TCP segment at all. A packet that it does not ends the aggregation of its
// flow and passes.
func (e *Engine) eligible(b []byte) bool {
	h, l := &e.h, &e.opt.Limits
	from := h.l3
	if h.o4 != 0 {
		from = h.o3
	}
	switch {
	case len(b)-from < l.MinSize:
		return false
	case l.NoTunnels && h.o4 != 0:
		return false
	case l.NoExtensions && h.v6 && h.l4-h.l3 != packet.IPv6Len:
		return false
	}
	return !l.OnlyTimestamps || onlyTimestamp(b[h.l4+packet.TCPMinLen:h.pay])
}

// onlyTimestamp reports whether there are no TCP options, or two NOPs and a
// timestamp: what RFC 7323 appendix A recommends and devices expect.
func onlyTimestamp(o []byte) bool {
	return len(o) == 0 || len(o) == 12 && be.Uint32(o) == 0x0101080a
}
