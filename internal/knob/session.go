package knob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/offlab/offlab/internal/catalog"
	"github.com/offlab/offlab/internal/sys/ethtool"
	"github.com/offlab/offlab/internal/sys/proc"
	"github.com/offlab/offlab/internal/sys/rtnl"
	"github.com/offlab/offlab/internal/sys/sysctl"
)

// Causes that callers ask for with [errors.Is]. A refusal for lack of rights
// is [io/fs.ErrPermission].
var (
	// ErrUnsupported says that the driver or the kernel lacks a value.
	ErrUnsupported = errors.ErrUnsupported
	// ErrNoDevice says that the device is gone.
	ErrNoDevice = rtnl.ErrNoDevice
	// ErrClosed says that the session has ended.
	ErrClosed = os.ErrClosed
)

// A BusyError says that another study has the device.
type BusyError struct {
	Device string
	PID    int // 0 where that is not known
}

func (e *BusyError) Error() string {
	if e.PID == 0 {
		return e.Device + " is in another study"
	}
	return fmt.Sprintf("%s is in another study, of process %d", e.Device, e.PID)
}

// A Session is the one right to change a device, until it is restored. It may
// be used by several goroutines, one call at a time.
type Session struct {
	// Leftover is what became of the state that an interrupted study of the
	// device had left, or nil where there was none.
	Leftover *Result

	mu       sync.Mutex
	dev      *device
	lock     *os.File
	file     string
	base     *state            // what the device was
	baseline snapshot          // the same, as read
	commands map[string]string // command factors by name: the value that ran last
	guard    *guard
	closed   bool
}

// Options say how a session works. The zero Options do for all but tests.
type Options struct {
	// Ioctl leaves out ethtool netlink, as on a kernel older than 5.6.
	Ioctl bool
}

// Claim takes a device in the network namespace of the calling thread. The
// directory, made where it is missing, holds the lock and the state file. An
// unknown device fails with a [*catalog.UnknownError] that lists the known
// ones, one that another study has with a [*BusyError]. What an interrupted
// study left of the device is put back first.
func Claim(dev, stateDir string) (*Session, error) { return Options{}.Claim(dev, stateDir) }

// Claim is [Claim] with options.
func (o Options) Claim(name, stateDir string) (*Session, error) {
	dev, err := openDevice(ethtool.Options{Ioctl: o.Ioctl})
	if err != nil {
		return nil, err
	}
	s := &Session{dev: dev, commands: map[string]string{}}
	if err := s.claim(name, stateDir); err != nil {
		if s.lock != nil {
			err = errors.Join(err, proc.Unlock(s.lock))
		}
		return nil, errors.Join(err, dev.close())
	}
	return s, nil
}

func (s *Session) claim(name, stateDir string) error {
	link, err := s.dev.rt.Link(name)
	if errors.Is(err, ErrNoDevice) {
		return s.unknownDevice(name)
	}
	if err != nil {
		return err
	}
	s.dev.name, s.dev.index = link.Name, link.Index
	if stateDir, err = filepath.Abs(stateDir); err != nil { // the guard runs in another directory
		return err
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	at, err := here(link.Index)
	if err != nil {
		return err
	}
	s.file = at.file(stateDir)
	s.lock, err = proc.Lock(lockOf(s.file))
	if held, ok := errors.AsType[*proc.HeldError](err); ok {
		return &BusyError{Device: name, PID: held.PID}
	}
	if err != nil {
		return err
	}
	if s.Leftover, err = s.clean(at); err != nil {
		return err
	}
	return s.save(at)
}

func (s *Session) unknownDevice(name string) error {
	links, err := s.dev.rt.Links()
	if err != nil {
		return err
	}
	unknown := &catalog.UnknownError{Kind: "device", Name: name}
	for _, l := range links {
		unknown.Known = append(unknown.Known, l.Name)
	}
	return unknown
}

// clean deals with the state that an interrupted study left.
func (s *Session) clean(at place) (*Result, error) {
	if _, err := os.Stat(s.file); errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no leftover and no error
	}
	r := restoreFile(s.file, at, s.dev)
	if r.Outcome == Failed {
		return nil, fmt.Errorf("%s is not as it was before the study of process %d: %s; put it back by hand, then remove %s",
			r.Device, r.PID, r.Detail, s.file)
	}
	return &r, nil
}

// save reads what the device is and writes it down.
func (s *Session) save(at place) error {
	// A leftover that was put back may have been under another name.
	link, err := s.dev.rt.LinkByIndex(s.dev.index)
	if err != nil {
		return err
	}
	if s.baseline, err = s.dev.read(nil); err != nil {
		return err
	}
	s.base = &state{
		Schema: stateSchema, Boot: at.boot, NetNS: at.netns, Index: link.Index, Device: link.Name, MAC: link.MAC, Perm: link.PermMAC,
		PID: os.Getpid(), Since: time.Now(),
		Wanted: s.baseline.features.Wanted(), Active: map[string]string{}, Values: s.baseline.values,
	}
	for name, b := range s.baseline.features.Bits {
		s.base.Active[name] = b.String()
	}
	return s.base.write(s.file)
}

// Device returns the name under which the device was claimed.
func (s *Session) Device() string { return s.base.Device }

// StateFile returns the path of the state file, for the guard.
func (s *Session) StateFile() string { return s.file }

// Features returns the feature sets of the device as they are.
func (s *Session) Features() (ethtool.Features, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ethtool.Features{}, ErrClosed
	}
	return s.dev.et.Features(s.dev.name)
}

// Adopt makes factors known to the session. It saves the sysctls among them,
// and runs the first command of a pair, so that the pair has a state. A sysctl
// that the kernel does not have, and a command that fails, are errors.
func (s *Session) Adopt(factors []Factor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return s.adopt(factors)
}

func (s *Session) adopt(factors []Factor) error {
	var fresh []Factor
	dirty := false
	for _, f := range factors {
		switch f.Kind {
		case KindSysctl:
			if _, ok := s.base.Values[f.Name]; ok {
				continue
			}
			v, err := sysctl.Read(f.Name)
			if err != nil {
				return err
			}
			s.base.Values[f.Name], dirty = v, true
		case KindCommand:
			if _, ok := s.commands[f.Name]; ok {
				continue
			}
			if len(f.Members) != 2 {
				return &SyntaxError{f.Name, "is no pair of commands"}
			}
			s.base.Commands = append(s.base.Commands, command{f.Name, f.Members[0]})
			s.commands[f.Name], dirty = "", true
			fresh = append(fresh, f)
		case KindFeature, KindCoalesce, KindRing, KindLink: // saved by Claim
		}
	}
	if dirty {
		if err := s.base.write(s.file); err != nil {
			return err
		}
	}
	for _, f := range fresh {
		if err := s.command(f, on); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// command runs one command of a pair, if it was not the last one run.
func (s *Session) command(f Factor, value string) error {
	if s.commands[f.Name] == value {
		return nil
	}
	s.commands[f.Name] = "" // should it fail, neither holds
	line := f.Members[0]
	if value == off {
		line = f.Members[1]
	}
	if err := run(line, commandTimeout); err != nil {
		return err
	}
	s.commands[f.Name] = value
	return nil
}

// Current returns the value that a factor has now: on, off or mixed for
// features, a number, a sysctl, or for a pair of commands which of them ran
// last, "" for none. A value that the driver lacks is [ErrUnsupported].
func (s *Session) Current(f Factor) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", ErrClosed
	}
	switch f.Kind {
	case KindCommand:
		return s.commands[f.Name], nil
	case KindSysctl:
		return sysctl.Read(f.Name)
	case KindFeature, KindCoalesce, KindRing, KindLink:
	}
	now, err := s.dev.read(nil)
	if err != nil {
		return "", err
	}
	if f.Kind == KindFeature {
		return s.expand(f).state(now.features), nil
	}
	v, ok := now.values[f.Name]
	if !ok {
		return "", fmt.Errorf("%s of %s: %w", f.Name, s.dev.name, ErrUnsupported)
	}
	return v, nil
}

// Restore puts everything back, verifies it and ends the session. When the
// device is gone, sysctls and commands are still put back, and the error is
// [ErrNoDevice]. When something could not be put back the state file stays, for
// [Restore]. A second call does nothing.
func (s *Session) Restore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.dev.putBack(s.base)
	if err != nil {
		err = fmt.Errorf("restore %s: %w", s.base.Device, err)
	}
	if err == nil || errors.Is(err, ErrNoDevice) {
		err = errors.Join(err, removeState(s.file))
	}
	if s.guard != nil {
		// Where the state file is left, the guard has a try of its own now.
		err = errors.Join(err, s.guard.end())
	}
	return errors.Join(err, proc.Unlock(s.lock), s.dev.close())
}

// expand finds the features of a factor on this device.
func (s *Session) expand(f Factor) group {
	var g group
	for _, pattern := range f.Members {
		g = append(g, s.expandOne(pattern))
	}
	return g
}

func (s *Session) expandOne(pattern string) family {
	fam := family{pattern: pattern}
	for _, name := range s.baseline.features.Names {
		if !match(pattern, name) {
			continue
		}
		fam.members = append(fam.members, name)
		if s.base.Wanted[name] {
			fam.targets = append(fam.targets, name)
		}
	}
	if len(fam.targets) > 0 {
		return fam
	}
	for _, name := range fam.members {
		// Mangling IP IDs is not harmless, and off by default.
		if !s.baseline.features.Bits[name].Fixed() && (name != mangleID || len(fam.members) == 1) {
			fam.targets = append(fam.targets, name)
		}
	}
	return fam
}

const mangleID = "tx-tcp-mangleid-segmentation"

// members returns all features that the factor is about.
func (g group) members() []string {
	var names []string
	for _, fam := range g {
		names = append(names, fam.members...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
