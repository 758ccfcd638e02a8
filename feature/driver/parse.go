package driver

import "slices"

// A stmt is a statement.
type stmt struct {
	kind   stmtKind
	line   int
	when   string  // the preprocessor's condition
	tokens []token // of an expression or declaration
	label  string
	cond   []token // of if, loop, switch
	body   []stmt
	other  []stmt // else
}

type stmtKind uint8

const (
	expression stmtKind = iota
	block
	choice // if
	loop
	selection // switch
	caseLabel
	jump // goto
	target
	finish // return, break, continue: cond has the value of a return
)

// parser walks tokens.
type parser struct {
	list  []token
	depth int
}

func (p *parser) peek() string {
	if len(p.list) == 0 {
		return ""
	}
	return p.list[0].text
}

func (p *parser) next() token {
	t := p.list[0]
	p.list = p.list[1:]
	return t
}

// matching returns how many tokens there are up to the bracket that closes the
// first one, both included, or all if none does.
func matching(list []token) int {
	depth := 0
	for i, t := range list {
		switch t.text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
			if depth <= 0 {
				return i + 1
			}
		}
	}
	return len(list)
}

// inside takes a bracketed group and returns what is between the brackets.
func (p *parser) inside() []token {
	n := matching(p.list)
	got := p.list[1:max(1, n-1)]
	p.list = p.list[n:]
	return got
}

// statements parses a block without its braces.
func statements(list []token, depth int) []stmt {
	p := &parser{list: list, depth: depth}
	var out []stmt
	for len(p.list) > 0 {
		out = append(out, p.statement())
	}
	return out
}

// statement parses one statement and always takes at least one token.
func (p *parser) statement() stmt {
	t := p.list[0]
	s := stmt{line: t.line, when: t.when}
	if p.depth++; p.depth > deepest {
		p.list = nil
		return s
	}
	defer func() { p.depth-- }()
	switch t.text {
	case "{":
		s.kind, s.body = block, statements(p.inside(), p.depth)
	case "if":
		p.next()
		s.kind, s.cond, s.body = choice, p.condition(), p.one()
		if p.peek() == "else" {
			p.next()
			s.other = p.one()
		}
	case "for", "while":
		p.next()
		s.kind, s.cond, s.body = loop, p.condition(), p.one()
	case "do":
		p.next()
		s.kind, s.body = loop, p.one()
		if p.peek() == "while" {
			p.next()
			s.cond = p.condition()
		}
		p.semicolon()
	case "switch":
		p.next()
		s.kind, s.cond, s.body = selection, p.condition(), p.one()
	case "case", "default":
		s.kind = caseLabel
		s.label = t.text
		n := slices.IndexFunc(p.list, func(t token) bool { return t.text == ":" })
		p.list = p.list[max(n, 0)+1:]
	case "goto":
		s.kind = jump
		if p.next(); len(p.list) > 0 {
			s.label = p.next().text
		}
		p.semicolon()
	case "return", "break", "continue":
		p.next()
		s.kind, s.label, s.cond = finish, t.text, p.simple()
	default:
		p.plain(&s)
	}
	return s
}

// plain parses a label, an expression, a declaration, or the head of a macro
// that makes a loop.
func (p *parser) plain(s *stmt) {
	if len(p.list) > 1 && p.list[0].kind == 'i' && p.list[1].text == ":" {
		s.kind, s.label = target, p.next().text
		p.next()
		return
	}
	if len(p.list) > 1 && p.list[0].kind == 'i' && p.list[1].text == "(" {
		n := 1 + matching(p.list[1:])
		if n < len(p.list) && (p.list[n].text == "{" || p.list[n].kind == 'i' && p.list[0].text != "__attribute__") {
			s.kind, s.cond = loop, p.list[:n] // list_for_each_entry(…)
			p.list = p.list[n:]
			s.body = p.one()
			return
		}
	}
	s.tokens = p.simple()
}

func (p *parser) condition() []token {
	if p.peek() != "(" {
		return nil
	}
	return p.inside()
}

// one parses the body of if, for and the like.
func (p *parser) one() []stmt {
	if len(p.list) == 0 {
		return nil
	}
	return []stmt{p.statement()}
}

// simple takes up to the semicolon, which may be missing at the end.
func (p *parser) simple() []token {
	i := 0
	for i < len(p.list) && p.list[i].text != ";" {
		switch p.list[i].text {
		case "(", "[", "{":
			i += matching(p.list[i:])
		default:
			i++
		}
	}
	got := p.list[:i]
	p.list = p.list[min(i+1, len(p.list)):]
	return got
}

func (p *parser) semicolon() {
	if p.peek() == ";" {
		p.next()
	}
}

// A function is a function of the file.
type function struct {
	name   string
	line   int
	params []param
	body   []stmt
	tokens []token // of the body
}

type param struct {
	name string
	kind string // "net_device" for struct net_device, else the last word of the type
}

// functions finds the functions of a file: NAME ( … ) { … } outside of braces.
func functions(list []token) []function {
	var out []function
	for i := 0; i < len(list); {
		switch list[i].text {
		case "(":
			n := matching(list[i:])
			end := i + n
			if i > 0 && list[i-1].kind == 'i' && end < len(list) && list[end].text == "{" {
				m := matching(list[end:])
				body := list[end+1 : max(end+1, end+m-1)]
				f := function{name: list[i-1].text, line: list[i-1].line, tokens: body, params: params(list[i+1 : max(i+1, end-1)])}
				f.body = statements(body, 0)
				out = append(out, f)
				end += m
			}
			i = end
		case "{", "[":
			i += matching(list[i:])
		default:
			i++
		}
	}
	return out
}

func params(list []token) []param {
	var out []param
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(t token) bool { return t.text == "," })
		if n < 0 {
			n = len(list)
		}
		var p param
		for _, t := range list[:n] {
			if t.kind == 'i' {
				p.kind, p.name = p.name, t.text
			}
		}
		out = append(out, p)
		list = list[min(n+1, len(list)):]
	}
	return out
}
