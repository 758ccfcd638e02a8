package bpf_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/offlab/offlab/internal/sys/bpf"
	"github.com/offlab/offlab/internal/testutil/netnstest"
)

// open returns a packet socket that sends on a device.
func open(t *testing.T, device string) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0x0300) // ETH_P_ALL
	if err != nil {
		t.Fatal(err)
	}
	i, err := net.InterfaceByName(device)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: i.Index}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// pair makes a veth pair in the namespace of the test.
func pair(t *testing.T) {
	t.Helper()
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0"}, PeerName: "v1"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"v0", "v1"} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
}

var probe = append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, make([]byte, 60)...) // EtherType for experiments (IEEE 802)

// TestKernelVLAN sends a frame through tagged devices in every combination of
// right and wrong tags, and lets the kernel say what travelled.
func TestKernelVLAN(t *testing.T) {
	ten, twenty, service := bpf.Tag{0x8100, 10}, bpf.Tag{0x8100, 20}, bpf.Tag{0x88a8, 5}
	for name, tt := range map[string]struct {
		out, in []bpf.Tag
		arrives bool
	}{
		"same-tag":     {[]bpf.Tag{ten}, []bpf.Tag{ten}, true},
		"other-id":     {[]bpf.Tag{ten}, []bpf.Tag{twenty}, false},
		"no-tag":       {nil, []bpf.Tag{ten}, false},
		"other-proto":  {[]bpf.Tag{{0x88a8, 10}}, []bpf.Tag{ten}, false},
		"qinq":         {[]bpf.Tag{service, ten}, []bpf.Tag{service, ten}, true},
		"qinq-inner":   {[]bpf.Tag{service, ten}, []bpf.Tag{service, twenty}, false},
		"qinq-against": {[]bpf.Tag{ten}, []bpf.Tag{service, ten}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ns := netnstest.New(t)
			err := ns.Do(func() error {
				pair(t)
				if tt.out != nil {
					v, err := bpf.AttachVLAN("v0", tt.out...)
					if err != nil {
						return err
					}
					defer v.Close()
				}
				v, err := bpf.AttachVLAN("v1", tt.in...)
				if err != nil {
					return err
				}
				defer v.Close()
				return sendAndCount(t, v, tt.arrives)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func sendAndCount(t *testing.T, v *bpf.VLAN, arrives bool) error {
	t.Helper()
	before, err := v.Counters()
	if err != nil {
		return err
	}
	out := open(t, "v0")
	defer unix.Close(out)
	const n = 20
	for range n {
		if _, err := unix.Write(out, probe); err != nil {
			return err
		}
	}
	// Delivery over a veth is a softirq of this CPU, done when the write is.
	after, err := v.Counters()
	if err != nil {
		return err
	}
	popped, dropped := after.Popped-before.Popped, after.Dropped-before.Dropped
	if arrives && popped < n {
		return fmt.Errorf("%d of %d frames were untagged, %d dropped; want all untagged", popped, n, dropped)
	}
	if !arrives && (dropped < n || popped > 0) {
		return fmt.Errorf("%d of %d frames were dropped, %d untagged; want all dropped", dropped, n, popped)
	}
	return nil
}

func TestKernelVLANErrors(t *testing.T) {
	ns := netnstest.New(t)
	if err := ns.Do(func() error {
		pair(t)
		for _, tags := range [][]bpf.Tag{nil, {{0x8100, 0}}, {{0x8100, 4095}}, {{0x8100, 1}, {0x8100, 2}, {0x8100, 3}}} {
			if _, err := bpf.AttachVLAN("v0", tags...); err == nil {
				return fmt.Errorf("tags %v were taken", tags)
			}
		}
		if _, err := bpf.AttachVLAN("no-such", bpf.Tag{0x8100, 1}); err == nil {
			return fmt.Errorf("an unknown device was taken")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
