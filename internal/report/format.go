package report

import (
	"io"
	"strings"

	"github.com/offlab/offlab/internal/catalog"
	"github.com/offlab/offlab/internal/study"
)

// Options say how a report is rendered. The zero value suits a file.
type Options struct {
	Width int  // columns; 0 means 80, and fewer than 40 are taken as 40
	Color bool // the output is a terminal that shows colours
}

// Widths in columns.
const (
	defaultWidth = 80
	minWidth     = 40
	mailWidth    = 72 // what quoting in a mail leaves of 80 columns
)

func (o Options) width() int {
	if o.Width == 0 {
		return defaultWidth
	}
	return max(o.Width, minWidth)
}

// A Format is one way to write a study.
type Format struct {
	name, about string
	extension   string
	render      func(io.Writer, *study.Study, Options) error
}

// Name returns the name used on the command line.
func (f Format) Name() string { return f.name }

// About describes the format in one line.
func (f Format) About() string { return f.about }

// Extension returns the ending of file names that stand for the format, with
// its dot.
func (f Format) Extension() string { return f.extension }

// Render writes the study to w. The study is not changed.
func (f Format) Render(w io.Writer, s *study.Study, o Options) error { return f.render(w, s, o) }

// Formats is the catalog of formats.
var Formats = catalog.New("report format",
	Format{"bench", "Go benchmark format, a line for each slot: benchstat -col /value", ".bench", renderBench},
	Format{"html", "a page of its own: answers, how the interval shrank, figures, proof", ".html", renderHTML},
	Format{"json", "the study file, whose keys other programs may rely on", ".json", renderJSON},
	Format{"mail", "a block to paste under a patch: 72 columns, ASCII, no colour", ".mail", renderMail},
	Format{"md", "Markdown tables for an issue or a wiki", ".md", renderMarkdown},
	Format{"text", "for a terminal: one screen for one verdict", ".txt", renderText},
)

// Find returns the format of the given name. The error of an unknown name lists
// the names there are.
func Find(name string) (Format, error) { return Formats.Find(name) }

// FindByPath returns the format that the ending of a file's name stands for.
func FindByPath(path string) (Format, bool) {
	for _, f := range Formats.All() {
		if strings.HasSuffix(path, f.extension) {
			return f, true
		}
	}
	return Format{}, false
}

func renderJSON(w io.Writer, s *study.Study, _ Options) error { return study.Encode(w, s) }
