package agent

import (
	"encoding/json"
	"sync"
	"time"
)

// serverLine is the agent's end of a stream. It lets through single requests
// that want an answer, which is all a controller sends, and holds back the end
// of the stream until the requests before it were answered: a jrpc2 server
// (1.3.6) that learns of the end with requests still queued dereferences nil.
type serverLine struct {
	line
	mu   sync.Mutex
	open int           // requests without an answer
	idle chan struct{} // closed when open falls to 0 after the end
	over bool
}

// drain bounds the wait for answers after the end of the stream: by then every
// request has left the queue, whether or not its method has returned.
const drain = time.Second

func (l *serverLine) Recv() ([]byte, error) {
	for {
		msg, err := l.line.Recv()
		if err != nil {
			l.wait()
			return nil, err
		}
		var req struct{ ID json.RawMessage }
		if json.Unmarshal(msg, &req) != nil || len(req.ID) == 0 || string(req.ID) == "null" {
			continue
		}
		l.mu.Lock()
		l.open++
		l.mu.Unlock()
		return msg, nil
	}
}

func (l *serverLine) Send(msg []byte) error {
	err := l.line.Send(msg)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.over && l.open == 0 {
		close(l.idle)
	}
	return err
}

func (l *serverLine) wait() {
	l.mu.Lock()
	l.over, l.idle = true, make(chan struct{})
	done := l.open <= 0
	l.mu.Unlock()
	if done {
		return
	}
	t := time.NewTimer(drain)
	defer t.Stop()
	select {
	case <-l.idle:
	case <-t.C:
	}
}
