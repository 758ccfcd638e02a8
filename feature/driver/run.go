package driver

import (
	"maps"
	"slices"
	"strings"

	"github.com/offlab/offlab/feature"
)

// memory is what is known of variables and fields, by path.
type memory map[string]Value

// maxFuel bounds the statements executed for one text: a file of 30,000 lines
// needs a tenth of it.
const maxFuel = 200000

// run executes one function and what it calls.
type run struct {
	src     *source
	funcs   map[string]*function
	touches map[string]bool
	role    string
	short   bool // names may be short, and fields without a device
	fresh   bool
	fuel    int
	quiet   int // no steps or notes: the text is executed once more
	err     error

	mem   memory
	frame *frame
	conds []string
	when  string // the preprocessor's condition that we are in
	macro int    // depth of macros

	steps []Step
	notes []Note
	lines map[Note]bool
	links map[string]string // members that are a device known by another path
	loose []string          // names that the expression at hand left open
	named feature.Set
	cur   []token
}

// frame is one call.
type frame struct {
	prefix  string // of its variables in the memory
	fn      *function
	up      *frame
	alias   map[string]string // variables that are a path
	types   map[string]string
	gotos   map[string][]memory
	breaks  [][]memory
	final   memory // at the first return of the function's own block
	level   int
	value   Value
	valued  bool
	nesting int
}

func newRun(src *source, funcs map[string]*function) *run {
	return &run{
		src: src, funcs: funcs, fuel: maxFuel, mem: memory{}, lines: map[Note]bool{}, links: map[string]string{},
		frame: &frame{alias: map[string]string{}, types: map[string]string{}, gotos: map[string][]memory{}},
	}
}

func (r *run) note(line int, text string) {
	n := Note{line, text}
	if r.quiet > 0 || r.lines[n] {
		return
	}
	r.lines[n] = true
	r.notes = append(r.notes, n)
}

// call executes a function with arguments as paths and values. What it returns
// is the join of all its returns; the memory is that of its end.
func (r *run) call(f *function, paths []string, values []Value) Value {
	up := r.frame
	nesting := up.nesting + 1
	fr := &frame{prefix: up.prefix + f.name + ":", fn: f, up: up, nesting: nesting, alias: map[string]string{}, types: map[string]string{}, gotos: map[string][]memory{}}
	for i, p := range f.params {
		if p.name == "" {
			continue
		}
		fr.types[p.name] = p.kind
		key := fr.prefix + p.name
		r.mem[key] = unknown
		if i < len(values) {
			r.mem[key] = values[i]
		}
		if i < len(paths) && paths[i] != "" {
			fr.alias[p.name] = paths[i]
		}
	}
	when := r.when
	if len(f.body) > 0 {
		r.when = f.tokens[0].when
	}
	r.frame = fr
	ended := r.block(f.body)
	if ended && fr.final != nil {
		r.mem = fr.final
	}
	r.frame, r.when = up, when
	for key := range r.mem { // its variables are gone; devices that they had are not
		if strings.HasPrefix(key, fr.prefix) && !strings.Contains(key, "->") {
			delete(r.mem, key)
		}
	}
	if !fr.valued {
		return unknown
	}
	return fr.value
}

// block executes statements and reports whether control does not reach the end.
func (r *run) block(list []stmt) (ended bool) {
	fr := r.frame
	fr.level++
	defer func() { fr.level-- }()
	for i := range list {
		s := &list[i]
		switch s.kind {
		case target:
			if from := fr.gotos[s.label]; ended && len(from) > 0 {
				// Reached by jumps alone. Where control also comes from above, the
				// jumps are taken for failures, like early returns.
				r.mem, ended = r.joinAll(from), false
			}
			continue
		case caseLabel:
			continue // the selection deals with them
		case expression, block, choice, loop, selection, jump, finish:
		}
		if ended {
			continue
		}
		if r.fuel--; r.fuel < 0 {
			r.note(s.line, "too much to follow from here")
			return false
		}
		ended = r.under(s)
		if ended && fr.level == 1 && fr.final == nil {
			fr.final = maps.Clone(r.mem)
		}
	}
	return ended
}

// under executes a statement in the light of its preprocessor condition.
func (r *run) under(s *stmt) bool {
	if s.when == r.when || s.when == "" {
		return r.statement(s)
	}
	was, before := r.when, maps.Clone(r.mem)
	r.when = s.when
	r.conds = append(r.conds, strings.TrimPrefix(strings.TrimPrefix(s.when, was), ", "))
	ended := r.statement(s)
	r.conds = r.conds[:len(r.conds)-1]
	r.when = was
	if ended {
		r.mem = before
	} else {
		r.mem = r.join(before, r.mem)
	}
	return false
}

func (r *run) statement(s *stmt) bool {
	switch s.kind {
	case block:
		return r.nested(s.body)
	case choice:
		return r.choice(s)
	case loop:
		r.loop(s)
	case selection:
		r.selection(s)
	case jump:
		r.frame.gotos[s.label] = append(r.frame.gotos[s.label], maps.Clone(r.mem))
		return true
	case finish:
		r.finish(s)
		return true
	case expression:
		r.expression(s)
	case caseLabel, target:
	}
	return false
}

// nested executes a block that is not the function's own.
func (r *run) nested(list []stmt) bool {
	r.frame.level++
	defer func() { r.frame.level-- }()
	return r.block(list)
}

func (r *run) finish(s *stmt) {
	switch {
	case s.label == "break" && len(r.frame.breaks) > 0:
		top := len(r.frame.breaks) - 1
		r.frame.breaks[top] = append(r.frame.breaks[top], maps.Clone(r.mem))
	case s.label == "return" && len(s.cond) > 0:
		v := r.tokens(s.cond)
		if r.frame.valued {
			v = v.join(r.frame.value)
		}
		r.frame.value, r.frame.valued = v, true
	}
}

// holds evaluates a condition.
func (r *run) holds(list []token) truth { return r.tokens(list).truth() }

func (r *run) choice(s *stmt) bool {
	t := r.holds(s.cond)
	switch t {
	case yes:
		return r.nested(s.body)
	case no:
		return r.nested(s.other)
	case cannotTell:
	}
	start := maps.Clone(r.mem)
	text := show(s.cond)
	ended := r.within(text, s.body)
	after := r.mem
	r.mem = start
	other := r.within("!("+text+")", s.other)
	switch {
	case ended && other:
		return true
	case ended:
	case other:
		r.mem = after
	default:
		r.mem = r.join(after, r.mem)
	}
	return false
}

func (r *run) within(cond string, body []stmt) bool {
	r.conds = append(r.conds, cond)
	defer func() { r.conds = r.conds[:len(r.conds)-1] }()
	return r.nested(body)
}

// loop executes the body once to see what it changes, and once more from what
// may be known then.
func (r *run) loop(s *stmt) {
	t := cannotTell
	if len(s.cond) > 0 && !slices.ContainsFunc(s.cond, func(t token) bool { return t.text == ";" }) {
		t = r.holds(s.cond)
	}
	if t == no {
		return
	}
	start := maps.Clone(r.mem)
	fr := r.frame
	for i := range 2 {
		if i == 0 {
			r.quiet++
		}
		fr.breaks = append(fr.breaks, nil)
		r.within("in a loop", s.body)
		for _, m := range fr.breaks[len(fr.breaks)-1] {
			r.mem = r.join(r.mem, m)
		}
		fr.breaks = fr.breaks[:len(fr.breaks)-1]
		if i == 0 {
			r.quiet--
		}
		r.mem = r.join(start, r.mem)
	}
}

// selection executes a switch: each case starts from what is before it, or from
// the case above where that falls through.
func (r *run) selection(s *stmt) {
	r.tokens(s.cond)
	fr, start := r.frame, maps.Clone(r.mem)
	fr.breaks = append(fr.breaks, nil)
	body := s.body
	if len(body) == 1 && body[0].kind == block {
		body = body[0].body
	}
	ended, complete := true, false
	for len(body) > 0 {
		n := 0
		for n < len(body) && body[n].kind == caseLabel {
			complete = complete || body[n].label == "default"
			n++
		}
		m := n
		for m < len(body) && body[m].kind != caseLabel {
			m++
		}
		if ended {
			r.mem = maps.Clone(start)
		} else {
			r.mem = r.join(r.mem, start)
		}
		ended = r.within("case of switch ("+show(s.cond)+")", body[n:m])
		body = body[m:]
	}
	ends := fr.breaks[len(fr.breaks)-1]
	fr.breaks = fr.breaks[:len(fr.breaks)-1]
	if !ended {
		ends = append(ends, r.mem)
	}
	if !complete || len(ends) == 0 {
		ends = append(ends, start)
	}
	r.mem = r.joinAll(ends)
}

// join is what is known where it may be either.
func (r *run) join(a, b memory) memory {
	out := make(memory, len(a))
	for key, v := range a {
		w, ok := b[key]
		if !ok {
			w = r.initial(key)
		}
		out[key] = v.join(w)
	}
	for key, w := range b {
		if _, ok := a[key]; !ok {
			out[key] = w.join(r.initial(key))
		}
	}
	return out
}

func (r *run) joinAll(list []memory) memory {
	out := list[0]
	for _, m := range list[1:] {
		out = r.join(out, m)
	}
	return out
}

// initial is what a field or variable is before it is assigned.
func (r *run) initial(path string) Value {
	if _, f, ok := fieldOf(path); ok && f != "" && r.fresh {
		return Value{}
	}
	return unknown
}

// fieldOf splits a path at its last member, if that is a set.
func fieldOf(path string) (base, field string, ok bool) {
	i := strings.LastIndex(path, "->")
	if i < 0 {
		_, ok = feature.FieldByName(path)
		return "", path, ok
	}
	_, ok = feature.FieldByName(path[i+2:])
	return path[:i], path[i+2:], ok
}

// results sorts the steps by device.
func (r *run) results(name string, line int) []Function {
	var out []Function
	var order []string
	for _, s := range r.steps {
		if !slices.Contains(order, s.base) {
			order = append(order, s.base)
		}
	}
	for _, base := range order {
		f := Function{Name: name, Line: line, Role: r.role, Device: plain(base), Fresh: r.fresh, Sets: map[feature.Field]Value{}, Notes: r.notes}
		for _, s := range r.steps {
			if s.base == base {
				f.Steps = append(f.Steps, s)
				f.Sets[s.Field] = r.get(join(base, s.Field.String()))
			}
		}
		out = append(out, f)
	}
	return out
}

// plain takes the names of the functions out of a path.
func plain(path string) string {
	parts := strings.Split(path, "->")
	for i, p := range parts {
		for j := strings.IndexByte(p, ':'); j >= 0; j = strings.IndexByte(p, ':') {
			start := strings.LastIndexAny(p[:j], "([ ") + 1
			p = p[:start] + p[j+1:]
		}
		parts[i] = p
	}
	return strings.Join(parts, "->")
}

func join(base, field string) string {
	if base == "" {
		return field
	}
	return base + "->" + field
}

func (r *run) get(path string) Value {
	if v, ok := r.mem[path]; ok {
		return v
	}
	return r.initial(path)
}
