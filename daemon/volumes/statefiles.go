package volumes

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/durable"
)

// stateFile returns the file in the state directory for one kind of a volume's state.
// Its name contains the volume's identity, so that another volume of the same name does
// not inherit it.
func (a *Set) stateFile(kind string, v *conf.Volume) state.Marked {
	return state.Marked{Kind: kind, Dir: a.StateDir, Name: filepath.Join(kind, fmt.Sprintf("%s-%016x.json", v.Name, a.volumeID(v)))}
}

// intents say where the log is that makes atomic writes to the volume's file or device
// atomic. It goes by the identity of that: what a crash left there is to be completed
// whatever volume and path are called then, and nowhere else.
func (a *Set) intents(v *conf.Volume, seen sighting) (backstore.Intents, error) {
	if v.Path == "" {
		return backstore.Intents{}, nil
	}
	i := a.intentsOf(v, seen)
	if err := durable.MakeDir(i.Dir); err != nil {
		return backstore.Intents{}, fmt.Errorf("atomic writes: %w", err)
	}
	return i, nil
}

func (a *Set) intentsOf(v *conf.Volume, seen sighting) backstore.Intents {
	i := state.IntentLogs(a.StateDir)
	i.Batch = a.Fresh
	sum := sha256.Sum256([]byte(medium.Path(v))) // of versions that went by the path
	i.Before, i.Forget = filepath.Join(i.Dir, fmt.Sprintf("%x.log", sum[:8])), seen.Intention == evidence.Forget
	// Where volumes have exchanged their stores, the one on record may be open for another.
	if seen.Recorded != nil && seen.Intention != evidence.None && seen.Owner == "" {
		i.From = &seen.Recorded.Identity
	}
	return i
}
