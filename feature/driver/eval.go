package driver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/offlab/offlab/feature"
)

// whole is all that a set of the kernel can hold.
var whole = feature.Set{^uint64(0)}

// boolean is the value of a comparison, out of the way of features.
func boolean(t truth) Value {
	switch t {
	case yes:
		return known(feature.Of(127))
	case no:
		return Value{}
	case cannotTell:
	}
	return unknown
}

// expression executes an expression or declaration.
func (r *run) expression(s *stmt) {
	list := s.tokens
	if len(list) == 0 {
		return
	}
	if n, kind := declaration(list); n > 0 {
		r.declare(list[n:], kind, slices.ContainsFunc(list[:n], func(t token) bool { return t.text == "static" }))
		return
	}
	r.tokens(list)
}

// tokens evaluates tokens as an expression.
func (r *run) tokens(list []token) Value {
	if len(list) == 0 {
		return unknown
	}
	e := parseExpr(list)
	if e == nil {
		for i := range list {
			if assignsField(list, i) || r.short && i+1 < len(list) && assigns[list[i+1].text] {
				r.lost(list[i].line, "not understood: "+show(list))
				break
			}
		}
		return unknown
	}
	was := r.cur
	r.cur = list
	defer func() { r.cur = was }()
	return r.eval(e)
}

// lost is a note, or in statements, where there is nothing else, an error.
func (r *run) lost(line int, text string) {
	if r.short && r.err == nil {
		r.err = &StatementError{line, text}
	}
	r.note(line, text)
}

// declaration returns how many tokens the type of a declaration takes, 0 for an
// expression, and the last word of the type.
func declaration(list []token) (n int, kind string) {
	words := 0
	for i, t := range list {
		switch {
		case t.kind == 'i':
			words++
			continue
		case t.text == "*" && words > 0 && i+1 < len(list) && (list[i+1].kind == 'i' || list[i+1].text == "*"):
			continue
		case t.text != "=" && t.text != "," && t.text != "[":
			return 0, ""
		}
		return typeLength(list[:i], words)
	}
	return typeLength(list, words)
}

// typeLength takes the declared name and its stars off.
func typeLength(list []token, words int) (n int, kind string) {
	if words < 2 || list[len(list)-1].kind != 'i' {
		return 0, ""
	}
	n = len(list) - 1
	for list[n-1].text == "*" {
		n--
	}
	// a * b is a declaration if a is a type: with a value to it, or struct.
	return n, list[n-1].text
}

// declare executes the declarators of a declaration.
func (r *run) declare(list []token, kind string, static bool) {
	for len(list) > 0 {
		n, depth := 0, 0
		for ; n < len(list) && (depth > 0 || list[n].text != ","); n++ {
			switch list[n].text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
		}
		r.declarator(list[:n], kind, static)
		list = list[min(n+1, len(list)):]
	}
}

func (r *run) declarator(list []token, kind string, static bool) {
	for len(list) > 0 && list[0].text == "*" {
		list = list[1:]
	}
	if len(list) == 0 || list[0].kind != 'i' {
		return
	}
	name := list[0].text
	r.frame.types[name] = kind
	delete(r.frame.alias, name)
	r.mem[r.frame.prefix+name] = unknown
	if len(list) > 2 && list[1].text == "=" && list[2].text != "{" {
		v := r.tokens(list) // as an assignment
		if static {
			r.mem[r.frame.prefix+name] = v.join(unknown)
		}
	}
}

// path returns where an expression points: "bp->dev" for bp->dev, dev in the
// caller's words; "" for what is no place.
func (r *run) path(e *expr) string {
	switch e.op {
	case "id":
		if p, ok := r.frame.alias[e.text]; ok {
			return p
		}
		if _, ok := r.frame.types[e.text]; ok {
			return r.frame.prefix + e.text
		}
		return e.text
	case ".":
		if p := r.path(e.args[0]); p != "" {
			p += "->" + e.text
			if to, ok := r.links[p]; ok {
				return to
			}
			return p
		}
	case "u*", "u&":
		return r.path(e.args[0])
	case "[":
		if p := r.path(e.args[0]); p != "" {
			return p + "[" + show(r.cur[e.args[1].begin:e.args[1].end]) + "]"
		}
	case "call":
		if len(e.args) == 2 && e.args[0].op == "id" { // netdev_priv(dev) and the like
			if p := r.path(e.args[1]); p != "" {
				return e.args[0].text + "(" + p + ")"
			}
		}
	}
	return ""
}

// place returns the path of a set of a device, and the set.
func (r *run) place(e *expr) (path string, f feature.Field, ok bool) {
	switch {
	case e.op == ".":
		f, ok = feature.FieldByName(e.text)
		if !ok || !r.isDevice(e.args[0]) {
			return "", 0, false
		}
		path = r.path(e)
		return path, f, path != ""
	case e.op == "id" && r.short:
		if _, local := r.frame.types[e.text]; local {
			return "", 0, false
		}
		f, ok = feature.FieldByName(e.text)
		return e.text, f, ok
	}
	return "", 0, false
}

// isDevice reports whether an expression is a struct net_device: by its type
// where that is to be seen, else by its name.
func (r *run) isDevice(e *expr) bool {
	name := ""
	switch e.op {
	case "id":
		if kind, ok := r.frame.types[e.text]; ok && kind != "" {
			return kind == "net_device"
		}
		name = e.text
	case ".":
		name = e.text
	case "u*", "u&", "[":
		return r.isDevice(e.args[0])
	case "call":
		return true // to_net_dev(x)->features
	}
	return strings.Contains(strings.ToLower(name), "dev") || name == "nd" || r.short
}

// assign assigns to a variable or a set.
func (r *run) assign(e *expr) Value {
	to, op := e.args[0], e.op
	path, field, isSet := r.place(to)
	looseWas, namedWas := r.loose, r.named
	r.loose, r.named = nil, feature.Set{}
	v := r.eval(e.args[1])
	loose, named := r.loose, r.named
	r.loose, r.named = append(looseWas, loose...), namedWas.Union(named)
	if !isSet {
		if _, local := r.frame.types[to.text]; to.op == "id" && r.short && !local {
			r.lost(e.line, fmt.Sprintf("no set is called %q (have %s)", to.text, fieldNames()))
		}
		if path = r.variable(to); path == "" {
			return unknown
		}
	}
	old := r.get(path)
	if _, had := r.mem[path]; isSet && r.short && op == "&=" && !had {
		old = unknown // statements that begin so are about sets that have something in them
	}
	switch op {
	case "=":
	case "|=":
		v = old.or(v)
	case "&=":
		v = old.and(v)
	case "^=":
		v = old.xor(v)
	default:
		v = unknown
	}
	if !isSet {
		r.mem[path] = v
		r.point(to, path, e)
		return v
	}
	v = v.and(known(whole))
	r.mem[path] = v
	base, _, _ := fieldOf(path)
	if r.quiet > 0 {
		return v
	}
	for _, name := range loose {
		r.note(e.line, fmt.Sprintf("%s in %q is not known here", name, show(r.cur[e.begin:e.end])))
	}
	r.steps = append(r.steps, Step{
		Line: e.line, In: r.inner(), When: strings.Join(r.conds, "; "), Text: show(r.cur[e.begin:e.end]),
		Field: field, Op: op, Named: named, After: v, base: base, before: old,
	})
	return v
}

// inner is the name of the function that we are in, if another one called it.
func (r *run) inner() string {
	if r.frame.fn == nil || r.frame.nesting <= 1 {
		return ""
	}
	return r.frame.fn.name
}

// variable returns the path that an assignment changes: that of the variable,
// not of what it points to.
func (r *run) variable(to *expr) string {
	if _, ok := r.frame.types[to.text]; ok && to.op == "id" {
		return r.frame.prefix + to.text
	}
	return r.path(to)
}

// point makes a pointer another name of what it is set to: a variable of any
// place, a member of a device that a variable has.
func (r *run) point(to *expr, path string, e *expr) {
	from := e.args[1]
	p := ""
	if e.op == "=" && (from.op != "id" || r.frame.types[from.text] != "") {
		p = r.path(from)
	}
	if p == path || strings.HasPrefix(p, path+"->") {
		p = ""
	}
	switch {
	case to.op == "id" && p != "":
		r.frame.alias[to.text] = p
	case to.op == "id":
		delete(r.frame.alias, to.text)
	case to.op == "." && p != "" && from.op == "id" && r.frame.types[from.text] == "net_device":
		r.links[path] = p
	default:
		delete(r.links, path)
	}
}

func (r *run) eval(e *expr) Value {
	switch e.op {
	case "id":
		return r.name(e)
	case "num":
		return number(e.text)
	case ".":
		if path, _, ok := r.place(e); ok {
			return r.get(path)
		}
		r.loose = append(r.loose, show(r.cur[e.begin:e.end]))
		return unknown
	case "call":
		return r.evalCall(e)
	case "u&":
		r.taken(e.args[0])
		return unknown
	case "?":
		return r.ternary(e)
	case "u~":
		return r.eval(e.args[0]).not()
	case "u!":
		return boolean(-r.eval(e.args[0]).truth())
	}
	if assigns[e.op] {
		return r.assign(e)
	}
	return r.operator(e)
}

func (r *run) ternary(e *expr) Value {
	loose := r.loose
	t := r.eval(e.args[0]).truth()
	r.loose = loose // what the condition is about is no part of the value
	switch t {
	case yes:
		return r.eval(e.args[1])
	case no:
		return r.eval(e.args[2])
	case cannotTell:
	}
	return r.eval(e.args[1]).join(r.eval(e.args[2]))
}

func (r *run) operator(e *expr) Value {
	if e.op == "<<" && e.args[0].op == "num" && strings.TrimRight(e.args[0].text, "uUlL") == "1" {
		if s, ok := bit(e.args[1].text); ok {
			return known(s)
		}
	}
	values := make([]Value, len(e.args))
	for i, a := range e.args {
		values[i] = r.eval(a)
	}
	switch e.op {
	case "|":
		return values[0].or(values[1])
	case "&":
		return values[0].and(values[1])
	case "^":
		return values[0].xor(values[1])
	case "&&":
		return boolean(min(values[0].truth(), values[1].truth()))
	case "||":
		return boolean(max(values[0].truth(), values[1].truth()))
	case ",":
		return values[1]
	}
	if e.op == "" {
		return unknown
	}
	r.loose = append(r.loose, show(r.cur[e.begin:e.end]))
	return unknown
}

// number is a literal. The bits of others than 0 are the features of one kernel
// only.
func number(text string) Value {
	if strings.Trim(text, "0xXuUlL") == "" {
		return Value{}
	}
	return unknown
}

func (r *run) name(e *expr) Value {
	switch e.text {
	case "true":
		return boolean(yes)
	case "false", "NULL":
		return Value{}
	}
	if path, _, ok := r.place(e); ok {
		return r.get(path)
	}
	if _, ok := r.frame.types[e.text]; ok {
		v := r.get(r.frame.prefix + e.text)
		if v.open() {
			r.loose = append(r.loose, e.text)
		}
		return v
	}
	if bodies, ok := r.src.macros[e.text]; ok && r.macro < 16 {
		return r.expand(bodies)
	}
	s, note, ok := constant(e.text, r.short)
	switch {
	case ok && note != "":
		r.note(e.line, note)
	case ok:
		r.named = r.named.Union(s)
	case r.short && e.text != "":
		r.lost(e.line, fmt.Sprintf("no feature, mask or set is called %q", e.text))
		return unknown
	default:
		r.loose = append(r.loose, e.text)
		return unknown
	}
	return known(s)
}

// expand evaluates a macro, all its definitions.
func (r *run) expand(bodies [][]token) Value {
	r.macro++
	defer func() { r.macro-- }()
	var v Value
	for i, body := range bodies {
		if r.fuel--; r.fuel < 0 {
			return unknown
		}
		w := r.tokens(body)
		if i > 0 {
			w = v.join(w)
		}
		v = w
	}
	return v
}

// taken is for an address that is handed out: what is there may change.
func (r *run) taken(e *expr) {
	path, _, isSet := r.place(e)
	if isSet {
		r.note(e.line, "the address of "+show(r.cur[e.begin:e.end])+" is handed out: it may be changed there")
	} else {
		path = r.path(e)
	}
	if path != "" {
		r.mem[path] = unknown
	}
}

func fieldNames() string {
	var names []string
	for _, f := range feature.Fields() {
		names = append(names, f.String())
	}
	return strings.Join(names, ", ")
}
