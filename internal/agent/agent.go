package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"
)

// Protocol is the version of the protocol. It rises with every change that an
// older program would not understand.
const Protocol = 1

// Hello is the first call and its answer.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of the program
}

// A VersionError says that controller and agent do not speak the same protocol.
type VersionError struct{ Controller, Agent Hello }

func (e *VersionError) Error() string {
	return fmt.Sprintf("controller speaks protocol %d (offlab %s), agent speaks protocol %d (offlab %s): install the same offlab on both",
		e.Controller.Protocol, e.Controller.Version, e.Agent.Protocol, e.Agent.Version)
}

// A Kind classifies an error so that it survives the wire.
type Kind string

// Kinds of errors.
const (
	KindUsage    Kind = "usage"    // the request makes no sense
	KindEnv      Kind = "env"      // the host lacks something, named
	KindBusy     Kind = "busy"     // another study holds the device
	KindGone     Kind = "gone"     // the agent, or its stream, is gone
	KindInternal Kind = "internal" // something of ours broke
)

// An Error is an error that came over the wire, or that is to go over it.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }

// KindOf classifies an error. Permission and absence are the environment's.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrNotExist):
		return KindEnv
	default:
		return KindInternal
	}
}

// A Method answers one call. Params are the caller's JSON.
type Method func(ctx context.Context, params json.RawMessage) (any, error)

// Func adapts a function of typed parameters to a Method. Unknown parameters
// are an error.
func Func[P, R any](f func(context.Context, P) (R, error)) Method {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var p P
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &p); err != nil {
				return nil, &Error{KindUsage, "parameters: " + err.Error()}
			}
		}
		return f(ctx, p)
	}
}

// Options of an agent.
type Options struct {
	Version  string
	Protocol int           // 0: Protocol
	Idle     time.Duration // the controller is taken for gone after this long; 0: 30 s
}

// errorCode is the JSON-RPC code of errors that carry a Kind in their data.
const errorCode = jrpc2.Code(1)

// Serve answers calls on the stream until it ends, the controller is silent for
// too long, or ctx is done. It closes w.
func Serve(ctx context.Context, r io.Reader, w io.WriteCloser, methods map[string]Method, o Options) error {
	if o.Protocol == 0 {
		o.Protocol = Protocol
	}
	if o.Idle == 0 {
		o.Idle = 30 * time.Second
	}
	if _, err := io.WriteString(w, banner+"\n"); err != nil {
		return err
	}
	s := &server{self: Hello{o.Protocol, o.Version}}
	s.touch()
	assign := handler.Map{"hello": s.hello, "ping": s.ping}
	for name, m := range methods {
		assign[name] = s.wrap(m)
	}
	srv := jrpc2.NewServer(assign, &jrpc2.ServerOptions{
		Concurrency: 16, // a ping must not wait for a load
		NewContext:  func() context.Context { return ctx },
	})
	srv.Start(&serverLine{line: line{bufio.NewReaderSize(r, 1<<16), w}})
	ended := make(chan error, 1)
	go func() { ended <- srv.Wait() }()
	return s.watch(ctx, srv, o.Idle, ended)
}

type server struct {
	self   Hello
	agreed atomic.Bool
	last   atomic.Int64 // of the last call, ns since epoch
}

func (s *server) touch() { s.last.Store(time.Now().UnixNano()) }

// watch waits for the end of the stream and ends the server when ctx is done or
// no call came for the idle time. It does not wait for a read that is still
// under way then: standard input may be one that cannot be interrupted.
func (s *server) watch(ctx context.Context, srv *jrpc2.Server, idle time.Duration, ended <-chan error) error {
	t := time.NewTicker(idle / 4)
	defer t.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			go srv.Stop()
			return ctx.Err()
		case now := <-t.C:
			if now.UnixNano()-s.last.Load() > int64(idle) {
				go srv.Stop()
				return fmt.Errorf("agent: the controller was silent for %v", idle)
			}
		}
	}
}

func (s *server) hello(_ context.Context, req *jrpc2.Request) (any, error) {
	var peer Hello
	if err := req.UnmarshalParams(&peer); err != nil {
		return nil, err
	}
	s.touch()
	s.agreed.Store(peer.Protocol == s.self.Protocol)
	return s.self, nil
}

func (s *server) ping(context.Context, *jrpc2.Request) (any, error) {
	s.touch()
	return true, nil
}

func (s *server) wrap(m Method) jrpc2.Handler {
	return func(ctx context.Context, req *jrpc2.Request) (any, error) {
		s.touch()
		defer s.touch()
		if !s.agreed.Load() {
			return nil, encodeError(&Error{KindUsage, "no agreement on the protocol: call hello first"})
		}
		res, err := m(ctx, json.RawMessage(req.ParamString()))
		if err != nil {
			return nil, encodeError(err)
		}
		return res, nil
	}
}

func encodeError(err error) error {
	return jrpc2.Errorf(errorCode, "%s", err.Error()).WithData(KindOf(err))
}

// A Client calls an agent.
type Client struct {
	rpc   *jrpc2.Client
	agent Hello
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// A NoAgentError says that the stream carried no agent. Before holds what it
// carried instead.
type NoAgentError struct {
	Before string
	Err    error
}

func (e *NoAgentError) Error() string {
	if e.Before == "" {
		return fmt.Sprintf("no agent answered: %v", e.Err)
	}
	return fmt.Sprintf("no agent answered: %v; got %.200q", e.Err, e.Before)
}

func (e *NoAgentError) Unwrap() error { return e.Err }

// Connect greets the agent at the other end of the stream. It returns when the
// agent has answered, or with the error of a stream that ended before; the
// caller bounds the wait by closing the stream.
func Connect(ctx context.Context, r io.Reader, w io.WriteCloser, self Hello) (*Client, error) {
	if self.Protocol == 0 {
		self.Protocol = Protocol
	}
	br := bufio.NewReaderSize(r, 1<<16)
	if before, err := skipToBanner(br); err != nil {
		return nil, &NoAgentError{before, err}
	}
	c := &Client{rpc: jrpc2.NewClient(&line{br, w}, nil)}
	if err := c.rpc.CallResult(ctx, "hello", self, &c.agent); err != nil {
		_ = c.rpc.Close() // the reason is known
		return nil, &NoAgentError{"", err}
	}
	if c.agent.Protocol != self.Protocol {
		_ = c.rpc.Close()
		return nil, &VersionError{self, c.agent}
	}
	ping, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.wg.Go(func() { c.ping(ping) })
	return c, nil
}

// Agent returns what the agent said of itself.
func (c *Client) Agent() Hello { return c.agent }

// ping keeps the agent from taking the controller for gone.
func (c *Client) ping(ctx context.Context) {
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if _, err := c.rpc.Call(ctx, "ping", nil); err != nil {
				return
			}
		}
	}
}

// Call calls a method and decodes its result into result, which may be nil.
// Errors of the agent are of type *Error; so is that of a stream that ended,
// with KindGone.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	rsp, err := c.rpc.Call(ctx, method, params)
	if err == nil && result != nil {
		err = rsp.UnmarshalResult(result)
	}
	var e *jrpc2.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.Code == errorCode:
		kind := KindInternal
		if json.Unmarshal(e.Data, &kind) != nil {
			kind = KindInternal
		}
		return &Error{kind, e.Message}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &e) && e.Code != jrpc2.InternalError:
		return &Error{KindInternal, method + ": " + e.Message}
	default:
		return &Error{KindGone, fmt.Sprintf("the agent is gone (%s: %v)", method, err)}
	}
}

// Close ends the stream, which makes the agent restore and go.
func (c *Client) Close() error {
	c.stop()
	err := c.rpc.Close()
	c.wg.Wait()
	return err
}
