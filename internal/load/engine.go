package load

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// An engine is what both ends have in common: streams, the workers that move
// their data, and the sampler.
type engine struct {
	spec     Spec
	start    time.Time
	streams  []*stream
	workers  []*worker
	stopping atomic.Bool
	halt     chan struct{} // closed by stop
	wakers   []func()      // called by stop: what else waits in a poller
	wg       sync.WaitGroup
	once     sync.Once // stop

	mu      sync.Mutex // sockets of streams stay open while it is held
	err     error      // the first failure of the engine itself
	samples ring
	result  *Result // set by stop
}

func newEngine(spec Spec, worker func(*engine) (*worker, error)) (*engine, error) {
	e := &engine{spec: spec, start: time.Now(), streams: newStreams(spec), halt: make(chan struct{})}
	for range spec.Workers {
		w, err := worker(e)
		if err != nil {
			return nil, errors.Join(err, e.closeWorkers())
		}
		e.workers = append(e.workers, w)
	}
	return e, nil
}

// run starts the workers and the sampler.
func (e *engine) run() {
	for _, w := range e.workers {
		e.wg.Go(w.run)
	}
	e.wg.Go(e.sample)
}

// add hands a stream whose socket is set to its worker.
func (e *engine) add(id int) error { return e.workers[id%len(e.workers)].add(e.streams[id]) }

// fail records an error of the engine itself, which no stream can be blamed
// for. A snapshot shows it.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

// stop ends the traffic, waits for all goroutines, closes everything and says
// what there was. The second call returns the result of the first.
func (e *engine) stop() Result {
	e.once.Do(e.shutdown)
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.result
}

func (e *engine) shutdown() {
	e.stopping.Store(true)
	for _, w := range e.workers {
		w.poller.Wake()
	}
	for _, wake := range e.wakers {
		wake()
	}
	final := e.snapshot() // before the sockets go: the last tcp_info
	close(e.halt)
	e.wg.Wait()

	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.closeWorkers()
	for _, s := range e.streams {
		if fd, ok := s.socket(); ok {
			s.sock.Store(noSocket)
			err = errors.Join(err, fd.Abort())
		}
	}
	if final.Error == "" && err != nil {
		final.Error = err.Error()
	}
	e.result = &Result{Final: final, Samples: e.samples.all()}
}

func (e *engine) closeWorkers() error {
	var errs []error
	for _, w := range e.workers {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}
