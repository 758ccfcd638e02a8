package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/offlab/offlab/internal/app"
	"github.com/offlab/offlab/internal/report"
	"github.com/offlab/offlab/internal/runner"
)

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the columns of w, or other where w has none.
func terminalWidth(w io.Writer, other int) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return other
}

// progress shows how far a study is, on standard error: one line that is
// written over on a terminal, a line for each block elsewhere.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool // a terminal: overwrite
	quiet bool
	now   func() time.Time
	state report.LiveState
	since time.Time // when the state was told
	dirty bool      // the line on the screen is ours
	stop  chan struct{}
	wg    sync.WaitGroup
}

// redraw is how often the line moves between two slots.
const redraw = 200 * time.Millisecond

func newProgress(c *console, quiet bool) *progress {
	p := &progress{w: c.err, live: isTerminal(c.err), quiet: quiet, now: time.Now, stop: make(chan struct{})}
	if p.live && !quiet {
		p.wg.Go(p.tick)
	}
	return p
}

func (p *progress) observer() app.Observer {
	return app.Observer{Stage: p.stage, Progress: p.progress, Warn: p.warn}
}

func (p *progress) tick() {
	t := time.NewTicker(redraw)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// draw writes the line. The caller holds mu.
func (p *progress) draw() {
	if p.state.Phase == "" {
		return
	}
	st := p.state
	st.Elapsed = min(st.Elapsed+p.now().Sub(p.since).Seconds(), max(st.Budget, st.Elapsed))
	fmt.Fprintf(p.w, "\r%s\x1b[K", report.Live(terminalWidth(p.w, 80)-1, st))
	p.dirty = true
}

// clear takes the line off the screen. The caller holds mu.
func (p *progress) clear() {
	if p.dirty {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.dirty = false
	}
}

func (p *progress) stage(what string) {
	if p.quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live {
		fmt.Fprintf(p.w, "%s\n", what)
		return
	}
	fmt.Fprintf(p.w, "\r%s ...\x1b[K", what)
	p.dirty = true
}

func (p *progress) warn(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.w, "warning: %s\n", text)
}

func (p *progress) progress(r runner.Progress) {
	if p.quiet {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = report.LiveState{
		Elapsed: r.Elapsed, Budget: r.Budget, Block: r.Block, Slot: r.Slot,
		SlotsPerBlock: r.SlotsPerBlock, Arm: r.Arm, Phase: r.Phase, GoodputNow: r.Goodput, Verdicts: r.Verdicts,
	}
	p.since = p.now()
	switch {
	case p.live:
		p.draw()
	case r.Slot == r.SlotsPerBlock:
		fmt.Fprintln(p.w, report.LivePlain(p.state))
	}
}

// done takes the progress off the screen for good.
func (p *progress) done() {
	close(p.stop)
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
