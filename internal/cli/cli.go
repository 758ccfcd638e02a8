package cli

import "io"

// Exit statuses of every command.
const (
	ExitOK      = 0 // done, and every verdict is good
	ExitVerdict = 1 // a verdict says wrong or worse
	ExitUsage   = 2 // the arguments do not make sense
	ExitError   = 3 // something of ours broke
	ExitEnv     = 4 // the environment lacks something, named
)

// Main runs the offlab command and returns its exit status.
func Main(_ []string, _ io.Reader, _, _ io.Writer) int { return ExitUsage }
