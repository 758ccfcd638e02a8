// Package host is what one host of a study can do, at both ends of the agent's
// protocol: [Server] does it, in the agent, and [Client] asks for it.
//
// Method names, parameters and results stand once, in [Client] and the table of
// [Server.Methods]; they are data of the packages that do the work.
package host
