package softnic

// Step runs one step of each lane, and reports whether anything was done. For
// tests that play the goroutines themselves.
func (n *NIC) Step() (busy bool, err error) {
	for _, l := range n.lanes {
		b, err := l.step()
		l.publish()
		if err != nil {
			return true, err
		}
		busy = busy || b
	}
	return busy, nil
}

// Frames returns how many frames the lanes have allocated.
func (n *NIC) Frames() (made int) {
	for _, l := range n.lanes {
		made += int(l.pool.made.Load())
	}
	return made
}

// Free returns the free descriptors of a lane and whether its queue is stopped.
func (n *NIC) Free(lane int) (int, bool) { return n.lanes[lane].tx.free, n.lanes[lane].tx.stopped }
