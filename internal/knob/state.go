package knob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/offlab/offlab/internal/sys/proc"
)

// stateSchema is the version of the state file. A program does not touch the
// file of another version.
const stateSchema = 1

// A state is what a device was before a session, and how to tell the device.
type state struct {
	Schema int       `json:"schema"`
	Boot   string    `json:"boot"`  // features do not survive a boot
	NetNS  uint64    `json:"netns"` // inode
	Index  int       `json:"index"` // of the device, which survives a renaming
	Device string    `json:"device"`
	MAC    string    `json:"mac,omitempty"`
	Perm   string    `json:"perm_mac,omitempty"`
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`

	Wanted   map[string]bool   `json:"wanted"` // of the features that can be changed
	Active   map[string]string `json:"active"` // all, as ethtool -k writes them
	Values   map[string]string `json:"values"`
	Commands []command         `json:"commands,omitempty"`
}

// A command is a pair that was used, and so must be ended by its first.
type command struct {
	Name string `json:"name"`
	On   string `json:"on"`
}

// A place is where a device is: what its lock and its state are named after.
// The device's name is left out, since a device can be renamed under a study.
type place struct {
	boot  string
	netns uint64
	index int
}

func here(index int) (place, error) {
	boot, err := proc.BootID()
	if err != nil {
		return place{}, err
	}
	ns, err := proc.NetNS()
	return place{boot, ns, index}, err
}

const (
	stateSuffix = ".json"
	lockSuffix  = ".lock"
)

func (p place) file(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%d%s", p.netns, p.index, stateSuffix))
}

// lockOf returns the lock of a state file.
func lockOf(file string) string { return strings.TrimSuffix(file, stateSuffix) + lockSuffix }

func readState(file string) (*state, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	st := &state{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(st); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if st.Schema != stateSchema {
		return nil, fmt.Errorf("%s: schema %d, this program knows %d", file, st.Schema, stateSchema)
	}
	return st, nil
}

// write puts the state on the disk before it returns: a new file, synced, takes
// the place of the old one, and the directory is synced for the name.
func (st *state) write(file string) error {
	data, err := json.MarshalIndent(st, "", "\t")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".state-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(file))
}

func removeState(file string) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
