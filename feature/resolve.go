package feature

import "strings"

// A Change is what one rule did to a set.
type Change struct {
	On, Off Set
	Field   Field  // the set it was done to
	Why     string // in words, such as "needs tx-scatter-gather"
	Source  string // file and function of the kernel
}

// String writes the change in words, with its source.
func (c Change) String() string {
	var b strings.Builder
	if c.Field != Features {
		b.WriteString(c.Field.String() + ": ")
	}
	if !c.On.IsZero() {
		b.WriteString("+" + strings.Join(c.On.Names(), " +") + " ")
	}
	if !c.Off.IsZero() {
		b.WriteString("-" + strings.Join(c.Off.Names(), " -") + " ")
	}
	return b.String() + "(" + c.Why + "; " + c.Source + ")"
}

// A Rule is a dependency that the kernel enforces on every device, whatever
// the driver offers: each of Of needs one of Needs, all of it, and bears none
// of Without. If one of Of is there and the rule is broken, Drops go.
type Rule struct {
	Of      Set
	Needs   []Set
	Without Set
	Drops   Set
	Partial bool   // Of and Drops are the device's own gso_partial_features
	Since   string // the kernel that brought the rule, where that is news
	Why     string // the reason behind it
}

// Source is the file and function that the rules are from.
const Source = "net/core/dev.c, netdev_fix_features"

// Either of these is transmit checksumming for IPv4 and IPv6.
var ipOrHWCSum = []Set{Of(HWCSum), IPCSums}

// rules are those of netdev_fix_features, Linux 6.18, in its order, which
// matters: a rule sees what the earlier ones left. What one might expect and is
// not there: scatter/gather itself needs no checksumming, AccECN segmentation
// needs neither, and hardware GRO needs no software GRO.
var rules = []Rule{
	{Of: IPCSums, Without: Of(HWCSum), Drops: IPCSums, Why: "checksumming of every protocol includes that of one"},
	{Of: AllTSO, Needs: []Set{Of(SG)}, Drops: AllTSO, Why: "a super-packet lies in pieces"},
	{Of: Of(TSO), Needs: []Set{Of(HWCSum), Of(IPCSum)}, Drops: Of(TSO, TSOECN), Why: "each segment has its own checksum"},
	{Of: Of(TSO6), Needs: []Set{Of(HWCSum), Of(IPv6CSum)}, Drops: Of(TSO6), Why: "each segment has its own checksum"},
	{Of: Of(TSOMangleID), Needs: []Set{Of(TSO)}, Drops: Of(TSOMangleID), Why: "it is a kind of IPv4 segmentation"},
	{Of: Of(TSOECN), Needs: []Set{Of(TSO), Of(TSO6), Of(TSOMangleID)}, Drops: Of(TSOECN), Why: "it is a kind of TCP segmentation"},
	{Of: Of(GSO), Needs: []Set{Of(SG)}, Drops: Of(GSO), Why: "software segments lie in pieces"},
	{Partial: true, Needs: []Set{Of(GSOPartial)}, Why: "the device does these with the help of partial segmentation only"},
	{Of: Of(GROHW), Needs: []Set{Of(RXCSum)}, Drops: Of(GROHW), Why: "what is merged must have been verified"},
	{Of: Of(LRO), Without: Of(RXFCS), Drops: Of(LRO), Why: "a merged packet has no one frame check sequence"},
	{Of: Of(GROHW), Without: Of(RXFCS), Drops: Of(GROHW), Why: "a merged packet has no one frame check sequence"},
	{Of: Of(LRO), Without: Of(GROHW), Drops: Of(LRO), Since: "5.16", Why: "one of the two merges, and GRO can be undone"},
	{Of: Of(HWTLSTX), Needs: ipOrHWCSum, Drops: Of(HWTLSTX), Why: "the checksum is over what the device encrypts"},
	{Of: Of(HWTLSRX), Needs: []Set{Of(RXCSum)}, Drops: Of(HWTLSRX), Why: "what is decrypted must have been verified"},
	{Of: Of(GSOUDPL4), Needs: ipOrHWCSum, Drops: Of(GSOUDPL4), Since: "6.11", Why: "each datagram has its own checksum"},
}

// Rules returns the dependencies in the order in which the kernel applies them.
func Rules() []Rule { return append([]Rule(nil), rules...) }

// Broken reports whether the rule drops something from a set.
func (r Rule) Broken(s Set) bool {
	if !s.Meets(r.Of) {
		return false
	}
	met := len(r.Needs) == 0
	for _, need := range r.Needs {
		met = met || s.Contains(need)
	}
	return !met || s.Meets(r.Without)
}

// Words says what the rule asks for: "needs tx-scatter-gather", "excluded by
// rx-fcs".
func (r Rule) Words() string {
	if len(r.Needs) == 0 {
		return "excluded by " + join(r.Without, " and ")
	}
	alternatives := make([]string, len(r.Needs))
	for i, need := range r.Needs {
		alternatives[i] = join(need, " and ")
	}
	return "needs " + strings.Join(alternatives, ", or ")
}

func join(s Set, sep string) string { return strings.Join(s.Names(), sep) }

// Resolve returns what the kernel makes of a wish on a device whose driver
// agrees to everything, and why. Resolving the result again changes nothing.
func Resolve(want Set) (got Set, why []Change) { return resolve(want, Set{}) }

// resolve is Resolve for a device that segments some protocols partially.
func resolve(want, partial Set) (got Set, why []Change) {
	got = want
	for _, r := range rules {
		if r.Partial {
			r.Of, r.Drops = partial, partial
		}
		if !r.Broken(got) {
			continue
		}
		off := got.Intersect(r.Drops)
		got = got.Diff(off)
		why = append(why, Change{Off: off, Why: r.Words() + ": " + r.Why, Source: Source})
	}
	return got, why
}
