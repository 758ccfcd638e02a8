// Package agent is the protocol between the controller of a study and the
// agent that runs on every host, local ones included.
//
// The protocol is JSON-RPC 2.0, one message a line, over any byte stream. An
// agent writes one banner line first; a client passes over whatever stands
// before it (a login shell's greeting, a boot log), within limits. Then the two
// exchange their protocol versions with the call "hello", and either refuses
// the other when they differ.
//
// An agent lives as long as its stream: when the stream ends, or nothing comes
// for [Options.Idle], Serve returns, and whoever called it puts back what was
// changed on the host. Closing the stream is therefore a restore.
package agent
