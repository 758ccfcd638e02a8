package report

import (
	"regexp"
	"strings"
)

// A style is what a span of text means; colours follow from it.
type style uint8

const (
	plain style = iota
	strong
	faint
	good
	bad
	doubt
)

// sgr holds the terminal's codes (ECMA-48, 8.3.117) of each style. The colours
// are of the basic eight, which follow the user's own palette.
var sgr = [...]string{plain: "", strong: "1", faint: "2", good: "1;32", bad: "1;31", doubt: "1;33"}

// A span is text of one style.
type span struct {
	text  string
	style style
}

// A page lays out spans in lines of a limited width.
type page struct {
	b     strings.Builder
	width int
	color bool
	ascii bool
}

// text makes text fit for the page. Everything that is written goes through
// it.
func (p *page) text(s string) string {
	s = clean(s)
	if p.ascii {
		s = ascii(s)
	}
	return s
}

// shorten makes text fit for the page and for n columns of it.
func (p *page) shorten(s string, n int) string {
	if p.ascii {
		return shortenWith(p.text(s), n, "...")
	}
	return shorten(p.text(s), n)
}

func (p *page) blank() { p.b.WriteByte('\n') }

// emit writes one line of spans that are already fit for the page.
func (p *page) emit(line []span) {
	for len(line) > 0 && strings.TrimRight(line[len(line)-1].text, " ") == "" {
		line = line[:len(line)-1]
	}
	for i, s := range line {
		if i == len(line)-1 {
			s.text = strings.TrimRight(s.text, " ")
		}
		if p.color && s.style != plain {
			s.text = "\x1b[" + sgr[s.style] + "m" + s.text + "\x1b[0m"
		}
		p.b.WriteString(s.text)
	}
	p.b.WriteByte('\n')
}

// unitWord matches what must not be parted from the number before it.
var unitWord = regexp.MustCompile(`^([kMGT]?(bit/s|B)|%|ns/B|[nµum]?s|min|h|k/s|GB,|%,)[,;.)]?$`)

// words splits spans at blanks; a word may consist of several spans.
func (p *page) words(spans []span) [][]span {
	var words [][]span
	var word []span
	flush := func() {
		if len(word) > 0 {
			words = append(words, word)
		}
		word = nil
	}
	for _, s := range spans {
		for i, part := range strings.Split(p.text(s.text), " ") {
			if i > 0 {
				n := len(word)
				if n > 0 && unitWord.MatchString(part) && endsInDigit(word[n-1].text) {
					word = append(word, span{" ", s.style})
				} else {
					flush()
				}
			}
			if part != "" {
				word = append(word, span{part, s.style})
			}
		}
	}
	flush()
	return words
}

func endsInDigit(s string) bool {
	return s != "" && (s[len(s)-1] >= '0' && s[len(s)-1] <= '9')
}

func widthOf(spans []span) (n int) {
	for _, s := range spans {
		n += width(s.text)
	}
	return n
}

// flow writes the lead and then the body, broken into lines at blanks; lines
// after the first, and a body that does not fit next to its lead, begin at
// column hang. A word longer than a line is broken.
func (p *page) flow(lead []span, hang int, body ...span) {
	var line []span
	at := 0
	for _, s := range lead {
		s.text = p.shorten(s.text, p.width-at)
		line, at = append(line, s), at+width(s.text)
	}
	if at < hang {
		line, at = append(line, span{strings.Repeat(" ", hang-at), plain}), hang
	}
	fresh := true // nothing of the body is on the line yet
	next := func() {
		p.emit(line)
		line, at, fresh = []span{{strings.Repeat(" ", hang), plain}}, hang, true
	}
	for _, word := range p.words(body) {
		w := widthOf(word)
		if at > hang && at+1+w > p.width {
			next()
		}
		if !fresh {
			line, at = append(line, span{" ", plain}), at+1
		}
		for _, s := range word {
			head, tail := cut(s.text, p.width-at)
			for tail != "" {
				line = append(line, span{head, s.style})
				next()
				head, tail = cut(tail, p.width-at)
			}
			line, at, fresh = append(line, span{head, s.style}), at+width(head), false
		}
	}
	p.emit(line)
}

// say writes a paragraph indented by n columns.
func (p *page) say(n int, body ...span) { p.flow(nil, n, body...) }

// command writes a command so that it can be copied: a line too long is
// continued as a shell reads it, with a backslash.
func (p *page) command(indent int, cmd string) {
	pad, cmd := strings.Repeat(" ", indent), strings.TrimSpace(p.text(cmd))
	for room := p.width - indent - 2; ; {
		if _, rest := cut(cmd, room+2); rest == "" {
			break
		}
		head, tail := cut(cmd, room)
		if i := strings.LastIndexByte(head, ' '); i > 0 {
			head, tail = cmd[:i], cmd[i+1:]
			p.emit([]span{{pad + head + " \\", strong}})
		} else { // a word longer than a line: joined again by the shell
			p.emit([]span{{pad + head + "\\", strong}})
			pad, room = "", p.width-2
		}
		cmd = tail
	}
	p.emit([]span{{pad + cmd, strong}})
}

// A table has left-aligned columns.
type table struct {
	head []string
	rows [][]span
}

func (t *table) add(cells ...span) { t.rows = append(t.rows, cells) }

// gap is the number of blanks between two columns.
const gap = 2

// widths measures the columns of a table, and the whole with its indent. A
// column without any text has a negative width and takes no room.
func (p *page) widths(indent int, t table) (widths []int, total int) {
	measure := func(i int, s string) {
		if i == len(widths) {
			widths = append(widths, -gap)
		}
		if s != "" {
			widths[i] = max(widths[i], width(p.text(s)))
		}
	}
	for i, h := range t.head {
		measure(i, h)
	}
	for _, r := range t.rows {
		for i, c := range r {
			measure(i, c.text)
		}
	}
	total = indent - gap
	for _, w := range widths {
		total += w + gap
	}
	return widths, total
}

func (p *page) fits(indent int, t table) bool {
	_, total := p.widths(indent, t)
	return total <= p.width
}

// table writes the table at the given indent. One that does not fit is written
// row by row, each as a paragraph, without the head.
func (p *page) table(indent int, t table) {
	widths, total := p.widths(indent, t)
	fits := total <= p.width
	if fits && len(t.head) > 0 {
		var head []span
		for _, h := range t.head {
			head = append(head, span{h, faint})
		}
		p.cells(indent, head, widths)
	}
	for _, r := range t.rows {
		if fits {
			p.cells(indent, r, widths)
		} else {
			p.stack(indent, r)
		}
	}
}

func (p *page) cells(indent int, cells []span, widths []int) {
	line := []span{{strings.Repeat(" ", indent), plain}}
	first := true
	for i, c := range cells {
		if widths[i] < 0 {
			continue
		}
		if !first {
			line = append(line, span{strings.Repeat(" ", gap), plain})
		}
		first = false
		text := p.text(c.text)
		pad := span{strings.Repeat(" ", max(0, widths[i]-width(text))), plain}
		line = append(line, span{text, c.style}, pad)
	}
	p.emit(line)
}

// stack writes a row that is too wide: the first cell, and the others beneath.
func (p *page) stack(indent int, cells []span) {
	if cells[0].text != "" {
		p.say(indent, cells[0])
	}
	var rest []span
	for _, c := range cells[1:] {
		if strings.TrimSpace(c.text) == "" {
			continue
		}
		if len(rest) > 0 {
			rest = append(rest, span{"  ", plain})
		}
		rest = append(rest, c)
	}
	if len(rest) > 0 {
		p.say(indent+2, rest...)
	}
}
