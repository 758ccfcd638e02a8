package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Endings are the signals that ask a program to end: it puts back what it
// changed and goes.
var Endings = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}
