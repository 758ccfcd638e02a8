package driver

import (
	"slices"
	"strings"
)

// source is C after the preprocessor, as far as it is imitated.
type source struct {
	tokens []token
	macros map[string][][]token // object-like ones and constants; several where a condition chooses
	notes  []Note
}

// preprocess takes the directives out. Tokens inside #if carry the condition;
// where the alternatives do not balance their braces, so that no tree can hold
// them all, the first is taken and the others are noted.
func preprocess(list []token) *source {
	s := &source{macros: map[string][][]token{}}
	s.tokens, _ = s.group(list, "", 0)
	return s
}

const deepest = 100 // nesting that no driver reaches; beyond, text is skipped

// group takes tokens up to the #endif, #else or #elif that ends the group, and
// returns them with what is left, the ending directive first.
func (s *source) group(list []token, when string, depth int) (out, rest []token) {
	for len(list) > 0 {
		t := list[0]
		if t.kind != '#' {
			t.when = when
			out, list = append(out, t), list[1:]
			continue
		}
		name, arg := split(t.text)
		switch name {
		case "define":
			s.define(arg, t.line)
		case "if", "ifdef", "ifndef":
			var got []token
			got, list = s.choice(list, when, depth)
			out = append(out, got...)
			continue
		case "else", "elif", "endif":
			if depth > 0 {
				return out, list
			}
		}
		list = list[1:]
	}
	return out, nil
}

// choice takes #if … #endif.
func (s *source) choice(list []token, when string, depth int) (out, rest []token) {
	var first []token
	balanced, n, start := true, 0, list[0].line
	var never, always bool
	for {
		name, arg := split(list[0].text)
		text := strings.TrimSpace("#" + name + " " + arg)
		if when != "" {
			text = when + ", " + text
		}
		switch {
		case name == "if" || name == "elif":
			never, always = arg == "0" || always, arg == "1" && !always
		case name == "else":
			never, always = always, never && !always
		default:
			never, always = always, false
		}
		if always {
			text = when
		}
		var got []token
		if depth > deepest {
			return out, nil
		}
		got, list = s.group(list[1:], text, depth+1)
		if !never {
			balanced = balanced && even(got)
			if n == 0 {
				first = got
			}
			out, n = append(out, got...), n+1
		}
		if len(list) == 0 {
			break
		}
		if name, _ := split(list[0].text); name == "endif" {
			list = list[1:]
			break
		}
	}
	if !balanced {
		if n > 1 {
			s.notes = append(s.notes, Note{start, "of the alternatives of this #if only the first was read"})
		}
		for i := range first {
			first[i].when = when
		}
		return first, list
	}
	return out, list
}

// split takes a directive apart.
func split(text string) (name, arg string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text[1:], "\\\r\n", " "), "\\\n", " ")
	text = strings.TrimSpace(text)
	n := while(text, letter)
	return text[:n], strings.Join(strings.Fields(uncomment(text[n:])), " ")
}

func uncomment(s string) string {
	if i := strings.Index(s, "//"); i >= 0 {
		s = s[:i]
	}
	for {
		before, after, ok := strings.Cut(s, "/*")
		if !ok {
			return s
		}
		_, after, _ = strings.Cut(after, "*/")
		s = before + " " + after
	}
}

func even(list []token) bool {
	depth := 0
	for _, t := range list {
		switch t.text {
		case "{", "(":
			depth++
		case "}", ")":
			depth--
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0
}

// define keeps a macro without parameters.
func (s *source) define(arg string, line int) {
	n := while(arg, func(c byte) bool { return letter(c) || digit(c) })
	if n == 0 || n < len(arg) && arg[n] == '(' {
		return
	}
	body := lex(arg[n:])
	for i := range body {
		body[i].line = line
	}
	s.macros[arg[:n]] = append(s.macros[arg[:n]], body)
}

// constants adds enumerators and constant variables to the macros.
func (s *source) constants() {
	for i, t := range s.tokens {
		switch {
		case t.text == "enum":
			s.enum(s.tokens[i+1:])
		case t.text == "netdev_features_t" && i > 0 && s.tokens[i-1].text == "const" && i+2 < len(s.tokens) && s.tokens[i+2].text == "=":
			end := i + 3 + slices.IndexFunc(s.tokens[i+3:], func(t token) bool { return t.text == ";" })
			if end > i+3 {
				s.macros[s.tokens[i+1].text] = append(s.macros[s.tokens[i+1].text], s.tokens[i+3:end])
			}
		}
	}
}

// enum reads NAME = VALUE up to the closing brace.
func (s *source) enum(list []token) {
	if len(list) > 0 && list[0].kind == 'i' {
		list = list[1:]
	}
	if len(list) == 0 || list[0].text != "{" {
		return
	}
	for i := 1; i+2 < len(list) && list[i].text != "}"; i++ {
		if list[i].kind != 'i' || list[i+1].text != "=" {
			continue
		}
		end := i + 2
		for depth := 0; end < len(list) && (depth > 0 || list[end].text != "," && list[end].text != "}"); end++ {
			switch list[end].text {
			case "(":
				depth++
			case ")":
				depth--
			}
		}
		s.macros[list[i].text] = append(s.macros[list[i].text], list[i+2:end])
		i = end - 1
	}
}
