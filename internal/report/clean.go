package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// maxText bounds one piece of text from outside, in runes: an error message may
// hold a whole log. Commands are longer than that only when they are hostile.
const maxText = 2000

// clean makes text harmless and keeps it readable: a line break or tab becomes a
// blank, and what does not print - control characters, escape sequences,
// marks that change the direction of writing, broken UTF-8 - is written out as
// an escape. Text without any of these is returned as it is.
func clean(s string) string {
	var b strings.Builder
	runes := 0
	for i, r := range s {
		if runes++; runes > maxText {
			b.WriteString("…")
			break
		}
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// asciiWords holds what our own and other people's text uses beyond ASCII, and
// how it is written in a mail.
var asciiWords = strings.NewReplacer(
	" · ", ", ", "·", "*", "→", "->", "−", "-", "–", "-", "—", "-", "×", "x", "±", "+/-", "µ", "u", "μ", "u",
	"…", "...", "≤", "<=", "≥", ">=", "‘", "'", "’", "'", "“", `"`, "”", `"`, "σ", "sigma", "▕", "[", "▏", "]",
)

// ascii writes cleaned text in ASCII; what has no known form becomes an escape.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range asciiWords.Replace(s) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// columns measures text as a terminal shows it. The condition is spelled out:
// the default one depends on the locale of the process.
var columns = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

func width(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return columns.StringWidth(s)
		}
	}
	return len(s) // cleaned ASCII has no character without a column
}

// cut returns the longest start of s that fits into n columns, and the rest.
// It takes at least one rune.
func cut(s string, n int) (head, tail string) {
	w := 0
	for i, r := range s {
		if w += columns.RuneWidth(r); i > 0 && w > n {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// shorten cuts s to n columns and marks the cut.
func shorten(s string, n int) string { return shortenWith(s, n, "…") }

func shortenWith(s string, n int, mark string) string {
	switch {
	case width(s) <= n:
		return s
	case n <= width(mark):
		return mark[:max(0, min(n*len(mark)/width(mark), len(mark)))]
	}
	head, _ := cut(s, n-width(mark))
	return head + mark
}

// markup escapes what means something in Markdown or HTML, mentions and links
// included: a device may be called <b>, an error may name @someone.
var markup = strings.NewReplacer(
	"->", "->", "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "#", "&#35;", "://", "&#58;//", "www.", "www&#46;",
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "!", `\!`, "$", `\$`,
)

// mdText writes text from outside so that Markdown shows it as it is.
func mdText(s string) string { return strings.TrimSpace(markup.Replace(clean(s))) }

// mdCode writes text from outside as a code span that also holds in a table
// cell, where a bar ends the cell even inside of code.
func mdCode(s string) string {
	s = strings.TrimSpace(clean(s))
	if s == "" {
		return ""
	}
	if !strings.Contains(s, "`") {
		return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	return fence + " " + strings.ReplaceAll(s, "|", `\|`) + " " + fence
}

func longestRun(s string, c rune) int {
	longest, run := 0, 0
	for _, r := range s {
		run++
		if r != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
