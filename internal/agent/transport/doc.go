// Package transport connects a controller to an agent over a byte stream.
//
// Every transport is a child process of the controller whose standard input and
// output are the stream: the agent itself for a local host, a command given by
// the user, or the system's ssh program, so that the user's configuration, keys
// and jump hosts work.
package transport
