package driver

// An expr is an expression. op is the operator, "id", "num", "call", "?" or ""
// for what could not be parsed; a "." is written for "->" too.
type expr struct {
	op    string
	text  string // of id, num, member
	args  []*expr
	line  int
	begin int // tokens
	end   int
}

var binary = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
	"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

var assigns = map[string]bool{"=": true, "|=": true, "&=": true, "^=": true, "+=": true, "-=": true, "*=": true, "/=": true, "%=": true, "<<=": true, ">>=": true}

// exprParser parses an expression by precedence.
type exprParser struct {
	list  []token
	at    int
	depth int
	bad   bool
}

// parseExpr parses tokens, all of them; nil if they are no expression.
func parseExpr(list []token) *expr {
	p := &exprParser{list: list}
	e := p.comma()
	if p.bad || p.at != len(list) || e == nil {
		return nil
	}
	return e
}

func (p *exprParser) peek() token {
	if p.at >= len(p.list) {
		return token{}
	}
	return p.list[p.at]
}

func (p *exprParser) accept(text string) bool {
	if p.at < len(p.list) && p.list[p.at].text == text && p.list[p.at].kind == 'p' {
		p.at++
		return true
	}
	return false
}

func (p *exprParser) node(op string, begin int, args ...*expr) *expr {
	e := &expr{op: op, args: args, begin: begin, end: p.at}
	if begin < len(p.list) {
		e.line = p.list[begin].line
	}
	for _, a := range args {
		if a == nil {
			p.bad = true
		}
	}
	return e
}

func (p *exprParser) comma() *expr {
	begin := p.at
	e := p.assignment()
	for !p.bad && p.accept(",") {
		e = p.node(",", begin, e, p.assignment())
	}
	return e
}

func (p *exprParser) assignment() *expr {
	if p.depth++; p.depth > deepest {
		p.bad = true
		return nil
	}
	defer func() { p.depth-- }()
	begin := p.at
	e := p.ternary()
	if op := p.peek(); !p.bad && op.kind == 'p' && assigns[op.text] {
		p.at++
		return p.node(op.text, begin, e, p.assignment())
	}
	return e
}

func (p *exprParser) ternary() *expr {
	begin := p.at
	e := p.operators(1)
	if p.bad || !p.accept("?") {
		return e
	}
	if p.accept(":") { // GNU: a ?: b
		return p.node("?", begin, e, e, p.assignment())
	}
	a := p.comma()
	if !p.accept(":") {
		p.bad = true
		return nil
	}
	return p.node("?", begin, e, a, p.assignment())
}

func (p *exprParser) operators(level int) *expr {
	begin := p.at
	e := p.unary()
	for !p.bad {
		op := p.peek()
		l := binary[op.text]
		if op.kind != 'p' || l < level {
			return e
		}
		p.at++
		e = p.node(op.text, begin, e, p.operators(l+1))
	}
	return e
}

func (p *exprParser) unary() *expr {
	if p.depth++; p.depth > deepest {
		p.bad = true
		return nil
	}
	defer func() { p.depth-- }()
	begin := p.at
	switch t := p.peek(); {
	case t.kind == 'p' && (t.text == "~" || t.text == "!" || t.text == "-" || t.text == "+" || t.text == "*" || t.text == "&" || t.text == "++" || t.text == "--"):
		p.at++
		return p.node("u"+t.text, begin, p.unary())
	case t.text == "sizeof":
		p.at++
		if p.peek().text == "(" {
			p.at += matching(p.list[p.at:])
		} else {
			p.unary()
		}
		return p.node("", begin)
	case t.text == "(" && p.cast():
		p.at += matching(p.list[p.at:])
		return p.unary()
	}
	return p.postfix()
}

// cast reports whether the bracket before us is around a type: names and stars,
// and an operand follows.
func (p *exprParser) cast() bool {
	n := matching(p.list[p.at:])
	end := p.at + n
	if n < 3 || end >= len(p.list) {
		return false
	}
	for _, t := range p.list[p.at+1 : end-1] {
		if t.kind != 'i' && t.text != "*" {
			return false
		}
	}
	next, last := p.list[end], p.list[end-2].text
	if next.kind == 'i' || next.kind == 'n' || next.kind == 's' || next.text == "~" || next.text == "!" {
		return true
	}
	return next.text == "(" && (last == "*" || n > 3 || typeName(p.list[p.at+1].text))
}

func typeName(s string) bool {
	switch s {
	case "netdev_features_t", "int", "long", "unsigned", "u8", "u16", "u32", "u64", "uint32_t", "uint64_t", "bool", "__u32", "__u64":
		return true
	}
	return false
}

func (p *exprParser) postfix() *expr {
	begin := p.at
	e := p.primary()
	for !p.bad {
		switch t := p.peek(); {
		case t.kind != 'p':
			return e
		case t.text == "->" || t.text == ".":
			p.at++
			m := p.peek()
			p.at++
			e = p.node(".", begin, e)
			e.text = m.text
			p.bad = p.bad || m.kind != 'i'
		case t.text == "[":
			p.at++
			e = p.node("[", begin, e, p.comma())
			p.bad = p.bad || !p.accept("]")
		case t.text == "(":
			e = p.call(e, begin)
		case t.text == "++" || t.text == "--":
			p.at++
			e = p.node("u"+t.text, begin, e)
		default:
			return e
		}
	}
	return e
}

func (p *exprParser) call(f *expr, begin int) *expr {
	p.at++
	args := []*expr{f}
	for !p.bad && !p.accept(")") {
		if len(args) > 1 && !p.accept(",") {
			p.bad = true
			return nil
		}
		a := p.assignment()
		args = append(args, a)
		p.bad = p.bad || a == nil
	}
	return p.node("call", begin, args...)
}

func (p *exprParser) primary() *expr {
	begin, t := p.at, p.peek()
	switch {
	case t.kind == 'i' || t.kind == 'n' || t.kind == 's':
		p.at++
		e := p.node(map[byte]string{'i': "id", 'n': "num", 's': ""}[t.kind], begin)
		e.text = t.text
		return e
	case t.text == "(" && p.at+1 < len(p.list) && p.list[p.at+1].text == "{": // GNU: ({ … })
		p.at += matching(p.list[p.at:])
		return p.node("", begin)
	case p.accept("("):
		e := p.comma()
		if !p.accept(")") {
			p.bad = true
		}
		return e
	}
	p.bad = true
	return nil
}
