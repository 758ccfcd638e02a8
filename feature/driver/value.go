package driver

import "github.com/offlab/offlab/feature"

// A Value is what is known of a set: the features that are on, and those that
// may be on or off. All others are off.
type Value struct {
	On    feature.Set
	Maybe feature.Set
}

var (
	every   = feature.Set{^uint64(0), ^uint64(0)}
	unknown = Value{Maybe: every}
)

func known(s feature.Set) Value { return Value{On: s} }

// Can is what is on or may be.
func (v Value) Can() feature.Set { return v.On.Union(v.Maybe) }

// Known reports whether nothing is open.
func (v Value) Known() bool { return v.Maybe.IsZero() }

// open reports whether so much is maybe that nothing is known, rather than that
// a few features depend on conditions.
func (v Value) open() bool { return v.Maybe.Len() > 40 }

func (v Value) or(w Value) Value { return between(v.On.Union(w.On), v.Can().Union(w.Can())) }
func (v Value) and(w Value) Value {
	return between(v.On.Intersect(w.On), v.Can().Intersect(w.Can()))
}
func (v Value) not() Value { return between(every.Diff(v.Can()), every.Diff(v.On)) }
func (v Value) xor(w Value) Value {
	return v.and(w.not()).or(w.and(v.not()))
}

// join is what is known where it may be v or w.
func (v Value) join(w Value) Value { return between(v.On.Intersect(w.On), v.Can().Union(w.Can())) }

// between is the value whose features are at least low and at most high.
func between(low, high feature.Set) Value { return Value{low, high.Diff(low)} }

// truth is whether a condition holds: yes, no, or cannot tell.
type truth int8

const (
	no truth = iota - 1
	cannotTell
	yes
)

func (v Value) truth() truth {
	switch {
	case !v.On.IsZero():
		return yes
	case v.Maybe.IsZero():
		return no
	}
	return cannotTell
}
