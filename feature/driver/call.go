package driver

import "github.com/offlab/offlab/feature"

// evalCall evaluates a call: of the kernel's own operations on sets, of a
// function of the file if it matters, else not.
func (r *run) evalCall(e *expr) Value {
	name := ""
	if e.args[0].op == "id" {
		name = e.args[0].text
	}
	args := e.args[1:]
	if v, ok := r.builtin(name, args); ok {
		return v
	}
	values, paths := make([]Value, len(args)), make([]string, len(args))
	loose := r.loose
	for i, a := range args {
		values[i] = r.eval(a)
		if a.op != "num" {
			paths[i] = r.path(a)
		}
	}
	r.loose = loose
	f := r.funcs[name]
	if f != nil && (r.touches[name] || returnsSet(f)) && r.frame.nesting < 12 && !r.active(f) {
		was := r.cur
		v := r.call(f, paths, values)
		r.cur = was
		if v.open() {
			r.loose = append(loose, name+"()")
		} else {
			r.loose = loose
		}
		return v
	}
	r.loose = append(loose, name+"()")
	return unknown
}

// active reports whether a function is being executed already.
func (r *run) active(f *function) bool {
	for fr := r.frame; fr != nil; fr = fr.up {
		if fr.fn == f {
			return true
		}
	}
	return false
}

// returnsSet reports whether a function names features: its value may be one.
func returnsSet(f *function) bool {
	for _, t := range f.tokens {
		if _, _, ok := constant(t.text, false); t.kind == 'i' && ok {
			return true
		}
	}
	return false
}

// builtin are the kernel's macros and functions on sets.
func (r *run) builtin(name string, args []*expr) (Value, bool) {
	switch name {
	case "BIT", "BIT_ULL", "__NETIF_F_BIT", "NETIF_F_BIT":
		if len(args) == 1 {
			if s, ok := bit(args[0].text); ok {
				return known(s), true
			}
		}
	case "__NETIF_F":
		if len(args) == 1 {
			if s, ok := feature.Lookup(prefix + args[0].text); ok {
				return known(s), true
			}
		}
	case "likely", "unlikely", "READ_ONCE":
		if len(args) == 1 {
			return r.eval(args[0]), true
		}
	case "netdev_intersect_features", "netdev_add_tso_features":
		if len(args) == 2 {
			op := map[string]func(a, b feature.Set) feature.Set{"netdev_intersect_features": feature.IntersectFeatures, "netdev_add_tso_features": feature.AddTSO}[name]
			return onKnown(r.eval(args[0]), r.eval(args[1]), op), true
		}
	case "netdev_increment_features":
		if len(args) == 3 {
			a, b, c := r.eval(args[0]), r.eval(args[1]), r.eval(args[2])
			if a.Known() && b.Known() && c.Known() {
				return known(feature.Increment(a.On, b.On, c.On)), true
			}
			return unknown, true
		}
	}
	return Value{}, false
}

func onKnown(a, b Value, op func(a, b feature.Set) feature.Set) Value {
	if !a.Known() || !b.Known() {
		return unknown
	}
	return known(op(a.On, b.On))
}
