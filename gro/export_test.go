package gro

// Flows returns how many flows have a buffer.
func (e *Engine) Flows() int { return len(e.flows) }
