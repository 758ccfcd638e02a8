package load

import (
	"slices"
	"time"

	"github.com/offlab/offlab/internal/sys/sock"
)

// A Snapshot is what one end has counted since it started. Counts only grow;
// see [Delta]. Taking one costs about a microsecond per stream, for tcp_info,
// and holds up no data.
type Snapshot struct {
	Elapsed   time.Duration `json:"elapsed_ns"`    // monotonic, since Listen or Dial was called
	UserCPU   time.Duration `json:"user_cpu_ns"`   // of the whole process (getrusage)
	SystemCPU time.Duration `json:"system_cpu_ns"` // likewise

	Bytes     uint64       `json:"bytes"` // of payload: accepted by, or read from, the kernel
	Calls     uint64       `json:"calls"` // writes or reads
	Sizes     [bins]uint64 `json:"sizes"` // the calls in bins of 16 KiB: (n-1)/16384, the last open
	PerStream []uint64     `json:"per_stream"`

	Corrupt    uint64      `json:"corrupt"` // wrong bytes; always 0 at the sender and without Verify
	Corruption *Corruption `json:"corruption,omitempty"`

	Connected int     `json:"connected"` // streams that were set up
	Dead      []Death `json:"dead,omitempty"`
	Error     string  `json:"error,omitempty"` // a failure of the load itself, set-up included

	Info Info `json:"info"`
}

// Info sums tcp_info over the streams. The counters are those of the kernel,
// widened to 64 bits; the rest describes the moment of the snapshot.
type Info struct {
	Streams int `json:"streams"` // that could be asked

	SegsOut      uint64 `json:"segs_out"`
	SegsIn       uint64 `json:"segs_in"`
	DataSegsOut  uint64 `json:"data_segs_out"`
	DataSegsIn   uint64 `json:"data_segs_in"`
	Retrans      uint64 `json:"retrans"` // segments
	Delivered    uint64 `json:"delivered"`
	DeliveredCE  uint64 `json:"delivered_ce"`
	BytesSent    uint64 `json:"bytes_sent"`
	BytesRetrans uint64 `json:"bytes_retrans"`
	BytesAcked   uint64 `json:"bytes_acked"`
	BytesIn      uint64 `json:"bytes_received"`
	DSACKDups    uint64 `json:"dsack_dups"`
	ReordSeen    uint64 `json:"reord_seen"`
	OutOfOrder   uint64 `json:"rcv_ooopack"`

	Busy          time.Duration `json:"busy_ns"`
	RwndLimited   time.Duration `json:"rwnd_limited_ns"`
	SndbufLimited time.Duration `json:"sndbuf_limited_ns"`

	SndCwnd  uint64        `json:"snd_cwnd"` // sum, in segments
	RTT      time.Duration `json:"rtt_ns"`   // mean of the smoothed times
	MinRTT   time.Duration `json:"min_rtt_ns"`
	SndMSS   uint32        `json:"snd_mss"` // smallest
	RcvMSS   uint32        `json:"rcv_mss"` // largest
	PMTU     uint32        `json:"pmtu"`    // smallest
	Unsent   uint64        `json:"notsent_bytes"`
	InFlight uint64        `json:"unacked"` // segments
}

// counters are the 32-bit counters of tcp_info, which wrap: segs_out of one
// stream at 40 Gbit/s within twenty minutes.
const counters = 9

// infoState widens the counters of one stream and keeps its last info.
type infoState struct {
	last sock.TCPInfo
	wide [counters]uint64
	ok   bool
}

func counts(i *sock.TCPInfo) [counters]uint32 {
	return [counters]uint32{
		i.SegsOut, i.SegsIn, i.DataSegsOut, i.DataSegsIn, i.TotalRetrans,
		i.Delivered, i.DeliveredCE, i.DSACKDups, i.RcvOOOPack,
	}
}

func (s *infoState) update(now sock.TCPInfo) {
	was := counts(&s.last)
	for k, v := range counts(&now) {
		s.wide[k] += uint64(v - was[k]) // modulo 2^32
	}
	s.last, s.ok = now, true
}

// refresh asks the kernel about a stream. The caller holds engine.mu.
func (s *stream) refresh() {
	fd, ok := s.socket()
	if !ok {
		return
	}
	var now sock.TCPInfo
	if err := fd.Info(&now); err == nil {
		s.info.update(now)
	}
}

func (i *Info) add(s *infoState) {
	if !s.ok {
		return
	}
	for k, sum := range []*uint64{
		&i.SegsOut, &i.SegsIn, &i.DataSegsOut, &i.DataSegsIn, &i.Retrans,
		&i.Delivered, &i.DeliveredCE, &i.DSACKDups, &i.OutOfOrder,
	} {
		*sum += s.wide[k]
	}
	l := &s.last
	i.ReordSeen += uint64(l.ReordSeen)
	i.BytesSent += l.BytesSent
	i.BytesRetrans += l.BytesRetrans
	i.BytesAcked += l.BytesAcked
	i.BytesIn += l.BytesReceived
	i.Busy += micro(l.BusyTime)
	i.RwndLimited += micro(l.RwndLimited)
	i.SndbufLimited += micro(l.SndbufLimited)
	i.SndCwnd += uint64(l.SndCwnd)
	i.Unsent += uint64(l.NotsentBytes)
	i.InFlight += uint64(l.Unacked)
	i.RTT += micro(uint64(l.RTT)) // the sum; mean divides
	if i.Streams == 0 {
		i.MinRTT, i.SndMSS, i.PMTU = micro(uint64(l.MinRTT)), l.SndMSS, l.PMTU
	}
	i.MinRTT = min(i.MinRTT, micro(uint64(l.MinRTT)))
	i.SndMSS, i.PMTU = min(i.SndMSS, l.SndMSS), min(i.PMTU, l.PMTU)
	i.RcvMSS = max(i.RcvMSS, l.RcvMSS)
	i.Streams++
}

func micro(us uint64) time.Duration { return time.Duration(us) * time.Microsecond }

// snapshot counts everything, tcp_info of every stream included.
func (e *engine) snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.result != nil {
		return e.result.Final
	}
	s := Snapshot{PerStream: make([]uint64, len(e.streams))}
	s.Elapsed = time.Since(e.start)
	for k, st := range e.streams {
		s.PerStream[k] = st.bytes.Load()
		s.Bytes += s.PerStream[k]
	}
	var err error
	if s.UserCPU, s.SystemCPU, err = sock.Usage(); err != nil && e.err == nil {
		e.err = err
	}
	for _, w := range e.workers {
		for k := range s.Sizes {
			s.Sizes[k] += w.sizes[k].Load()
		}
	}
	for _, st := range e.streams {
		s.addStream(st)
	}
	if s.Info.Streams > 0 {
		s.Info.RTT /= time.Duration(s.Info.Streams)
	}
	if e.err != nil {
		s.Error = e.err.Error()
	}
	return s
}

func (s *Snapshot) addStream(st *stream) {
	if _, ok := st.socket(); ok {
		s.Connected++
	}
	s.Calls += st.calls.Load()
	s.Corrupt += st.bad.Load()
	if c := st.first.Load(); c != nil && s.Corruption == nil {
		s.Corruption = c
	}
	if d := st.death.Load(); d != nil {
		s.Dead = append(s.Dead, *d)
	}
	st.refresh()
	s.Info.add(&st.info)
}

// A Window is what happened between two snapshots of one end.
type Window struct {
	Elapsed   time.Duration `json:"elapsed_ns"`
	UserCPU   time.Duration `json:"user_cpu_ns"`
	SystemCPU time.Duration `json:"system_cpu_ns"`

	Bytes   uint64       `json:"bytes"`
	Calls   uint64       `json:"calls"`
	Sizes   [bins]uint64 `json:"sizes"`
	Corrupt uint64       `json:"corrupt"`
	// Corruption is the first one known, be it from before the window.
	Corruption *Corruption `json:"corruption,omitempty"`

	// Info has the difference of the counters, and the moment of the second
	// snapshot for the rest.
	Info Info `json:"info"`

	// Idle is the number of streams that moved nothing, Slowest and Fastest
	// what the extremes moved.
	Idle    int    `json:"idle"`
	Slowest uint64 `json:"slowest"`
	Fastest uint64 `json:"fastest"`
	// Void says why this window measures nothing: a dead stream, a stream that
	// was missing, a failure of the load. Empty: it is good.
	Void string `json:"void,omitempty"`
}

// BitsPerSecond returns the goodput: payload over time.
func (w Window) BitsPerSecond() float64 {
	if w.Elapsed <= 0 {
		return 0
	}
	return float64(w.Bytes) * 8 / w.Elapsed.Seconds()
}

// CPU returns the CPU time of the process.
func (w Window) CPU() time.Duration { return w.UserCPU + w.SystemCPU }

// Delta returns what happened between a and b, two snapshots of the same end.
func Delta(a, b Snapshot) Window {
	w := Window{
		Elapsed:    b.Elapsed - a.Elapsed,
		UserCPU:    b.UserCPU - a.UserCPU,
		SystemCPU:  b.SystemCPU - a.SystemCPU,
		Bytes:      b.Bytes - a.Bytes,
		Calls:      b.Calls - a.Calls,
		Corrupt:    b.Corrupt - a.Corrupt,
		Corruption: b.Corruption,
		Info:       b.Info.since(a.Info),
		Void:       void(a, b),
	}
	for k := range w.Sizes {
		w.Sizes[k] = b.Sizes[k] - a.Sizes[k]
	}
	if len(a.PerStream) != len(b.PerStream) || len(b.PerStream) == 0 {
		return w
	}
	moved := make([]uint64, len(b.PerStream))
	for k := range moved {
		moved[k] = b.PerStream[k] - a.PerStream[k]
		if moved[k] == 0 {
			w.Idle++
		}
	}
	w.Slowest, w.Fastest = slices.Min(moved), slices.Max(moved)
	return w
}

// NoData is the Void of a window in which the streams stood and moved nothing:
// it may be what a broken offload does.
const NoData = "no data moved"

func void(a, b Snapshot) string {
	switch {
	case b.Error != "":
		return b.Error
	case len(b.Dead) > 0:
		return deaths(b.Dead, len(b.PerStream))
	case len(a.PerStream) != len(b.PerStream) || b.Elapsed < a.Elapsed:
		return "the snapshots are not two of one end, in order"
	case a.Connected < len(a.PerStream):
		return "not all streams stood at the start"
	case b.Bytes == a.Bytes:
		return NoData
	}
	return ""
}

// since returns i with the counters of o taken off.
func (i *Info) since(o Info) Info {
	d := *i
	for _, p := range []struct{ now, was *uint64 }{
		{&d.SegsOut, &o.SegsOut},
		{&d.SegsIn, &o.SegsIn},
		{&d.DataSegsOut, &o.DataSegsOut},
		{&d.DataSegsIn, &o.DataSegsIn},
		{&d.Retrans, &o.Retrans},
		{&d.Delivered, &o.Delivered},
		{&d.DeliveredCE, &o.DeliveredCE},
		{&d.BytesSent, &o.BytesSent},
		{&d.BytesRetrans, &o.BytesRetrans},
		{&d.BytesAcked, &o.BytesAcked},
		{&d.BytesIn, &o.BytesIn},
		{&d.DSACKDups, &o.DSACKDups},
		{&d.ReordSeen, &o.ReordSeen},
		{&d.OutOfOrder, &o.OutOfOrder},
	} {
		*p.now -= *p.was
	}
	d.Busy -= o.Busy
	d.RwndLimited -= o.RwndLimited
	d.SndbufLimited -= o.SndbufLimited
	return d
}
