package knob

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/sys/sysctl"
)

// A device reads and writes all that a session may change.
type device struct {
	name  string
	index int
	et    *ethtool.Handle
	rt    *rtnl.Handle
}

// A snapshot is all that a session may change, at one moment. What the driver
// lacks is absent.
type snapshot struct {
	features ethtool.Features
	values   map[string]string
}

// openDevice opens the device of a name.
func openDevice(o ethtool.Options) (*device, error) {
	et, err := o.Open()
	if err != nil {
		return nil, err
	}
	rt, err := rtnl.Open()
	if err != nil {
		return nil, errors.Join(err, et.Close())
	}
	return &device{et: et, rt: rt}, nil
}

func (d *device) close() error { return errors.Join(d.et.Close(), d.rt.Close()) }

// locate finds the device again, under the name it has now.
func (d *device) locate() error {
	if d.index <= 0 {
		return ErrNoDevice
	}
	l, err := d.rt.LinkByIndex(d.index)
	if err == nil {
		d.name = l.Name
	}
	return err
}

// read takes a snapshot, with the sysctls named.
func (d *device) read(sysctls []string) (snapshot, error) {
	f, err := d.et.Features(d.name)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{features: f, values: map[string]string{}}
	l, err := d.rt.Link(d.name)
	if err != nil {
		return snapshot{}, err
	}
	for name, n := range l.Values {
		s.values[name] = text(name, uint32(n))
	}
	for prefix, get := range map[string]func(string) (map[string]uint32, error){"": d.et.Coalesce, ringPrefix: d.et.Rings} {
		numbers, err := get(d.name)
		if err != nil && !errors.Is(err, ethtool.ErrUnsupported) {
			return snapshot{}, err
		}
		for name, n := range numbers {
			if name = prefix + name; kindOf(name) != "" { // the limits of rings are not ours to set
				s.values[name] = text(name, n)
			}
		}
	}
	for _, name := range sysctls {
		if s.values[name], err = sysctl.Read(name); err != nil {
			return snapshot{}, err
		}
	}
	return s, nil
}

// write changes values. What was refused is in the map, by name; the error is
// for what leaves no point in going on.
func (d *device) write(want map[string]string) (map[string]error, error) {
	refused := map[string]error{}
	for _, g := range []struct {
		kind   Kind
		prefix string
		set    func(string, map[string]uint32) error
	}{{KindRing, ringPrefix, d.et.SetRings}, {KindCoalesce, "", d.et.SetCoalesce}} {
		d.writeTogether(pick(want, g.kind), g.prefix, g.set, refused)
	}
	links := pick(want, KindLink)
	for _, name := range rtnl.ValueNames() { // in their order: some change others
		if v, ok := links[name]; ok {
			n, err := number(v)
			if err == nil {
				err = d.rt.Set(d.name, name, int(n))
			}
			note(refused, name, err)
		}
	}
	for name, v := range pick(want, KindSysctl) {
		note(refused, name, sysctl.Write(name, v))
	}
	for name, err := range refused {
		// A sysctl may refuse even root; what the device refuses for lack of
		// rights it will refuse again.
		if errors.Is(err, ErrNoDevice) || errors.Is(err, fs.ErrPermission) && kindOf(name) != KindSysctl {
			return refused, err
		}
	}
	return refused, nil
}

// writeTogether changes a group in one request, as drivers check parameters
// against each other. Is the group refused, they are tried one by one, so that
// the one at fault is known and the others are set.
func (d *device) writeTogether(want map[string]string, prefix string, set func(string, map[string]uint32) error, refused map[string]error) {
	all := map[string]uint32{}
	for name, v := range want {
		n, err := number(v)
		if err != nil {
			note(refused, name, err)
			continue
		}
		all[strings.TrimPrefix(name, prefix)] = n
	}
	if len(all) == 0 {
		return
	}
	err := set(d.name, all)
	if err == nil || len(all) == 1 {
		for name := range all {
			note(refused, prefix+name, err)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		note(refused, prefix+name, set(d.name, map[string]uint32{name: all[name]}))
	}
}

func note(refused map[string]error, name string, err error) {
	if err != nil {
		refused[name] = err
	}
}

func pick(want map[string]string, kind Kind) map[string]string {
	some := map[string]string{}
	for name, v := range want {
		if kindOf(name) == kind {
			some[name] = v
		}
	}
	return some
}

// settle writes those values that differ from what they should be. Writing one
// may change another (a plain GSO limit sets that of IPv4), so it looks again,
// a few times.
func (d *device) settle(want map[string]string) (map[string]error, error) {
	const passes = 4
	var refused map[string]error
	for range passes {
		now, err := d.read(sysctlsOf(want))
		if err != nil {
			return nil, err
		}
		rest := differing(want, now.values)
		if len(rest) == 0 {
			return nil, nil
		}
		if refused, err = d.write(rest); err != nil {
			return refused, err
		}
	}
	return refused, nil
}

func sysctlsOf(values map[string]string) []string {
	return slices.Sorted(maps.Keys(pick(values, KindSysctl)))
}

// differing returns the values wanted that are not as wanted. Those that the
// device does not have are left out.
func differing(want, now map[string]string) map[string]string {
	rest := map[string]string{}
	for name, v := range want {
		if have, ok := now[name]; ok && have != v {
			rest[name] = v
		}
	}
	return rest
}

// putBack brings the device back to a state, and verifies it. Commands come
// first, since they may change anything. Without the device it puts back what
// is left: sysctls and commands.
func (d *device) putBack(st *state) error {
	var errs []error
	for _, c := range st.Commands {
		if err := run(c.On, commandTimeout); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
	}
	if err := d.locate(); err != nil {
		_, werr := d.write(pick(st.Values, KindSysctl))
		return errors.Join(append(errs, err, werr)...)
	}
	refused, err := d.settle(st.Values)
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		errs = append(errs, refused[name])
	}
	if err != nil {
		errs = append(errs, err)
	}
	if err := d.want(st.Wanted); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, d.verify(st))...)
}

// want asks for the features in one request, unless all is wanted already.
func (d *device) want(want map[string]bool) error {
	f, err := d.et.Features(d.name)
	if err != nil {
		return err
	}
	ask := map[string]bool{}
	for name, v := range want {
		if b, ok := f.Bits[name]; ok && !b.Fixed() {
			ask[name] = v
		}
	}
	if maps.Equal(ask, f.Wanted()) {
		return nil
	}
	_, err = d.et.Set(d.name, ask)
	return err
}

// verify compares the device with a state, and names each difference.
func (d *device) verify(st *state) error {
	now, err := d.read(sysctlsOf(st.Values))
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range compare(st, now) {
		errs = append(errs, fmt.Errorf("%s is %s, was %s", c.Name, c.To, c.From))
	}
	return errors.Join(errs...)
}
