//go:build linux

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// A Tag is one VLAN tag.
type Tag struct {
	Proto uint16 // EtherType: 0x8100 (802.1Q) or 0x88a8 (802.1ad)
	ID    uint16 // 1 to 4094
}

// Offsets of struct __sk_buff (include/uapi/linux/bpf.h), the same since 4.x.
const (
	skbVLANPresent = 20
	skbVLANTCI     = 24
	skbVLANProto   = 28
)

// Verdicts of a tcx program (include/uapi/linux/bpf.h, Linux 6.6).
const (
	tcxNext = -1
	tcxDrop = 2
)

const vidMask = 0x0fff

// Keys of the counter map of a [VLAN].
const (
	keyPushed = iota
	keyPopped
	keyDropped
	keys
)

// VLAN is a pair of programs that tag what a device sends and untag what it
// receives, as an 802.1Q device on top of it would: what arrives without the
// right tags is dropped.
type VLAN struct {
	out, in  *ebpf.Program
	counters *ebpf.Map
	links    []link.Link
}

// VLANCounters is what the programs did.
type VLANCounters struct {
	Pushed, Popped, Dropped uint64 // packets; a super-packet is one
}

// AttachVLAN tags a device of this network namespace. Tags are the outermost
// first. It takes the place of an 802.1Q device where the kernel has none: the
// stack and the driver see tagged packets, so vlan_features apply.
func AttachVLAN(device string, tags ...Tag) (*VLAN, error) {
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	l, err := netlink.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("bpf: %s: %w", device, err)
	}
	v := &VLAN{}
	if err := v.attach(l.Attrs().Index, tags); err != nil {
		return nil, errors.Join(fmt.Errorf("bpf: tag %s: %w", device, err), v.Close())
	}
	return v, nil
}

func checkTags(tags []Tag) error {
	if len(tags) == 0 || len(tags) > 2 {
		return fmt.Errorf("bpf: %d VLAN tags: one or two can be pushed", len(tags))
	}
	for _, t := range tags {
		if t.ID == 0 || t.ID > 4094 {
			return fmt.Errorf("bpf: VLAN %d: want 1 to 4094", t.ID)
		}
	}
	return nil
}

func (v *VLAN) attach(index int, tags []Tag) (err error) {
	if v.counters, err = ebpf.NewMap(&ebpf.MapSpec{Name: "offlab_vlan", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: keys}); err != nil {
		return err
	}
	if v.out, err = load("offlab_vlan_out", v.push(tags)); err != nil {
		return err
	}
	if v.in, err = load("offlab_vlan_in", v.pop(tags)); err != nil {
		return err
	}
	for _, o := range []link.TCXOptions{
		{Interface: index, Program: v.out, Attach: ebpf.AttachTCXEgress},
		{Interface: index, Program: v.in, Attach: ebpf.AttachTCXIngress},
	} {
		l, err := link.AttachTCX(o)
		if err != nil {
			return err
		}
		v.links = append(v.links, l)
	}
	return nil
}

func load(name string, code asm.Instructions) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.SchedCLS, AttachType: ebpf.AttachNone,
		Instructions: code, License: "Dual MIT/GPL",
	})
}

// push tags packets that carry no tag yet.
func (v *VLAN) push(tags []Tag) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, skbVLANPresent, asm.Word),
		asm.JNE.Imm(asm.R2, 0, "next"),
	}
	for _, t := range slices.Backward(tags) {
		code = append(code,
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Imm(asm.R2, int32(swap(t.Proto))),
			asm.Mov.Imm(asm.R3, int32(t.ID)),
			asm.FnSkbVlanPush.Call(),
			asm.JNE.Imm(asm.R0, 0, "drop"),
		)
	}
	code = append(code, v.count(keyPushed)...)
	code = append(code, asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"), asm.Return())
	return append(code, v.dropped()...)
}

// pop takes the tags off and drops what has others or none.
func (v *VLAN) pop(tags []Tag) asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	for _, t := range tags {
		code = append(code,
			asm.LoadMem(asm.R2, asm.R6, skbVLANPresent, asm.Word),
			asm.JEq.Imm(asm.R2, 0, "drop"),
			asm.LoadMem(asm.R2, asm.R6, skbVLANProto, asm.Word),
			asm.JNE.Imm(asm.R2, int32(swap(t.Proto)), "drop"),
			asm.LoadMem(asm.R2, asm.R6, skbVLANTCI, asm.Word),
			asm.And.Imm(asm.R2, vidMask),
			asm.JNE.Imm(asm.R2, int32(t.ID), "drop"),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.FnSkbVlanPop.Call(),
			asm.JNE.Imm(asm.R0, 0, "drop"),
		)
	}
	code = append(code, v.count(keyPopped)...)
	code = append(code, asm.Mov.Imm(asm.R0, tcxNext), asm.Return())
	return append(code, v.dropped()...)
}

// dropped ends a program at the label "drop".
func (v *VLAN) dropped() asm.Instructions {
	code := v.count(keyDropped)
	code[0] = code[0].WithSymbol("drop")
	return append(code, asm.Mov.Imm(asm.R0, tcxDrop), asm.Return())
}

// count adds one to a counter of this CPU. It leaves R6 alone.
func (v *VLAN) count(key int32) asm.Instructions {
	label := fmt.Sprintf("counted%d", key)
	return asm.Instructions{
		asm.StoreImm(asm.R10, -4, int64(key), asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, v.counters.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, label),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(label),
	}
}

// swap puts an EtherType into network order, which is what the helpers take and
// what struct __sk_buff holds.
func swap(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// Counters returns what the programs did so far.
func (v *VLAN) Counters() (VLANCounters, error) {
	var sums [keys]uint64
	for k := range uint32(keys) {
		var per []uint64
		if err := v.counters.Lookup(k, &per); err != nil {
			return VLANCounters{}, fmt.Errorf("bpf: read counters: %w", err)
		}
		for _, n := range per {
			sums[k] += n
		}
	}
	return VLANCounters{sums[keyPushed], sums[keyPopped], sums[keyDropped]}, nil
}

// Close takes the programs off the device.
func (v *VLAN) Close() error {
	var errs []error
	for _, l := range v.links {
		errs = append(errs, l.Close())
	}
	v.links = nil
	for _, p := range []*ebpf.Program{v.out, v.in} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if v.counters != nil {
		errs = append(errs, v.counters.Close())
	}
	return errors.Join(errs...)
}
