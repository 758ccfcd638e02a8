// Package bpf attaches small programs to network devices: tags on the way out
// and in, and counts of what passes.
//
// The programs are written in the assembler of cilium/ebpf, so that nothing is
// compiled and nothing generated is checked in. They attach by tcx (Linux 6.6)
// and live as long as the link that is returned, and no longer than the process:
// a crash takes them off.
package bpf
