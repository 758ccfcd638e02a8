package feature

// A Field is one of the sets of struct net_device.
type Field uint8

// The sets of a device that a driver fills in, and the two that the core does.
const (
	Features    Field = iota // features: what is on
	HWFeatures               // hw_features: what a user may change
	VLANSet                  // vlan_features: what VLAN devices on top may use
	HWEncSet                 // hw_enc_features: what works on packets inside a tunnel
	MPLSSet                  // mpls_features: what works behind MPLS labels
	PartialSet               // gso_partial_features: what needs tx-gso-partial
	MangleIDSet              // mangleid_features: what may change the IPv4 ID
	Wanted                   // wanted_features: what was asked for
)

var fieldNames = [...]string{"features", "hw_features", "vlan_features", "hw_enc_features", "mpls_features", "gso_partial_features", "mangleid_features", "wanted_features"}

// String returns the C name of the field.
func (f Field) String() string { return fieldNames[f] }

// FieldByName returns the field of a C name.
func FieldByName(name string) (Field, bool) {
	for i, n := range fieldNames {
		if n == name {
			return Field(i), true
		}
	}
	return 0, false
}

// Fields returns the fields in the order of struct net_device's importance.
func Fields() []Field {
	list := make([]Field, len(fieldNames))
	for i := range list {
		list[i] = Field(i)
	}
	return list
}

// A Device is the feature sets of a network device.
type Device struct {
	Kind string // as ip link prints it; "" for a driver without rules of its own
	Sets [len(fieldNames)]Set

	// Accepts limits what a driver accepts of its own features: for a TAP, what
	// the process behind it takes (TUNSETOFFLOAD).
	Accepts Set
	// TunnelPorts says that the driver has a udp_tunnel_nic_info.
	TunnelPorts bool
	// Loopback says that the device is lo.
	Loopback bool
}

// Get returns one of the sets.
func (d Device) Get(f Field) Set { return d.Sets[f] }

// State returns what user space sees of the device: features without a name are
// not shown.
func (d Device) State() State {
	seen := func(f Field) Set { return d.Sets[f].Without(GSOUDP) }
	return State{HW: seen(HWFeatures), Wanted: seen(Wanted), Active: seen(Features), NoChange: NeverChange}
}

// An addition is what registration adds to one set of a device.
type addition struct {
	to   Field
	adds Set
	when func(*Device) bool // nil: always
	why  string
}

func hasTSO(f Field) func(*Device) bool {
	return func(d *Device) bool { return d.Sets[f].Has(TSO) }
}

func hasPorts(d *Device) bool    { return d.TunnelPorts }
func notLoopback(d *Device) bool { return !d.Loopback }

const registerSource = "net/core/dev.c, register_netdevice"

// before and after are the additions of register_netdevice, Linux 6.18, before
// and after it takes wanted_features from the other two.
var before = []addition{
	{HWFeatures, SoftFeatures.Union(SoftFeaturesOff), nil, "soft features can be changed on every device"},
	{Features, SoftFeatures, nil, "soft features start on"},
	{Features, Of(RXUDPTunnelPort), hasPorts, "the driver has a udp_tunnel_nic_info"},
	{HWFeatures, Of(RXUDPTunnelPort), hasPorts, "the driver has a udp_tunnel_nic_info"},
}

var after = []addition{
	{HWFeatures, Of(NoCacheCopy), notLoopback, "needs nothing of the hardware"},
	{HWFeatures, Of(TSOMangleID), hasTSO(HWFeatures), "whoever can segment IPv4 can leave the ID alone"},
	{VLANSet, Of(TSOMangleID), hasTSO(VLANSet), "whoever can segment IPv4 can leave the ID alone"},
	{MPLSSet, Of(TSOMangleID), hasTSO(MPLSSet), "whoever can segment IPv4 can leave the ID alone"},
	{HWEncSet, Of(TSOMangleID), hasTSO(HWEncSet), "whoever can segment IPv4 can leave the ID alone"},
	{MangleIDSet, Of(TSOMangleID), nil, "by definition"},
	{VLANSet, Of(HighDMA), nil, "VLAN devices inherit it"},
	{HWEncSet, Of(SG, GSOPartial), nil, "tunnels inherit it"},
	{MPLSSet, Of(SG), nil, "MPLS inherits it"},
}

// Register does to the sets that a driver filled in what register_netdevice
// does, and says what changed. The device has nothing on top of it and, for the
// kinds that depend on devices below, nothing below: [Stack.Add] has both.
func (d Device) Register() (Device, []Change) {
	var why []Change
	register(&d, nil, &why)
	return d, why
}

func register(d *Device, below []*Device, why *[]Change) {
	add(d, before, why)
	d.Sets[Wanted] = d.Sets[Features].Intersect(d.Sets[HWFeatures])
	add(d, after, why)
	got, changes := fixed(d, below)
	d.Sets[Features] = got
	*why = append(*why, changes...)
}

func add(d *Device, list []addition, why *[]Change) {
	for _, a := range list {
		on := a.adds.Diff(d.Sets[a.to])
		if on.IsZero() || a.when != nil && !a.when(d) {
			continue
		}
		d.Sets[a.to] = d.Sets[a.to].Union(on)
		*why = append(*why, Change{Field: a.to, On: on, Why: a.why, Source: registerSource})
	}
}

// fixed returns what __netdev_update_features makes active, the devices above
// left out: what is wanted and what cannot be changed, as the driver and then
// the core allow.
func fixed(d *Device, below []*Device) (Set, []Change) {
	want := d.Sets[Features].Diff(d.Sets[HWFeatures]).Union(d.Sets[Wanted])
	var why []Change
	if k, ok := FindKind(d.Kind); ok && k.fix != nil {
		got := k.fix(d, want, below)
		if got != want {
			why = append(why, Change{On: got.Diff(want), Off: want.Diff(got), Why: k.Why, Source: k.FixSource})
		}
		want = got
	}
	got, more := resolve(want, d.Sets[PartialSet])
	return got, append(why, more...)
}

// Request does what ethtool -K does: of the features in mask, those in value
// are to be on, the others off. Nothing happens where nothing new is wanted
// (ethnl_set_features, net/ethtool/features.c).
func (d Device) Request(value, mask Set) (Device, []Change) {
	if !ask(&d, value, mask) {
		return d, nil
	}
	got, why := fixed(&d, nil)
	d.Sets[Features] = got
	return d, why
}

// ask sets the wanted features and reports whether that is news.
func ask(d *Device, value, mask Set) bool {
	old := d.Sets[Wanted]
	want := old.Diff(mask).Union(value.Intersect(mask))
	if want == old {
		return false
	}
	d.Sets[Wanted] = old.Diff(d.Sets[HWFeatures]).Union(want.Intersect(d.Sets[HWFeatures]))
	return true
}
