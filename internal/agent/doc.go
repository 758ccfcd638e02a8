// Package agent is the program that runs on every host, and the protocol it speaks.
package agent
