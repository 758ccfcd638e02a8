package host

import (
	"context"
	"net/netip"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/knob"
	"github.com/offlab/offlab/internal/load"
	"github.com/offlab/offlab/internal/probe"
)

// A Client asks a host.
type Client struct {
	*agent.Client
	Name string // for messages: "here", "ssh://b"
}

// ask calls a method whose result is an R.
func ask[R any](ctx context.Context, c *Client, method string, params any) (R, error) {
	var r R
	err := c.Call(ctx, method, params, &r)
	return r, err
}

// nothing is the empty parameter or result.
type nothing struct{}

// Info describes the host.
func (c *Client) Info(ctx context.Context) (Info, error) {
	return ask[Info](ctx, c, "host.info", nothing{})
}

// Pin keeps the agent on one CPU.
func (c *Client) Pin(ctx context.Context, cpu int) error {
	return c.Call(ctx, "host.pin", struct {
		CPU int `json:"cpu"`
	}{cpu}, nil)
}

// Devices returns the names of the host's devices.
func (c *Client) Devices(ctx context.Context) ([]string, error) {
	return ask[[]string](ctx, c, "net.devices", nothing{})
}

// Device describes a device.
func (c *Client) Device(ctx context.Context, name string) (Device, error) {
	return ask[Device](ctx, c, "net.device", named{name})
}

// AddVeth makes a veth pair.
func (c *Client) AddVeth(ctx context.Context, v Veth) error {
	return c.Call(ctx, "net.veth", v, nil)
}

// Setup configures a device of a lab. It is not undone: the device goes with
// its namespace.
func (c *Client) Setup(ctx context.Context, s Setup) (SetupResult, error) {
	return ask[SetupResult](ctx, c, "net.setup", s)
}

// Route returns the way to an address.
func (c *Client) Route(ctx context.Context, to netip.Addr) (Route, error) {
	return ask[Route](ctx, c, "net.route", struct {
		To netip.Addr `json:"to"`
	}{to})
}

// Claim takes a device for this controller alone. From then on everything that
// changes on it is put back when the agent ends.
func (c *Client) Claim(ctx context.Context, device string) (Claimed, error) {
	return ask[Claimed](ctx, c, "knob.claim", named{device})
}

// Adopt makes factors known, saves what they change, and returns the value that
// each has now.
func (c *Client) Adopt(ctx context.Context, fs []knob.Factor) ([]string, error) {
	return ask[[]string](ctx, c, "knob.adopt", factors{fs})
}

// Apply brings the device to its original state but for the settings.
func (c *Client) Apply(ctx context.Context, s []knob.Setting) (knob.Report, error) {
	return ask[knob.Report](ctx, c, "knob.apply", struct {
		Settings []knob.Setting `json:"settings"`
	}{s})
}

// Restore puts everything back and gives the device up.
func (c *Client) Restore(ctx context.Context) error {
	return c.Call(ctx, "knob.restore", nothing{}, nil)
}

// Watch chooses the device whose counters are read.
func (c *Client) Watch(ctx context.Context, device string) error {
	return c.Call(ctx, "probe.watch", named{device}, nil)
}

// Probe reads the host's counters.
func (c *Client) Probe(ctx context.Context) (probe.Snapshot, error) {
	return ask[probe.Snapshot](ctx, c, "probe.take", nothing{})
}

// Listen starts the receiving end of a load.
func (c *Client) Listen(ctx context.Context, s load.Spec, addr netip.Addr) (netip.AddrPort, error) {
	return ask[netip.AddrPort](ctx, c, "load.listen", listen{s, addr})
}

// Dial starts the sending end of a load. It returns when all streams stand.
func (c *Client) Dial(ctx context.Context, s load.Spec, addr netip.AddrPort) error {
	return c.Call(ctx, "load.dial", dial{s, addr}, nil)
}

// Moment reads what the load and the host have counted.
func (c *Client) Moment(ctx context.Context) (Moment, error) {
	return ask[Moment](ctx, c, "load.moment", nothing{})
}

// Stop ends the load of this host.
func (c *Client) Stop(ctx context.Context) (End, error) {
	return ask[End](ctx, c, "load.stop", nothing{})
}
