package ethtool

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Driver is what a driver says of itself. Version is often the kernel's.
type Driver struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Bus      string `json:"bus,omitempty"`
	Firmware string `json:"firmware,omitempty"`
}

// Driver reads the driver's name, version, bus address and firmware version
// (struct ethtool_drvinfo).
func (h *Handle) Driver(dev string) (Driver, error) {
	const field, header = 32, 4
	buf := make([]byte, 196)
	put(buf, 0, unix.ETHTOOL_GDRVINFO)
	if err := h.ioctl(dev, buf); err != nil {
		return Driver{}, fail("get driver", dev, err)
	}
	at := func(i int) string { return text(buf[header+i*field:][:field]) }
	d := Driver{Name: at(0), Version: at(1), Firmware: at(2), Bus: at(3)}
	if d.Firmware == "N/A" { // what the core writes when the driver leaves it out
		d.Firmware = ""
	}
	return d, nil
}

// Link are the settings of a link. The zero Link is all unknown.
type Link struct {
	SpeedMbit int    `json:"speed_mbit,omitempty"` // 0: unknown
	Duplex    string `json:"duplex,omitempty"`     // "half", "full" or "" for unknown
}

// Link reads speed and duplex. A driver without such settings, or one that
// does not know them while the link is down, gives unknown.
func (h *Handle) Link(dev string) (Link, error) {
	// struct ethtool_link_settings. With no room for link modes the kernel
	// answers how many words it has, negative, and nothing else; asked again
	// with that number it fills in the rest.
	const fixed = 12  // words before the link modes
	const nwords = 15 // offset of link_mode_masks_nwords, an s8
	probe := words(fixed, unix.ETHTOOL_GLINKSETTINGS)
	if err := h.ioctl(dev, probe); err != nil {
		if errors.Is(err, ErrUnsupported) {
			return Link{}, nil
		}
		return Link{}, fail("get link", dev, err)
	}
	n := -int8(probe[nwords])
	if n <= 0 {
		return Link{}, fail("get link", dev, errShort)
	}
	buf := words(fixed+3*int(n), unix.ETHTOOL_GLINKSETTINGS)
	buf[nwords] = byte(n)
	if err := h.ioctl(dev, buf); err != nil {
		return Link{}, fail("get link", dev, err)
	}
	return decodeLink(word(buf, 1), buf[8]), nil
}

func decodeLink(speed uint32, duplex byte) Link {
	var l Link
	if s := int32(speed); s > 0 { // SPEED_UNKNOWN is -1
		l.SpeedMbit = int(s)
	}
	switch duplex { // DUPLEX_UNKNOWN is 0xff
	case 0:
		l.Duplex = "half"
	case 1:
		l.Duplex = "full"
	}
	if l.SpeedMbit == 0 {
		l.Duplex = "" // drivers without a speed leave half, which is 0
	}
	return l
}

// Stats reads the driver's own statistics (ethtool -S). Where a name comes
// twice the values are added: drivers do that for queues.
func (h *Handle) Stats(dev string) (map[string]uint64, error) {
	names, err := h.ioctlStrings(dev, ssStats)
	if err != nil {
		return nil, fail("get statistics", dev, err)
	}
	// struct ethtool_stats: cmd, n_stats, values. Between the two calls a
	// driver may add counters: room for some more, and its own count decides.
	const spare = 64
	buf := append(words(2, unix.ETHTOOL_GSTATS, uint32(len(names))), make([]byte, 8*(len(names)+spare))...)
	if err := h.ioctl(dev, buf); err != nil {
		return nil, fail("get statistics", dev, err)
	}
	stats := map[string]uint64{}
	for i, name := range names {
		if i < int(word(buf, 1)) && name != "" {
			stats[name] += binary.NativeEndian.Uint64(buf[8+8*i:])
		}
	}
	return stats, nil
}
