// Package feature is the algebra of Linux network device features: what a
// driver's flags result in once the kernel has registered the device, what a
// request by ethtool -K results in, which feature drags which others along, and
// how VLAN, bond, team, bridge, macvlan and tunnel devices inherit.
//
// Everything is a pure function of sets. [Set] is a value that can be compared
// and used as a map key. [Resolve] applies the dependencies that the kernel
// enforces on every device and says why each feature went. [Device] holds the
// sets of one device, as struct net_device does; [Device.Register] does to them
// what register_netdevice does. [Stack] holds devices on top of each other and
// carries a request through them.
//
// # Source
//
// Names, masks and rules are those of Linux 6.18. They were read in 6.12.117,
// the nearest source at hand, and compared with the compiled code of 6.18.44
// (2026-11), which adds AccECN segmentation and tunnels over TAP. The rest of a
// driver is by the older source where no test can make the device: VLAN, bond,
// team, ipvlan, tunnels other than VXLAN. The tests compare the
// names and, for the devices that the running kernel can make, the results with
// that kernel. Each rule names its function in the kernel.
//
// # Three surprises
//
// GRO and GSO are soft features: the core adds them at registration, whatever
// the driver said, so a driver statement cannot turn them off.
//
// A feature that is wanted and not active shows as "off [requested on]": it
// comes back by itself when what it needs comes back. To restore a device, put
// back what was wanted.
//
// What a VLAN or tunnel device may use of the device below is in sets of their
// own (vlan_features, hw_enc_features) that user space cannot read.
package feature
