package verdict

// An end is where counters are read: at the end that sends the data, or at the
// one that receives it.
type end int

const (
	sending end = iota
	receiving
)

// A finding is what a ratio says when it did not change.
type finding int

const (
	tellsNothing finding = iota
	doesNotAct
)

// A promise is what a knob must do to a ratio of counters when it is turned on,
// or to a larger value. Names of counters are those of the evidence without the
// role; {ip} is Ip or Ip6 and {ext} is IpExt or Ip6, after the family.
//
// To teach offlab another proof, add a ratio to a row or a row to the table; a
// probe has to put its counters into the evidence.
type promise struct {
	knobs  []string // short names and the kernel's
	family string   // of packets it is about; empty: both
	end    end      // whose counters
	atEnd  bool     // the knob acts at that end only
	scales bool     // a value: the ratio is bounded by it, so that it need not change
	ratios []ratio  // in the order in which they are asked
}

// A ratio is a sum of counters over another counter.
type ratio struct {
	over  []string
	label string // of over, if it is several
	under string
	unit  string // "segments" or "bytes"
	means string // what it counts, after the unit
	both  string // of arms that show the same: "both arms ..."
	// What it says if both arms show the same, which is more than one segment
	// (same) or one (flat), and the sentence for each.
	same, flat         finding
	sameText, flatText string
	// maskedBy is a feature of that end which produces the same ratio by itself:
	// while it is on, same tells nothing.
	maskedBy string
	shown    bool // for the reader only
}

// handed is how many segments travel in one packet that the stack hands to the
// device: 1 if the stack segments, more if the device has to.
func handed(same finding, sameText string) ratio {
	return ratio{
		over: []string{"Tcp.OutSegs"}, under: "link.tx_packets",
		unit: "segments", means: "per packet handed to the device",
		both: "hand %s segments a packet to the device",
		same: same, sameText: sameText,
		flatText: "the driver may count packets of the wire, so this source cannot tell",
	}
}

// built is how many segments TCP puts into one packet.
func built() ratio {
	return ratio{
		over: []string{"Tcp.OutSegs"}, under: "{ip}.OutRequests",
		unit: "segments", means: "per packet built",
		both: "build %s segments a packet",
	}
}

// inSegments are the segments that IP received: each counts as many as were
// merged into its packet (net/ipv4/ip_input.c and net/ipv6/ip6_input.c count
// gso_segs there).
var inSegments = []string{"{ext}.InNoECTPkts", "{ext}.InECT0Pkts", "{ext}.InECT1Pkts", "{ext}.InCEPkts"}

// received is how many segments there are in one packet that reaches IP.
func received(sameText string) ratio {
	return ratio{
		over: inSegments, label: "{ext}.In*Pkts", under: "{ip}.InReceives",
		unit: "segments", means: "per packet that reaches IP",
		both: "deliver %s segments a packet",
		same: doesNotAct, sameText: sameText,
		flat: doesNotAct, flatText: "nothing is aggregated in either arm",
	}
}

// handedUp is how many segments there are in one packet that the device hands
// up, if its driver counts those.
func handedUp() ratio {
	return ratio{
		over: inSegments, label: "{ext}.In*Pkts", under: "link.rx_packets",
		unit: "segments", means: "per packet that the device counts",
		both:     "show %s segments for each packet that the device counts",
		flatText: "the driver may count packets of the wire, so this source cannot tell",
	}
}

const (
	aggregatedBefore = "the packets were already aggregated when they reached the device"
	aggregatedAnyway = "they are aggregated whatever the flag says"
	segmentsLater    = "packets reach the device unsegmented whatever the flag says"
)

// promises is the table. Since Linux 4.17 TCP builds super-packets whatever the
// device can do (net/core/sock.c, sk_setup_caps sets NETIF_F_GSO for TCP), and
// whoever is first to lack the feature segments them; so the size of what TCP
// builds tells nothing about tso, and gso tells nothing at all.
var promises = []promise{
	{
		knobs: []string{"tso", "tcp-segmentation-offload"},
		end:   sending, atEnd: true,
		ratios: []ratio{handed(doesNotAct, segmentsLater), shownOnly(built())},
	},
	{
		knobs: []string{"tx-tcp-segmentation"}, family: "ipv4",
		end: sending, atEnd: true,
		ratios: []ratio{handed(doesNotAct, segmentsLater), shownOnly(built())},
	},
	{
		knobs: []string{"tx-tcp6-segmentation"}, family: "ipv6",
		end: sending, atEnd: true,
		ratios: []ratio{handed(doesNotAct, segmentsLater), shownOnly(built())},
	},
	{
		// Without sg there is no tso: netdev_fix_features in net/core/dev.c.
		knobs: []string{"sg", "scatter-gather", "tx-scatter-gather"},
		end:   sending, atEnd: true,
		ratios: []ratio{handed(tellsNothing, "no counter shows scatter/gather by itself")},
	},
	{
		knobs: []string{"gso", "generic-segmentation-offload", "tx-generic-segmentation"},
		end:   sending, atEnd: true,
		ratios: []ratio{handed(doesNotAct, segmentsLater), gsoBuilt()},
	},
	{
		knobs: []string{"gro", "generic-receive-offload", "rx-gro"},
		end:   receiving, atEnd: true,
		ratios: []ratio{received(aggregatedBefore), shownOnly(ratio{
			over: []string{"link.rx_packets"}, under: "{ip}.InReceives",
			unit: "device packets", means: "per IP packet",
			both: "see %s device packets per IP packet",
		})},
	},
	{
		knobs: []string{"lro", "large-receive-offload", "rx-lro"},
		end:   receiving, atEnd: true,
		ratios: []ratio{masked(received(aggregatedAnyway), "rx-gro"), handedUp()},
	},
	{
		knobs: []string{"gro-hw", "rx-gro-hw"},
		end:   receiving, atEnd: true,
		ratios: []ratio{masked(received(aggregatedAnyway), "rx-gro"), handedUp()},
	},
	{
		knobs: []string{"mtu"},
		end:   sending, scales: true,
		ratios: []ratio{{
			over: []string{"link.tx_bytes"}, under: "Tcp.OutSegs", unit: "bytes", means: "per segment sent",
			both: "send %s bytes a segment",
			same: doesNotAct, sameText: "segments have the same size",
		}},
	},
	{
		knobs: []string{"gso_max_size", "gso_ipv4_max_size"},
		end:   sending, atEnd: true, scales: true,
		ratios: []ratio{{
			over: []string{"link.tx_bytes"}, under: "{ip}.OutRequests", unit: "bytes", means: "per packet that TCP builds",
			both: "build packets of %s bytes",
			same: doesNotAct, sameText: "packets do not reach the smaller limit",
		}},
	},
	{
		knobs: []string{"gro_max_size", "gro_ipv4_max_size"},
		end:   receiving, atEnd: true, scales: true,
		ratios: []ratio{{
			over: []string{"link.rx_bytes"}, under: "{ip}.InReceives", unit: "bytes", means: "per packet that reaches IP",
			both: "deliver packets of %s bytes",
			same: doesNotAct, sameText: "packets do not reach the smaller limit",
		}},
	},
}

func shownOnly(r ratio) ratio {
	r.shown = true
	return r
}

func masked(r ratio, by string) ratio {
	r.maskedBy = by
	return r
}

func gsoBuilt() ratio {
	r := built()
	r.same, r.sameText = doesNotAct, "TCP builds super-packets whatever the flag says (since Linux 4.17)"
	return r
}

// promisesOf returns the promises of a knob; of knobs joined by +, those of
// each.
func promisesOf(knob string) []promise {
	var out []promise
	for _, part := range partsOf(knob) {
		for _, p := range promises {
			if isOneOf(part, p.knobs) {
				out = append(out, p)
			}
		}
	}
	return out
}
