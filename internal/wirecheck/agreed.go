package wirecheck

import "sync"

// Agreed holds what the two directions of a wire tell each other: the MSS that
// each end of a connection has announced. The zero value is ready to use, by
// several goroutines.
type Agreed struct {
	mu    sync.Mutex
	slots [agreedSlots]struct {
		key key
		mss int
	}
}

// agreedSlots bounds the connections; the later one of two in one slot is known.
const agreedSlots = 1024

// put notes the largest segment of the flow.
func (a *Agreed) put(k *key, mss int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.slots[k.hash()%agreedSlots]
	s.key, s.mss = *k, mss
}

// get returns it, or 0.
func (a *Agreed) get(k *key) int {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := &a.slots[k.hash()%agreedSlots]; s.key == *k {
		return s.mss
	}
	return 0
}
