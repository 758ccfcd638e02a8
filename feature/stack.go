package feature

import "fmt"

// A Stack is devices on top of each other. A change of one is carried to the
// devices above it, as the kernel's NETDEV_FEAT_CHANGE does, and what must be
// off below if it is off above is turned off (__netdev_update_features,
// net/core/dev.c, 6.18).
type Stack struct {
	order []string
	nodes map[string]*node
}

type node struct {
	name         string
	dev          Device
	below, above []*node
}

func (n *node) lower() []*Device {
	list := make([]*Device, len(n.below))
	for i, b := range n.below {
		list[i] = &b.dev
	}
	return list
}

// Names returns the devices in the order in which they were added.
func (s *Stack) Names() []string { return append([]string(nil), s.order...) }

// Device returns a device.
func (s *Stack) Device(name string) (Device, bool) {
	n, ok := s.nodes[name]
	if !ok {
		return Device{}, false
	}
	return n.dev, true
}

// Add registers a device as its driver has it, on top of others, and returns
// what that changed. Ports of a bridge, bond or team are put below it later:
// [Stack.Enslave].
func (s *Stack) Add(name string, d Device, below ...string) ([]Change, error) {
	if _, dup := s.nodes[name]; dup {
		return nil, fmt.Errorf("device %q is there already", name)
	}
	n := &node{name: name, dev: d}
	for _, b := range below {
		under, ok := s.nodes[b]
		if !ok {
			return nil, fmt.Errorf("no device %q to put %q on", b, name)
		}
		n.below = append(n.below, under)
	}
	if s.nodes == nil {
		s.nodes = map[string]*node{}
	}
	s.nodes[name], s.order = n, append(s.order, name)
	k, _ := FindKind(d.Kind)
	lower := n.lower()
	if k.init != nil {
		k.init(&n.dev, lower)
	}
	var why []Change
	register(&n.dev, lower, &why)
	for _, under := range n.below { // the link is made after registration
		under.above = append(under.above, n)
	}
	if !k.late.IsZero() {
		n.dev.Sets[Features] = n.dev.Sets[Features].Diff(k.late)
		n.dev.Sets[Wanted] = n.dev.Sets[Wanted].Diff(k.late)
		why = append(why, Change{Off: k.late, Why: "the driver turns it off after registration", Source: k.Source})
	}
	return append(why, n.update()...), nil
}

// Enslave puts a port below a bridge, bond or team.
func (s *Stack) Enslave(port, master string) ([]Change, error) {
	p, m := s.nodes[port], s.nodes[master]
	if p == nil || m == nil {
		return nil, fmt.Errorf("no device %q or no device %q", port, master)
	}
	if p == m || m.under(p) {
		return nil, fmt.Errorf("%q cannot be below itself", master)
	}
	m.below, p.above = append(m.below, p), append(p.above, m)
	if k, _ := FindKind(m.dev.Kind); k.Name == "bridge" || !m.dev.Sets[Features].Has(LRO) {
		// dev_disable_lro: packets that are forwarded must not have been merged
		// beyond repair.
		p.dev.Sets[Wanted] = p.dev.Sets[Wanted].Without(LRO)
		p.settle()
	}
	m.refresh()
	return m.update(), nil
}

// under reports whether n is below p.
func (n *node) under(p *node) bool {
	for _, b := range p.below {
		if b == n || n.under(b) {
			return true
		}
	}
	return false
}

// Request does what ethtool -K does to one device, and returns what the rules
// did to the wish.
func (s *Stack) Request(name string, value, mask Set) ([]Change, error) {
	n, ok := s.nodes[name]
	if !ok {
		return nil, fmt.Errorf("no device %q", name)
	}
	if !ask(&n.dev, value, mask) {
		return nil, nil
	}
	return n.settle(), nil
}

// Accept sets what the process behind a TAP takes (set_offload,
// drivers/net/tun.c, 6.18).
func (s *Stack) Accept(name string, takes Set) ([]Change, error) {
	n, ok := s.nodes[name]
	if !ok {
		return nil, fmt.Errorf("no device %q", name)
	}
	takes = takes.Intersect(tapUser)
	n.dev.Accepts = takes
	n.dev.Sets[Wanted] = n.dev.Sets[Wanted].Diff(tapUser).Union(takes)
	return n.settle(), nil
}

// refresh recomputes the sets that come from below.
func (n *node) refresh() {
	if k, _ := FindKind(n.dev.Kind); k.changed != nil {
		k.changed(&n.dev, n.lower())
	}
}

// settle updates a device and tells those above if something changed.
func (n *node) settle() []Change {
	old := n.dev.Sets[Features]
	why := n.update()
	if n.dev.Sets[Features] != old {
		n.tell()
	}
	return why
}

// tell is NETDEV_FEAT_CHANGE. Only kinds that take features from below listen.
func (n *node) tell() {
	for _, up := range n.above {
		if k, _ := FindKind(up.dev.Kind); k.fix != nil {
			up.refresh()
			up.settle()
		}
	}
}

// update is __netdev_update_features.
func (n *node) update() []Change {
	got, why := fixed(&n.dev, n.lower())
	for _, up := range n.above {
		off := got.Intersect(UpperDisables).Diff(up.dev.Sets[Wanted])
		if !off.IsZero() {
			got = got.Diff(off)
			why = append(why, Change{Off: off, Why: "off on " + up.name + ", which is above", Source: "net/core/dev.c, netdev_sync_upper_features"})
		}
	}
	for _, low := range n.below {
		off := low.dev.Sets[Features].Intersect(UpperDisables).Diff(got)
		if !off.IsZero() {
			low.dev.Sets[Wanted] = low.dev.Sets[Wanted].Diff(off)
			low.update()
			low.tell()
		}
	}
	n.dev.Sets[Features] = got
	return why
}
