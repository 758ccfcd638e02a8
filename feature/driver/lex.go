package driver

import "strings"

// A token is a word of C.
type token struct {
	kind byte // 'i' identifier, 'n' number, 's' string or character, 'p' punctuation, '#' directive
	text string
	line int
	when string // the preprocessor's condition around it, "" for none
}

// puncts are the longer punctuation marks, those of three characters first.
var puncts = []string{"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##"}

// lex cuts C into tokens. Any text is accepted: what is no C becomes
// punctuation of one byte.
func lex(src string) []token {
	var list []token
	line, fresh := 1, true // fresh: nothing but blanks on this line yet
	for i := 0; i < len(src); {
		c := src[i]
		n := 1
		switch {
		case c == '\n':
			line, fresh = line+1, true
		case c == '\\' && i+1 < len(src) && src[i+1] == '\n':
			n, line = 2, line+1
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
		case strings.HasPrefix(src[i:], "//"):
			n = upTo(src[i:], "\n")
		case strings.HasPrefix(src[i:], "/*"):
			n = upTo(src[i+2:], "*/") + 4
		case c == '#' && fresh:
			n = directive(src[i:])
			list = append(list, token{kind: '#', text: src[i : i+n], line: line})
		default:
			t := token{line: line}
			t.kind, n = word(src[i:])
			t.text = src[i : i+n]
			list, fresh = append(list, t), false
		}
		if n = min(n, len(src)-i); n > 1 && c != '\\' {
			line += strings.Count(src[i:i+n], "\n")
		}
		i += n
	}
	return list
}

// word returns the kind and length of the token at the start of s.
func word(s string) (kind byte, n int) {
	c := s[0]
	switch {
	case letter(c):
		return 'i', while(s, func(c byte) bool { return letter(c) || digit(c) })
	case digit(c):
		return 'n', while(s, func(c byte) bool { return letter(c) || digit(c) || c == '.' })
	case c == '"' || c == '\'':
		return 's', quoted(s)
	}
	for _, p := range puncts {
		if strings.HasPrefix(s, p) {
			return 'p', len(p)
		}
	}
	return 'p', 1
}

func letter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

func while(s string, ok func(byte) bool) int {
	for i := range len(s) {
		if !ok(s[i]) {
			return i
		}
	}
	return len(s)
}

// upTo returns how much comes before a mark, all of s without one.
func upTo(s, mark string) int {
	if i := strings.Index(s, mark); i >= 0 {
		return i
	}
	return len(s)
}

func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		case '\n':
			return i
		}
	}
	return len(s)
}

// directive returns the length of a preprocessor line, continued ones included.
func directive(s string) int {
	for i := range len(s) {
		if s[i] == '\n' && !strings.HasSuffix(strings.TrimRight(s[:i], "\r"), `\`) {
			return i
		}
	}
	return len(s)
}

// show writes tokens as a person would.
func show(list []token) string {
	var b strings.Builder
	for i, t := range list {
		if i > 0 && spaced(list[i-1], t, i > 1 && list[i-2].kind == 'p' || i == 1) {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// spaced reports whether a blank belongs between two tokens; unary says that a
// sign in a would be one of a single operand.
func spaced(a, b token, unary bool) bool {
	switch a.text {
	case "(", "[", "->", ".", "~", "!", "++", "--":
		return false
	case "&", "*", "-":
		if unary {
			return false
		}
	}
	switch b.text {
	case ")", "]", "->", ".", ",", ";", "++", "--", "[":
		return false
	case "(":
		return a.kind == 'p' && a.text != ")" || a.text == "if" || a.text == "for" || a.text == "while" || a.text == "switch"
	}
	return true
}
