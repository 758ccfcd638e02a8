package load

import (
	"time"

	"github.com/offlab/offlab/internal/sys/sock"
)

// A Sample is one point of the time series of a load. Its figures count from
// the start. It is for progress and plots: samples of one run depend on each
// other, and the unit of all statistics is the slot.
type Sample struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	CPU     time.Duration `json:"cpu_ns"`
	Bytes   uint64        `json:"bytes"`
	Corrupt uint64        `json:"corrupt,omitempty"`
	// Retrans, SndCwnd and RTT are those of tcp_info over the first
	// sampledStreams streams: asking a thousand would cost a percent of a CPU.
	Retrans uint64        `json:"retrans"`
	SndCwnd uint64        `json:"snd_cwnd"`
	RTT     time.Duration `json:"rtt_ns"`
}

// A Result is what an end has counted when it was stopped.
type Result struct {
	Final   Snapshot `json:"final"`
	Samples []Sample `json:"samples"`
}

const (
	sampleEvery    = 100 * time.Millisecond
	sampledStreams = 32
	ringSize       = 3000 // five minutes
)

// sample takes samples until the engine stops.
func (e *engine) sample() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.halt:
			return
		case <-tick.C:
			e.takeSample()
		}
	}
}

func (e *engine) takeSample() {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Sample{Elapsed: time.Since(e.start)}
	for _, st := range e.streams {
		s.Bytes += st.bytes.Load()
		s.Corrupt += st.bad.Load()
	}
	if user, system, err := sock.Usage(); err == nil {
		s.CPU = user + system
	}
	var info Info
	for _, st := range e.streams[:min(len(e.streams), sampledStreams)] {
		st.refresh()
		info.add(&st.info)
	}
	s.Retrans, s.SndCwnd = info.Retrans, info.SndCwnd
	if info.Streams > 0 {
		s.RTT = info.RTT / time.Duration(info.Streams)
	}
	e.samples.push(s)
}

// A ring keeps the last ringSize samples.
type ring struct {
	buf  []Sample
	next int // where the next one goes once buf is full
}

func (r *ring) push(s Sample) {
	if len(r.buf) < ringSize {
		r.buf = append(r.buf, s)
		return
	}
	r.buf[r.next] = s
	r.next = (r.next + 1) % ringSize
}

// all returns the samples, oldest first.
func (r *ring) all() []Sample {
	out := make([]Sample, 0, len(r.buf))
	return append(append(out, r.buf[r.next:]...), r.buf[:r.next]...)
}
