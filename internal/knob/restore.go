package knob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/proc"
	"github.com/offlab/offlab/internal/sys/rtnl"
)

// An Outcome is what became of a state that was left.
type Outcome string

// The outcomes. After those but InUse, Elsewhere and Failed the state file is
// gone.
const (
	Restored  Outcome = "restored"  // the device is as it was
	Stale     Outcome = "stale"     // of an earlier boot, which undid it
	Gone      Outcome = "gone"      // the device is no more
	InUse     Outcome = "in-use"    // the study runs
	Elsewhere Outcome = "elsewhere" // of another network namespace; run there
	Failed    Outcome = "failed"    // something is not as it was
)

// A Result is what became of one state file.
type Result struct {
	File    string  `json:"file"`
	Device  string  `json:"device"`
	PID     int     `json:"pid"` // of the process that left it
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`
}

func (r Result) String() string {
	s := fmt.Sprintf("%s: %s (study of process %d)", r.Device, r.Outcome, r.PID)
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	return s
}

// Restore puts back what interrupted studies left changed in the network
// namespace of the calling thread, and removes what no longer means anything.
// A directory that does not exist holds nothing. The error says what failed;
// the results are complete even so.
func Restore(stateDir string) ([]Result, error) {
	files, err := filepath.Glob(filepath.Join(stateDir, "*"+stateSuffix))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var results []Result
	var errs []error
	for _, file := range files {
		r := restoreLocked(file)
		if r.Outcome == Failed {
			errs = append(errs, errors.New(r.String()))
		}
		results = append(results, r)
	}
	return results, errors.Join(errs...)
}

// restoreLocked restores one file, unless its study runs.
func restoreLocked(file string) Result {
	lock, err := proc.Lock(lockOf(file))
	if held, ok := errors.AsType[*proc.HeldError](err); ok {
		r := Result{File: file, PID: held.PID, Outcome: InUse}
		if st, err := readState(file); err == nil {
			r.Device = st.Device
		}
		return r
	}
	if err != nil {
		return Result{File: file, Outcome: Failed, Detail: err.Error()}
	}
	r := restoreOpen(file)
	if err := proc.Unlock(lock); err != nil && r.Detail == "" {
		r.Detail = err.Error()
	}
	return r
}

// restoreOpen restores one file whose lock is held.
func restoreOpen(file string) Result {
	fail := func(err error) Result { return Result{File: file, Outcome: Failed, Detail: err.Error()} }
	at, err := here(0)
	if err != nil {
		return fail(err)
	}
	dev, err := openDevice(ethtool.Options{})
	if err != nil {
		return fail(err)
	}
	r := restoreFile(file, at, dev)
	if err := dev.close(); err != nil && r.Detail == "" {
		r.Detail = err.Error()
	}
	return r
}

// restoreFile puts back what one state file holds, through the sockets of dev.
func restoreFile(file string, at place, dev *device) Result {
	r := Result{File: file, Outcome: Failed}
	st, err := readState(file)
	if err != nil {
		r.Detail = err.Error()
		return r
	}
	r.Device, r.PID = st.Device, st.PID
	switch {
	case st.Boot != at.boot:
		r.Outcome = Stale
	case st.NetNS != at.netns:
		r.Outcome = Elsewhere
		return r
	default:
		r.Outcome, r.Detail = restoreState(st, dev)
	}
	if r.Outcome == Failed {
		return r
	}
	if err := removeState(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Outcome, r.Detail = Failed, err.Error()
	}
	return r
}

// restoreState puts a state back on the device it is of.
func restoreState(st *state, dev *device) (Outcome, string) {
	d := *dev
	d.index = st.Index
	if l, err := d.rt.LinkByIndex(st.Index); err == nil && !st.sameDevice(l) {
		d.index = -1 // the number went to another device
	}
	err := d.putBack(st)
	switch {
	case err == nil:
		return Restored, ""
	case errors.Is(err, ErrNoDevice):
		return Gone, err.Error()
	}
	return Failed, err.Error()
}

// sameDevice reports whether a device with the index of the state is the one
// that the state is of. Within a boot the kernel gives an index again only when
// it is told to.
func (st *state) sameDevice(l rtnl.Link) bool {
	if st.Perm != "" || l.PermMAC != "" {
		return st.Perm == l.PermMAC
	}
	return st.Device == l.Name || st.MAC == l.MAC
}
