package sock_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/offlab/offlab/internal/sys/sock"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, addr netip.AddrPort, o sock.Options) (sock.Socket, netip.AddrPort) {
	t.Helper()
	s, err := sock.Listen(addr, 8, o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	at, err := s.LocalAddr()
	must(t, err)
	return s, at
}

func poller(t *testing.T) *sock.Poller {
	t.Helper()
	p, err := sock.NewPoller(8)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

// ready waits until the only socket of a poller can be used.
func ready(t *testing.T, s sock.Socket, want sock.Interest) {
	t.Helper()
	p := poller(t)
	must(t, p.Add(s, want, 3))
	ev, woken, err := p.Wait(nil, 5*time.Second)
	must(t, err)
	if len(ev) != 1 || ev[0].ID != 3 || woken {
		t.Fatalf("Wait = %v, %v, want one event of ID 3", ev, woken)
	}
	must(t, p.Remove(s))
}

// pair returns the two ends of a connection.
func pair(t *testing.T, o sock.Options) (client, server sock.Socket) {
	t.Helper()
	l, at := listen(t, loopback, o)
	client, err := sock.Connect(at, o)
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	ready(t, l, sock.ForRead)
	server, ok, err := l.Accept()
	must(t, err)
	if !ok {
		t.Fatal("Accept: nothing, after the listener was readable")
	}
	t.Cleanup(func() { must(t, server.Close()) })
	ready(t, client, sock.ForWrite)
	must(t, client.Err())
	return client, server
}

func TestSendRecvDiscard(t *testing.T) {
	c, s := pair(t, sock.Options{})
	buf := make([]byte, 100)
	if n, e := s.Recv(buf); n != 0 || e != sock.ErrAgain {
		t.Fatalf("Recv of nothing = %d, %v, want ErrAgain", n, e)
	}
	if n, e := c.Send([]byte("offload lab")); n != 11 || e != 0 {
		t.Fatalf("Send = %d, %v", n, e)
	}
	ready(t, s, sock.ForRead)
	if n, e := s.Discard(4); n != 4 || e != 0 {
		t.Fatalf("Discard = %d, %v, want 4", n, e)
	}
	if n, e := s.Recv(buf); e != 0 || !bytes.Equal(buf[:n], []byte("oad lab")) {
		t.Fatalf("Recv = %q, %v, want what Discard left", buf[:n], e)
	}
	// Fill the pipe: the sender is told, not blocked.
	big := make([]byte, 1<<20)
	total := 0
	for {
		n, e := c.Send(big)
		if e == sock.ErrAgain {
			break
		}
		if e != 0 {
			t.Fatal(e)
		}
		total += n
	}
	for total > 0 {
		ready(t, s, sock.ForRead)
		n, e := s.Discard(1 << 20)
		if e != 0 {
			t.Fatalf("Discard = %v with %d bytes missing", e, total)
		}
		total -= n
	}
	if n, e := s.Discard(1); n != 0 || e != sock.ErrAgain {
		t.Fatalf("Discard of nothing = %d, %v, want ErrAgain", n, e)
	}
}

func TestEndOfStream(t *testing.T) {
	l, at := listen(t, loopback, sock.Options{})
	for _, abort := range []bool{false, true} {
		c, err := sock.Connect(at, sock.Options{})
		must(t, err)
		ready(t, l, sock.ForRead)
		s, _, err := l.Accept()
		must(t, err)
		ready(t, c, sock.ForWrite)
		want := sock.Errno(0)
		if abort {
			want = sock.ErrReset
			must(t, c.Abort())
		} else {
			must(t, c.Close())
		}
		ready(t, s, sock.ForRead)
		if n, e := s.Recv(make([]byte, 8)); n != 0 || e != want {
			t.Errorf("abort %v: Recv = %d, %v, want 0, %v", abort, n, e, want)
		}
		must(t, s.Close())
	}
}

func TestRefused(t *testing.T) {
	l, err := sock.Listen(loopback, 1, sock.Options{})
	must(t, err)
	at, err := l.LocalAddr()
	must(t, err)
	must(t, l.Close())
	c, err := sock.Connect(at, sock.Options{})
	if err == nil {
		defer func() { must(t, c.Close()) }()
		ready(t, c, sock.ForWrite)
		err = c.Err()
	}
	if !errors.Is(err, sock.ErrRefused) {
		t.Errorf("connect to a closed port = %v, want ErrRefused", err)
	}
}

func TestOptions(t *testing.T) {
	c, s := pair(t, sock.Options{MSS: 700, SendBuffer: 20000, ReceiveBuffer: 30000, Congestion: "reno", UserTimeout: time.Second})
	for _, x := range []sock.Socket{c, s} {
		snd, rcv, err := x.Buffers()
		must(t, err)
		if snd != 40000 || rcv != 60000 { // socket(7): the kernel doubles
			t.Errorf("buffers = %d, %d, want 40000, 60000", snd, rcv)
		}
		name, err := x.Congestion()
		must(t, err)
		if name != "reno" {
			t.Errorf("congestion control = %q, want reno", name)
		}
		var i sock.TCPInfo
		must(t, x.Info(&i))
		if i.SndMSS > 700 || i.SndMSS < 680 { // less the timestamp option
			t.Errorf("snd_mss = %d, want just below 700", i.SndMSS)
		}
	}
	if _, err := sock.Connect(loopback, sock.Options{Congestion: "nonesuch"}); err == nil {
		t.Error("an unknown congestion control was taken")
	}
	if _, err := sock.Listen(loopback, 1, sock.Options{MSS: 1}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("Listen with MSS 1 = %v, want EINVAL", err)
	}
}

// TestTCPInfo compares the struct with the one that x/sys generates from the
// kernel's header, and what Info reads with what x/sys reads.
func TestTCPInfo(t *testing.T) {
	var ours sock.TCPInfo
	var theirs unix.TCPInfo
	for _, f := range []struct {
		name       string
		got, wants uintptr
	}{
		{"Rto", unsafe.Offsetof(ours.RTO), unsafe.Offsetof(theirs.Rto)},
		{"Rtt", unsafe.Offsetof(ours.RTT), unsafe.Offsetof(theirs.Rtt)},
		{"Total_retrans", unsafe.Offsetof(ours.TotalRetrans), unsafe.Offsetof(theirs.Total_retrans)},
		{"Pacing_rate", unsafe.Offsetof(ours.PacingRate), unsafe.Offsetof(theirs.Pacing_rate)},
		{"Segs_out", unsafe.Offsetof(ours.SegsOut), unsafe.Offsetof(theirs.Segs_out)},
		{"Data_segs_out", unsafe.Offsetof(ours.DataSegsOut), unsafe.Offsetof(theirs.Data_segs_out)},
		{"Sndbuf_limited", unsafe.Offsetof(ours.SndbufLimited), unsafe.Offsetof(theirs.Sndbuf_limited)},
		{"Delivered_ce", unsafe.Offsetof(ours.DeliveredCE), unsafe.Offsetof(theirs.Delivered_ce)},
		{"Bytes_retrans", unsafe.Offsetof(ours.BytesRetrans), unsafe.Offsetof(theirs.Bytes_retrans)},
		{"Rehash", unsafe.Offsetof(ours.Rehash), unsafe.Offsetof(theirs.Rehash)},
		{"Total_rto_time", unsafe.Offsetof(ours.TotalRTOTime), unsafe.Offsetof(theirs.Total_rto_time)},
		{"Received_ce_bytes", unsafe.Offsetof(ours.ReceivedCEBytes), unsafe.Offsetof(theirs.Received_ce_bytes)},
	} {
		if f.got != f.wants {
			t.Errorf("offset of %s = %d, want %d", f.name, f.got, f.wants)
		}
	}
	c, s := pair(t, sock.Options{})
	if n, e := c.Send(make([]byte, 5000)); n != 5000 || e != 0 {
		t.Fatalf("Send = %d, %v", n, e)
	}
	ready(t, s, sock.ForRead)
	must(t, s.Info(&ours))
	ref, err := unix.GetsockoptTCPInfo(int(s), unix.IPPROTO_TCP, unix.TCP_INFO)
	must(t, err)
	if ours.BytesReceived != 5000 || ours.BytesReceived != ref.Bytes_received || ours.SegsIn != ref.Segs_in ||
		ours.RcvMSS != ref.Rcv_mss || ours.SndCwnd != ref.Snd_cwnd || ours.State != ref.State {
		t.Errorf("Info = %+v, x/sys reads %+v", ours, *ref)
	}
	if !ours.Has(unsafe.Offsetof(ours.BytesReceived)+8) || ours.Has(1<<20) {
		t.Error("Has does not tell what the kernel filled")
	}
}

func TestLowWater(t *testing.T) {
	c, s := pair(t, sock.Options{})
	must(t, s.SetLowWater(1000))
	send := func(n int) {
		if got, e := c.Send(make([]byte, n)); got != n || e != 0 {
			t.Fatalf("Send = %d, %v", got, e)
		}
	}
	p := poller(t)
	must(t, p.Add(s, sock.ForRead, 1))
	send(999)
	if ev, _, err := p.Wait(nil, 20*time.Millisecond); err != nil || len(ev) != 0 {
		t.Errorf("999 bytes: Wait = %v, %v, want nothing", ev, err)
	}
	send(1)
	if ev, _, err := p.Wait(nil, 5*time.Second); err != nil || len(ev) != 1 {
		t.Errorf("1000 bytes: Wait = %v, %v, want an event", ev, err)
	}
}

func TestPollerWake(t *testing.T) {
	p, err := sock.NewPoller(1)
	must(t, err)
	go p.Wake()
	if ev, woken, err := p.Wait(nil, -1); err != nil || !woken || len(ev) != 0 {
		t.Errorf("Wait = %v, %v, %v, want to be woken", ev, woken, err)
	}
	if _, woken, err := p.Wait(nil, time.Microsecond); err != nil || woken {
		t.Errorf("second Wait = %v, %v, want the timeout", woken, err)
	}
	must(t, p.Close())
	p.Wake() // must not write to a descriptor that is somebody else's by now
}

func TestUsage(t *testing.T) {
	u0, s0, err := sock.Usage()
	must(t, err)
	for {
		u, s, err := sock.Usage()
		must(t, err)
		if u+s > u0+s0 {
			break
		}
	}
	if n := sock.CPUs(); n < 1 {
		t.Errorf("CPUs = %d", n)
	}
	b, err := sock.Buffer(100000)
	must(t, err)
	b[99999] = 1
	must(t, sock.FreeBuffer(b))
}

func TestIPv6(t *testing.T) {
	_, at := listen(t, netip.MustParseAddrPort("[::1]:0"), sock.Options{})
	c, err := sock.Connect(at, sock.Options{})
	must(t, err)
	ready(t, c, sock.ForWrite)
	must(t, errors.Join(c.Err(), c.Close()))
	if _, err := sock.Connect(netip.MustParseAddrPort("[fe80::1%nonesuch0]:9"), sock.Options{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("Connect(unknown zone) = %v, want EINVAL", err)
	}
}
