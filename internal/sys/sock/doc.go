// Package sock is the socket layer of the loads: TCP sockets by raw system
// calls, epoll, tcp_info and CPU affinity.
//
// The loads do not use package net for their data. A read through it costs a
// lock, a deadline check and a park in the runtime's poller, and has no
// MSG_TRUNC. Here the data calls ([Socket.Send], [Socket.Recv],
// [Socket.Discard]) never block: they are made without telling the scheduler,
// which saves the hand-over of the processor on each call, and that is only
// right for calls that return by themselves. The one call that blocks is
// [Poller.Wait], and it does tell the scheduler.
//
// A [Socket] is a file descriptor and nothing else: who opens it closes it,
// once, when no other goroutine uses it any more.
package sock
