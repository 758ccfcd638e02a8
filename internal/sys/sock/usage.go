package sock

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Usage returns the CPU time of this process so far (getrusage). Softirqs are
// not in it, unless they ran in the tail of one of its system calls.
func Usage() (user, system time.Duration, err error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, 0, os.NewSyscallError("getrusage", err)
	}
	return time.Duration(ru.Utime.Nano()), time.Duration(ru.Stime.Nano()), nil
}

// CPUs returns the number of CPUs that the calling thread may run on, at
// least 1.
func CPUs() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 1
	}
	return max(1, set.Count())
}

// Buffer returns n bytes on pages of their own, present in memory and shared
// with nothing. The heap would do, but its placement among other objects
// changes from run to run, and with it the cache sets that the copy uses.
func Buffer(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	return b, os.NewSyscallError("mmap", err)
}

// FreeBuffer gives back what Buffer returned.
func FreeBuffer(b []byte) error { return os.NewSyscallError("munmap", unix.Munmap(b)) }
