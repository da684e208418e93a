package volumes

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"lunar/cluster/seal"
	"lunar/conf"
)

// judge remembers whether a server could open an encrypted volume, so that key files are read
// again only when they have changed: each reading takes locked memory for a while.
type judge struct {
	mu      sync.Mutex
	by      grounds
	verdict error
}

// grounds are what a verdict rests on.
type grounds struct {
	judged     bool
	encryption *conf.VolumeEncryption
	stored     string
	key, old   fileState
}

// fileState tells whether a file is what it was.
type fileState struct {
	at   time.Time
	size int64
	mode os.FileMode
	why  string // it cannot be looked at
}

func stateOf(path string) fileState {
	if path == "" {
		return fileState{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return fileState{why: err.Error()}
	}
	return fileState{at: info.ModTime(), size: info.Size(), mode: info.Mode()}
}

// Unable is why this server could not open the volume if it were to own it, by what the
// cluster's state has as its header (nil: none); nil: nothing is known. Any goroutine may call
// it.
func (s *Shared) Unable(stored []byte) error {
	e := s.encryption.Load()
	by := grounds{judged: true, encryption: e, stored: string(stored)}
	if e != nil {
		by.key, by.old = stateOf(e.KeyFile), stateOf(e.OldKeyFile)
	}
	s.judge.mu.Lock()
	defer s.judge.mu.Unlock()
	if s.judge.by != by {
		v := s.volume
		v.Encryption = e
		s.judge.by, s.judge.verdict = by, Unwraps(&v, stored)
	}
	return s.judge.verdict
}

// Unwraps reports why a volume with owners could not be opened here, by what the cluster's state
// has as its header (nil: none).
func Unwraps(v *conf.Volume, stored []byte) error {
	s, err := seal.Stored(stored)
	if err != nil {
		return fmt.Errorf("the header of its encryption in the cluster's state: %w", err)
	}
	foreign := belongs(&s, v)
	switch {
	case v.Encryption == nil && (s.Header == nil || foreign != nil):
		return nil
	case v.Encryption == nil:
		return errors.New("found the header of its encryption in the cluster's state, and no encryption in the configuration")
	case foreign != nil:
		return foreign
	}
	_, _, _, _, err = unwrapped(v.Encryption, v.BlockSize, s.Header)
	return err
}
