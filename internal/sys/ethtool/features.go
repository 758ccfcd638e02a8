package ethtool

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Bits are the four answers about one feature of one device.
type Bits struct {
	HW       bool `json:"hw"`       // a user may ask for a change
	Wanted   bool `json:"wanted"`   // a user asked for it, or it was on at registration
	Active   bool `json:"active"`   // it is on
	NoChange bool `json:"nochange"` // nobody can change it
}

// Fixed reports whether asking changes nothing.
func (b Bits) Fixed() bool { return !b.HW || b.NoChange }

// String writes the bits in the way of ethtool -k: "off [requested on]".
func (b Bits) String() string {
	s := onOff(b.Active)
	switch {
	case b.Fixed():
		return s + " [fixed]"
	case b.Active != b.Wanted:
		return s + " [requested " + onOff(b.Wanted) + "]"
	}
	return s
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// Features are the feature sets of a device by the kernel's names.
type Features struct {
	Names []string        `json:"names"` // in the kernel's order
	Bits  map[string]Bits `json:"bits"`
}

// Wanted returns the features that a user may change, each with what is wanted
// of it: what [Handle.Set] takes to put the device back.
func (f Features) Wanted() map[string]bool {
	want := map[string]bool{}
	for name, b := range f.Bits {
		if !b.Fixed() {
			want[name] = b.Wanted
		}
	}
	return want
}

// FeatureNames returns the names of the kernel's features, in its order. A
// device is named because the ioctl asks one; netlink needs none.
func (h *Handle) FeatureNames(dev string) ([]string, error) {
	bits, err := h.featureNames(dev)
	if err != nil {
		return nil, fail("get feature names", dev, err)
	}
	var names []string
	for _, name := range bits {
		if name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// featureNames returns the names by bit, and keeps them: they are compiled
// into the kernel.
func (h *Handle) featureNames(dev string) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names != nil {
		return h.names, nil
	}
	var names []string
	err := h.either(func() (err error) {
		names, err = h.netlinkStrings(ssFeatures)
		return err
	}, func() (err error) {
		names, err = h.ioctlStrings(dev, ssFeatures)
		return err
	})
	if err != nil {
		return nil, err
	}
	h.names = names
	return names, nil
}

// Features reads the four sets of a device.
func (h *Handle) Features(dev string) (Features, error) {
	names, err := h.featureNames(dev)
	if err != nil {
		return Features{}, fail("get features", dev, err)
	}
	var sets featureSets
	err = h.either(
		func() (err error) { sets, err = h.netlinkFeatures(dev); return err },
		func() (err error) { sets, err = h.ioctlFeatures(dev, len(names)); return err },
	)
	if err != nil {
		return Features{}, fail("get features", dev, err)
	}
	f := Features{Bits: make(map[string]Bits, len(names))}
	for i, name := range names {
		if name == "" {
			continue
		}
		f.Names = append(f.Names, name)
		f.Bits[name] = Bits{HW: sets.hw.has(i), Wanted: sets.wanted.has(i), Active: sets.active.has(i), NoChange: sets.nochange.has(i)}
	}
	return f, nil
}

// Set asks for features of a device in one request and returns the sets as
// they are afterwards. Features not named keep what is wanted of them. The
// kernel may leave a wish unfulfilled, or change features not named: compare.
// It ignores a wish about a fixed feature, and so does Set. A name that the
// kernel does not know fails with [ErrUnsupported], and nothing is changed.
func (h *Handle) Set(dev string, want map[string]bool) (Features, error) {
	const op = "set features"
	names, err := h.featureNames(dev)
	if err != nil {
		return Features{}, fail(op, dev, err)
	}
	value, mask, err := h.request(dev, names, want)
	if err != nil {
		return Features{}, fail(op, dev, err)
	}
	err = h.either(func() error {
		return h.set(unix.ETHTOOL_MSG_FEATURES_SET, dev, func(ae *netlink.AttributeEncoder) error {
			ae.Nested(unix.ETHTOOL_A_FEATURES_WANTED, func(nae *netlink.AttributeEncoder) error {
				nae.Uint32(unix.ETHTOOL_A_BITSET_SIZE, uint32(len(names)))
				nae.Bytes(unix.ETHTOOL_A_BITSET_VALUE, value.bytes())
				nae.Bytes(unix.ETHTOOL_A_BITSET_MASK, mask.bytes())
				return nil
			})
			return nil
		})
	}, func() error { return h.ioctlSetFeatures(dev, value, mask) })
	if err != nil {
		return Features{}, fail(op, dev, err)
	}
	return h.Features(dev)
}

// request turns a wish into bitsets. Bits that nobody can change are left out:
// the kernel refuses the whole request for one of them (NETIF_F_NEVER_CHANGE,
// net/ethtool/features.c).
func (h *Handle) request(dev string, names []string, want map[string]bool) (value, mask bitset, err error) {
	now, err := h.Features(dev)
	if err != nil {
		return nil, nil, err
	}
	value, mask = newBitset(len(names)), newBitset(len(names))
	known := 0
	for i, name := range names {
		on, asked := want[name]
		if !asked || name == "" {
			continue
		}
		known++
		if now.Bits[name].Fixed() {
			continue
		}
		mask.add(i)
		if on {
			value.add(i)
		}
	}
	if known == len(want) {
		return value, mask, nil
	}
	for name := range want {
		if _, ok := now.Bits[name]; !ok {
			return nil, nil, fmt.Errorf("feature %q: %w", name, ErrUnsupported)
		}
	}
	return value, mask, nil
}

// featureSets are the four sets as the kernel sends them.
type featureSets struct{ hw, wanted, active, nochange bitset }

func (h *Handle) netlinkFeatures(dev string) (sets featureSets, err error) {
	err = h.get(unix.ETHTOOL_MSG_FEATURES_GET, dev, unix.ETHTOOL_FLAG_COMPACT_BITSETS, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.ETHTOOL_A_FEATURES_HW:
			sets.hw = decodeBitset(ad)
		case unix.ETHTOOL_A_FEATURES_WANTED:
			sets.wanted = decodeBitset(ad)
		case unix.ETHTOOL_A_FEATURES_ACTIVE:
			sets.active = decodeBitset(ad)
		case unix.ETHTOOL_A_FEATURES_NOCHANGE:
			sets.nochange = decodeBitset(ad)
		}
	})
	return sets, err
}

// ioctlFeatures reads struct ethtool_gfeatures: cmd, size, then for each 32
// features the words available, requested, active and never_changed.
func (h *Handle) ioctlFeatures(dev string, n int) (sets featureSets, err error) {
	size := len(newBitset(n))
	buf := words(2+4*size, unix.ETHTOOL_GFEATURES, uint32(size))
	if err := h.ioctl(dev, buf); err != nil {
		return sets, err
	}
	for i := range size {
		block := 2 + 4*i
		sets.hw = append(sets.hw, word(buf, block))
		sets.wanted = append(sets.wanted, word(buf, block+1))
		sets.active = append(sets.active, word(buf, block+2))
		sets.nochange = append(sets.nochange, word(buf, block+3))
	}
	return sets, nil
}

// ioctlSetFeatures writes struct ethtool_sfeatures: cmd, size, then for each 32
// features the words valid and requested. A wish not fulfilled is a positive
// answer, not an error.
func (h *Handle) ioctlSetFeatures(dev string, value, mask bitset) error {
	buf := words(2+2*len(mask), unix.ETHTOOL_SFEATURES, uint32(len(mask)))
	for i := range mask {
		put(buf, 2+2*i, mask[i])
		put(buf, 3+2*i, value[i])
	}
	return h.ioctl(dev, buf)
}

// A bitset is a feature set as the kernel sends it: 32-bit words, lowest
// first, each in native byte order.
type bitset []uint32

func newBitset(n int) bitset    { return make(bitset, (n+31)/32) }
func (s bitset) has(i int) bool { return i/32 < len(s) && s[i/32]&(1<<(i%32)) != 0 }
func (s bitset) add(i int)      { s[i/32] |= 1 << (i % 32) }
func (s bitset) bytes() (b []byte) {
	for _, w := range s {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}

func decodeBitset(ad *netlink.AttributeDecoder) (s bitset) {
	nested(ad, func(f *netlink.AttributeDecoder) {
		if f.Type() != unix.ETHTOOL_A_BITSET_VALUE {
			return
		}
		for b := f.Bytes(); len(b) >= 4; b = b[4:] {
			s = append(s, binary.NativeEndian.Uint32(b))
		}
	})
	return s
}
