package cpu

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Times is CPU time spent since boot, summed over all CPUs, in seconds.
type Times struct {
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal float64
}

// Busy returns the time in which a CPU did something, steal included: the
// hypervisor took it while this host wanted it.
func (t Times) Busy() float64 {
	return t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal
}

// Sub returns t − o.
func (t Times) Sub(o Times) Times {
	return Times{
		t.User - o.User, t.Nice - o.Nice, t.System - o.System, t.Idle - o.Idle,
		t.IOWait - o.IOWait, t.IRQ - o.IRQ, t.SoftIRQ - o.SoftIRQ, t.Steal - o.Steal,
	}
}

// hz is USER_HZ, the unit of /proc/stat. It is 100 on every architecture that Go
// runs on (include/asm-generic/param.h, Linux 6.18).
const hz = 100

// Host reads /proc/stat.
func Host() (Times, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Times{}, fmt.Errorf("cpu: %w", err)
	}
	return parseStat(b)
}

func parseStat(b []byte) (Times, error) {
	first, _, _ := bytes.Cut(b, []byte("\n"))
	f := strings.Fields(string(first))
	if len(f) < 9 || f[0] != "cpu" {
		return Times{}, fmt.Errorf("cpu: /proc/stat begins with %q", first)
	}
	var v [8]float64
	for i := range v {
		n, err := strconv.ParseUint(f[i+1], 10, 64)
		if err != nil {
			return Times{}, fmt.Errorf("cpu: /proc/stat: %w", err)
		}
		v[i] = float64(n) / hz
	}
	return Times{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]}, nil
}

// Info describes the machine.
type Info struct {
	Kernel   string `json:"kernel"`
	Hostname string `json:"hostname"`
	BootID   string `json:"boot_id"`
	CPUs     int    `json:"cpus"`
	Model    string `json:"model,omitempty"`
	Governor string `json:"governor,omitempty"`
}

// Describe reads what the machine is. What it does not say stays empty.
func Describe() (Info, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Info{}, fmt.Errorf("cpu: uname: %w", err)
	}
	return Info{
		Kernel:   unix.ByteSliceToString(u.Release[:]),
		Hostname: unix.ByteSliceToString(u.Nodename[:]),
		BootID:   readLine("/proc/sys/kernel/random/boot_id"),
		CPUs:     runtime.NumCPU(),
		Model:    model(),
		Governor: readLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
	}, nil
}

func readLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func model() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(line, ":")
		switch key = strings.TrimSpace(key); {
		case ok && (key == "model name" || key == "Model" || key == "cpu model"):
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Pin keeps every thread of this process, present and future, on one CPU.
func Pin(n int) error {
	var set unix.CPUSet
	set.Set(n)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return fmt.Errorf("cpu: pin to CPU %d: %w", n, err)
		}
	}
	return nil
}
