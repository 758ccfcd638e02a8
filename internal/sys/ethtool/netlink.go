package ethtool

import (
	"errors"
	"fmt"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// attrHeader is the request header's attribute, the same number in every
// message (ETHTOOL_A_FEATURES_HEADER, ETHTOOL_A_COALESCE_HEADER …).
const attrHeader = 1

var errShort = errors.New("reply without content")

// get sends a query about a device and gives the attributes of its answer to
// each, one call an attribute.
func (h *Handle) get(cmd uint8, dev string, flags uint32, each func(*netlink.AttributeDecoder)) error {
	msgs, err := h.execute(cmd, netlink.Request, func(ae *netlink.AttributeEncoder) error {
		header(ae, dev, flags)
		return nil
	})
	if err != nil {
		return err
	}
	if len(msgs) == 0 {
		return errShort
	}
	return decode(msgs[0].Data, each)
}

// set sends a change to a device. The answer that some commands give is left
// out: what changed is read back.
func (h *Handle) set(cmd uint8, dev string, fill func(*netlink.AttributeEncoder) error) error {
	_, err := h.execute(cmd, netlink.Request|netlink.Acknowledge, func(ae *netlink.AttributeEncoder) error {
		header(ae, dev, unix.ETHTOOL_FLAG_OMIT_REPLY)
		return fill(ae)
	})
	return err
}

func (h *Handle) execute(cmd uint8, flags netlink.HeaderFlags, fill func(*netlink.AttributeEncoder) error) ([]genetlink.Message, error) {
	ae := netlink.NewAttributeEncoder()
	if err := fill(ae); err != nil {
		return nil, err
	}
	data, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	msg := genetlink.Message{Header: genetlink.Header{Command: cmd, Version: unix.ETHTOOL_GENL_VERSION}, Data: data}
	return h.conn.Execute(msg, h.family.ID, flags)
}

func header(ae *netlink.AttributeEncoder, dev string, flags uint32) {
	ae.Nested(attrHeader, func(nae *netlink.AttributeEncoder) error {
		nae.String(unix.ETHTOOL_A_HEADER_DEV_NAME, dev)
		if flags != 0 {
			nae.Uint32(unix.ETHTOOL_A_HEADER_FLAGS, flags)
		}
		return nil
	})
}

func decode(data []byte, each func(*netlink.AttributeDecoder)) error {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	for ad.Next() {
		each(ad)
	}
	return ad.Err()
}

// nested walks the attributes inside the current one.
func nested(ad *netlink.AttributeDecoder, each func(*netlink.AttributeDecoder)) {
	ad.Nested(func(nad *netlink.AttributeDecoder) error {
		for nad.Next() {
			each(nad)
		}
		return nad.Err()
	})
}

// netlinkStrings reads a string set that is the same for all devices.
func (h *Handle) netlinkStrings(id uint32) ([]string, error) {
	msgs, err := h.execute(unix.ETHTOOL_MSG_STRSET_GET, netlink.Request, func(ae *netlink.AttributeEncoder) error {
		ae.Nested(attrHeader, func(*netlink.AttributeEncoder) error { return nil }) // required, though it names no device
		ae.Nested(unix.ETHTOOL_A_STRSET_STRINGSETS, func(sets *netlink.AttributeEncoder) error {
			sets.Nested(unix.ETHTOOL_A_STRINGSETS_STRINGSET, func(set *netlink.AttributeEncoder) error {
				set.Uint32(unix.ETHTOOL_A_STRINGSET_ID, id)
				return nil
			})
			return nil
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(msgs) == 0 {
		return nil, errShort
	}
	names := map[uint32]string{}
	err = decode(msgs[0].Data, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == unix.ETHTOOL_A_STRSET_STRINGSETS {
			nested(ad, func(set *netlink.AttributeDecoder) {
				nested(set, func(f *netlink.AttributeDecoder) { stringSet(f, names) })
			})
		}
	})
	if err != nil {
		return nil, err
	}
	return inOrder(names)
}

// stringSet collects the strings of one set from one of its attributes.
func stringSet(field *netlink.AttributeDecoder, names map[uint32]string) {
	if field.Type() != unix.ETHTOOL_A_STRINGSET_STRINGS {
		return
	}
	nested(field, func(str *netlink.AttributeDecoder) {
		var index uint32
		var value string
		nested(str, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case unix.ETHTOOL_A_STRING_INDEX:
				index = ad.Uint32()
			case unix.ETHTOOL_A_STRING_VALUE:
				value = ad.String()
			}
		})
		names[index] = value
	})
}

// inOrder turns index -> name into a slice. The kernel numbers strings from 0
// without gaps; a number beyond that is not believed.
func inOrder(names map[uint32]string) ([]string, error) {
	list := make([]string, len(names))
	for i, name := range names {
		if int64(i) >= int64(len(list)) {
			return nil, fmt.Errorf("string %d of %d", i, len(list))
		}
		list[i] = name
	}
	return list, nil
}
