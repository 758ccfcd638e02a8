package wirecheck

import "maps"

// A Report is what a Checker has seen so far.
type Report struct {
	Frames uint64          `json:"frames"`
	Counts map[Kind]uint64 `json:"counts,omitempty"` // those that are not 0
	First  map[Kind]First  `json:"first,omitempty"`  // of each of them that is a violation
	// Worst is the largest distance of [Order], in segments.
	Worst int `json:"worst,omitempty"`
}

// A First is the first frame of a kind.
type First struct {
	Number uint64 `json:"number"` // counted from 1
	Text   string `json:"text"`   // what is wrong with it
	Length int    `json:"length"`
	Data   []byte `json:"data"` // its first 256 bytes
}

// Report returns what was seen so far.
func (c *Checker) Report() Report {
	r := Report{Frames: c.number, Counts: map[Kind]uint64{}, First: map[Kind]First{}, Worst: c.worst}
	for k, n := range c.n {
		if n == 0 {
			continue
		}
		r.Counts[Kind(k)] = n
		if f := c.first[k]; f.number > 0 {
			r.First[Kind(k)] = First{f.number, f.text, f.length, f.data}
		}
	}
	return r
}

// Add returns the reports of two queues as one.
func (r Report) Add(o Report) Report {
	sum := Report{r.Frames + o.Frames, map[Kind]uint64{}, map[Kind]First{}, max(r.Worst, o.Worst)}
	maps.Copy(sum.Counts, r.Counts)
	for k, n := range o.Counts {
		sum.Counts[k] += n
	}
	maps.Copy(sum.First, o.First)
	maps.Copy(sum.First, r.First)
	return sum
}

// Wrong is the number of violations.
func (r Report) Wrong() (n uint64) {
	for k, v := range r.Counts {
		if k.Wrong() {
			n += v
		}
	}
	return n
}
