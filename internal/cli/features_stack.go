package cli

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"github.com/offlab/offlab/feature"
	"github.com/offlab/offlab/internal/sys/rtnl"
)

// A stackRow is a layer of the stack.
type stackRow struct {
	Device string   `json:"device"`
	Kind   string   `json:"kind"`
	How    string   `json:"how,omitempty"` // how the layer above leads here
	Below  []string `json:"below,omitempty"`
	Note   string   `json:"note,omitempty"` // what could not be followed
	Active []string `json:"active"`

	layer *feature.Layer
}

// A lossRow is a feature that is lost at a layer.
type lossRow struct {
	Feature string `json:"feature"`
	Device  string `json:"device"`
	Why     string `json:"why"`
}

// walker walks from a device to what is below it.
type walker struct {
	m    *machine
	done map[int]*feature.Layer
	rows []stackRow
}

// layer reads a device and all below it. A device that is reached twice is read
// once.
func (w *walker) layer(l rtnl.Link, how string) (*feature.Layer, error) {
	if got := w.done[l.Index]; got != nil {
		return got, nil
	}
	f, err := w.m.eth.Features(l.Name)
	if err != nil {
		return nil, err
	}
	kind := l.Kind
	if l.Name == "lo" && kind == "device" {
		kind = "lo"
	}
	layer := &feature.Layer{Name: l.Name, Kind: kind, State: f.State()}
	w.done[l.Index] = layer
	at := len(w.rows)
	w.rows = append(w.rows, stackRow{Device: l.Name, Kind: kind, How: how, Active: layer.State.Active.Names(), layer: layer})
	below, note := w.below(l)
	w.rows[at].Note = note
	for _, b := range below {
		next, err := w.layer(b.link, b.how)
		if err != nil {
			return nil, err
		}
		layer.Below = append(layer.Below, next)
		w.rows[at].Below = append(w.rows[at].Below, b.link.Name)
	}
	return layer, nil
}

// A step is the way to a device below.
type step struct {
	link rtnl.Link
	how  string
}

// below returns the devices below a link, or why they are not known.
func (w *walker) below(l rtnl.Link) (list []step, note string) {
	switch l.Kind {
	case "bond", "team", "bridge":
		for _, port := range w.m.links {
			if port.Master == l.Index {
				list = append(list, step{port, "port of " + l.Name})
			}
		}
		if len(list) == 0 {
			note = "has no ports"
		}
		return list, note
	case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap":
		return w.named(l.Parent, l.PeerNS, "below "+l.Name)
	}
	if t := l.Tunnel; t != nil {
		return w.tunnel(l, t)
	}
	return nil, ""
}

// named returns the device of an index.
func (w *walker) named(index int, elsewhere bool, how string) ([]step, string) {
	for _, l := range w.m.links {
		if l.Index == index && !elsewhere {
			return []step{{l, how}}, ""
		}
	}
	return nil, "the device below is in another network namespace"
}

// tunnel returns the device that carries a tunnel's packets.
func (w *walker) tunnel(l rtnl.Link, t *rtnl.Tunnel) ([]step, string) {
	switch {
	case t.Device != 0:
		return w.named(t.Device, false, "carries "+l.Name+", bound to it")
	case !t.Remote.IsValid():
		return nil, "each packet has its own way"
	}
	return w.routed(l, t.Remote)
}

func (w *walker) routed(l rtnl.Link, remote netip.Addr) ([]step, string) {
	r, err := w.m.rt.Route(remote)
	if err != nil {
		return nil, fmt.Sprintf("no way to %s: %v", remote, err)
	}
	link, err := w.m.link(r.Device)
	if err != nil {
		return nil, err.Error()
	}
	return []step{{link, fmt.Sprintf("carries %s, route to %s", l.Name, remote)}}, ""
}

func lossesOf(top *feature.Layer) []lossRow {
	var rows []lossRow
	for _, l := range top.Losses() {
		rows = append(rows, lossRow{l.Feature.String(), l.Layer.Name, l.Why})
	}
	return rows
}

// printStack writes the layers side by side: the features in which they differ,
// the lost ones marked in the layer that loses them.
func (v featureView) printStack(out io.Writer, top *feature.Layer) {
	fmt.Fprint(out, "\nstack, from the top\n")
	for _, r := range v.Stack {
		fmt.Fprintf(out, "  %s: %s", r.Device, r.Kind)
		for _, text := range []string{r.How, r.Note} {
			if text != "" {
				fmt.Fprintf(out, ", %s", text)
			}
		}
		fmt.Fprintln(out)
	}
	losses := top.Losses()
	if len(v.Stack) > 1 {
		v.printDifferences(out, losses)
	}
	if len(losses) == 0 {
		fmt.Fprint(out, "\nno feature is lost on the way\n")
		return
	}
	fmt.Fprint(out, "\nlost\n")
	for _, l := range losses {
		fmt.Fprintf(out, "  %v at %s: %s\n", l.Feature, l.Layer.Name, l.Why)
	}
}

func (v featureView) printDifferences(out io.Writer, losses []feature.Loss) {
	var union feature.Set
	common := feature.All
	for _, r := range v.Stack {
		union, common = union.Union(r.layer.State.Active), common.Intersect(r.layer.State.Active)
	}
	marked := map[*feature.Layer]feature.Set{}
	for _, l := range losses {
		marked[l.Layer] = marked[l.Layer].With(l.Feature)
		union = union.With(l.Feature)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "where they differ")
	for _, r := range v.Stack {
		fmt.Fprint(w, "\t"+r.Device)
	}
	fmt.Fprintln(w, "\t")
	for f := range union.Diff(common).All() {
		cells := []string{f.String()}
		for _, r := range v.Stack {
			cell := r.layer.State.Show(f)
			if marked[r.layer].Has(f) {
				cell += " <- lost"
			}
			cells = append(cells, cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	w.Flush() //nolint:errcheck // as for the other lines
}
