package state

import (
	"fmt"
	"path/filepath"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/daemon/medium"
)

// Record is what the state directory keeps of the file or device of a volume:
// what the next start expects there. It is written when everything of a start or
// change has succeeded, and when the size changes.
type Record struct {
	Path     string             `json:"path"`
	Identity backstore.Identity `json:"identity"`
	Size     int64              `json:"size"` // bytes that are at least to be there
	// Header is the identity of its encryption's header; empty: it has none, or an earlier
	// version wrote this.
	Header string `json:"header,omitempty"`
	// Alias is that of a volume whose store was moved: it goes on by the identity that it
	// had.
	Alias *Alias `json:"alias,omitempty"`
	// Intention is what lunar adopt or forget was told, for one start.
	Intention *intention `json:"intention,omitempty"`
}

// intention holds for what was found when it was told, and nothing else.
type intention struct {
	Do    evidence.Intention `json:"do"`
	Path  string             `json:"path"`
	Found backstore.Found    `json:"found"`
}

// Alias puts one volume identity in the place of another; see volumeID.
type Alias struct {
	Of uint64 `json:"of"`
	Is uint64 `json:"is"`
}

// of returns the intention, if it was told of this.
func (i *intention) of(path string, found backstore.Found) evidence.Intention {
	same := i != nil && i.Path == path && i.Found.Missing == found.Missing && i.Found.Size == found.Size && i.Found.Identity.Same(found.Identity)
	if !same {
		return evidence.None
	}
	return i.Do
}

// RecordOf is where the record of a volume is. It goes by the name alone, for
// everything else may be what has changed.
func RecordOf(stateDir, volume string) File[Record] {
	return File[Record]{Marked{"store", stateDir, filepath.Join("stores", volume+".json")}}
}

// IntentLogs are the logs of atomic writes, and their marks, of a state directory.
func IntentLogs(stateDir string) backstore.Intents {
	const name = "atomic"
	return backstore.Intents{Dir: filepath.Join(stateDir, name), Marks: filepath.Join(stateDir, MarkDir, name)}
}

// Sighting is what is found where a volume is to be.
type Sighting struct {
	evidence.Scene
	Record *Record // nil: there is none
}

// LookAt gathers what is known of a volume's place. record is nil if nothing is
// recorded.
func LookAt(stateDir string, v *conf.Volume) (p Sighting, err error) {
	file := RecordOf(stateDir, v.Name)
	if p.Record, err = file.Peek(); err != nil {
		return p, fmt.Errorf("record of its store: %w; put a copy back, or, if %s is the volume and complete, %s", err, v.Path, file.Without())
	}
	p.Path = medium.Path(v)
	if p.Found, err = backstore.Look(p.Path); err != nil {
		return p, err
	}
	if p.Record != nil {
		p.Intention = p.Record.Intention.of(p.Path, p.Found)
	}
	if p.Record != nil && p.Record.Path != "" {
		p.Recorded = &evidence.Record{Path: p.Record.Path, Identity: p.Record.Identity, Size: p.Record.Size}
		logs, id := IntentLogs(stateDir), p.Record.Identity
		if logs.Lost(id) {
			p.Pending.LostLog = fmt.Sprintf("%s (its mark is %s)", logs.Log(id), logs.Mark(id))
		}
		p.Pending.Interrupted, err = backstore.Interrupted(logs.Dir, id)
	}
	return p, err
}

// Intend notes what an administrator says of what is at a volume's path now.
func Intend(dir string, v *conf.Volume, do evidence.Intention) (backstore.Found, error) {
	p, err := LookAt(dir, v)
	if err != nil {
		return p.Found, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	if p.Found.Missing && do == evidence.Adopt {
		return p.Found, fmt.Errorf("volume %s: %s is missing: put the file there first, or say lunar forget, and it begins with a new one", v.Name, p.Path)
	}
	if p.Record == nil {
		p.Record = &Record{}
	}
	p.Record.Intention = &intention{Do: do, Path: p.Path, Found: p.Found}
	return p.Found, RecordOf(dir, v.Name).Save(p.Record)
}

// ForgetHeader has a volume take another header than the one that it had.
func ForgetHeader(dir string, v *conf.Volume) error {
	file := RecordOf(dir, v.Name)
	record, err := file.Load()
	if err != nil || record == nil || record.Header == "" {
		return err
	}
	record.Header = ""
	return file.Save(record)
}
