package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/durable"
)

// storeRecord is what the state directory keeps of the file or device of a volume:
// what the next start expects there. It is written when everything of a start or
// change has succeeded, and when the size changes.
type storeRecord struct {
	Path     string             `json:"path"`
	Identity backstore.Identity `json:"identity"`
	Size     int64              `json:"size"` // bytes that are at least to be there
	// Header is the identity of its encryption's header; empty: it has none, or an earlier
	// version wrote this.
	Header string `json:"header,omitempty"`
	// Alias is that of a volume whose store was moved: it goes on by the identity that it
	// had.
	Alias *alias `json:"alias,omitempty"`
	// Intention is what tgtd adopt or forget was told, for one start.
	Intention *intention `json:"intention,omitempty"`
}

// intention holds for what was found when it was told, and nothing else.
type intention struct {
	Do    evidence.Intention `json:"do"`
	Path  string             `json:"path"`
	Found backstore.Found    `json:"found"`
}

// alias puts one volume identity in the place of another; see volumeID.
type alias struct {
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

// recordFile is where the record of a volume is. It goes by the name alone, for
// everything else may be what has changed.
func recordFile(stateDir, volume string) keptFile[storeRecord] {
	return keptFile[storeRecord]{marked{"store", stateDir, filepath.Join("stores", volume+".json")}}
}

// sighting is what a start has found where a volume is to be.
type sighting struct {
	evidence.Scene
	record  *storeRecord  // nil: there is none
	orphans []tier.Orphan // of this volume, but not of its identity or store
}

// lookAt gathers what is known of a volume's place. record is nil if nothing is
// recorded.
func lookAt(stateDir string, v *conf.Volume) (p sighting, err error) {
	file := recordFile(stateDir, v.Name)
	if p.record, err = file.peek(); err != nil {
		return p, fmt.Errorf("record of its store: %w; put a copy back, or, if %s is the volume and complete, %s", err, v.Path, file.without())
	}
	p.Path = storePath(v)
	if p.Found, err = backstore.Look(p.Path); err != nil {
		return p, err
	}
	if p.record != nil {
		p.Intention = p.record.Intention.of(p.Path, p.Found)
	}
	if p.record != nil && p.record.Path != "" {
		p.Recorded = &evidence.Record{Path: p.record.Path, Identity: p.record.Identity, Size: p.record.Size}
		p.Kept.Interrupted, err = backstore.Interrupted(filepath.Join(stateDir, "atomic"), p.record.Identity)
	}
	return p, err
}

// place refuses a store that is not the volume's, or not all of it.
func (a *assembly) place(v *conf.Volume) (p sighting, err error) {
	if v.Path == "" {
		return p, nil
	}
	if p, err = lookAt(a.stateDir, v); err != nil {
		return p, err
	}
	if p.Recorded != nil && !p.Found.Missing && !p.Found.Identity.Same(p.Recorded.Identity) {
		p.Owner = a.owners().of(p.Found.Identity, v.Name)
	}
	if p.record != nil && p.record.Alias != nil {
		a.aliases.Store(v.Name, *p.record.Alias)
	}
	a.seekOrphans(v, &p)
	verdict, why := evidence.Place(p.Scene)
	switch verdict {
	case evidence.Refuse:
		if !strings.HasSuffix(why, "?") {
			why += "."
		}
		return p, fmt.Errorf("%s %s", why, a.choices(v, &p))
	case evidence.Note:
		a.log.Warn("store of a volume", "volume", v.Name, "found", why)
	}
	if err := a.intend(v, &p); err != nil {
		return p, err
	}
	a.follow(v, &p)
	if p.Intention != evidence.None {
		a.log.Warn("store of a volume is taken as an administrator has said", "volume", v.Name, "said", p.Intention, "store", p.Path)
	}
	return p, nil
}

// follow lets a volume go on by the identity that it had when its file or device is the
// one that it was, at another path: its reservations and the like are kept by that.
func (a *assembly) follow(v *conf.Volume, p *sighting) {
	moved := p.Recorded != nil && p.Path != p.Recorded.Path && p.Found.Identity.Same(p.Recorded.Identity)
	if !moved || p.Intention == evidence.Forget || a.aliasOf(v) != nil {
		return
	}
	before := *v
	before.Path = p.Recorded.Path
	was := volumeID(&before, a.identity)
	if o := p.record.Alias; o != nil && o.Of == was {
		was = o.Is
	}
	a.aliases.Store(v.Name, alias{Of: volumeID(v, a.identity), Is: was})
}

// noteStores records what volumes were opened from.
func (a *assembly) noteStores(volumes []conf.Volume) error {
	for i := range volumes {
		if err := a.noteStore(&volumes[i], -1); err != nil {
			return err
		}
	}
	return nil
}

// noteStore records what a volume is on now, with its size or the smaller one that it
// is about to have; negative: it stays.
func (a *assembly) noteStore(v *conf.Volume, soon int64) error {
	if v.Path == "" {
		return nil
	}
	found, err := backstore.Look(v.Path)
	if err == nil && found.Missing {
		return nil // it was removed while open; the record tells the next start
	}
	if soon >= 0 {
		found.Size = min(found.Size, soon)
	}
	if err == nil {
		err = recordFile(a.stateDir, v.Name).save(&storeRecord{Path: storePath(v), Identity: found.Identity, Size: found.Size, Header: a.headerID(v), Alias: a.aliasOf(v)})
	}
	if err != nil {
		return fmt.Errorf("volume %s: record of its store: %w", v.Name, err)
	}
	return nil
}

// headerID is that of an open volume's header; empty: it has none.
func (a *assembly) headerID(v *conf.Volume) string {
	if s := a.ciphers[v.Name]; s != nil {
		return s.ID().String()
	}
	return ""
}

// resizeStore changes the size of an open volume and records it: before it shrinks,
// or after a crash the store would be shorter than it should be.
func (a *assembly) resizeStore(v *conf.Volume, size int64) error {
	unit := a.units[v.Name]
	if size < unit.Store().Info().Size {
		if err := a.noteStore(v, size); err != nil {
			return err
		}
	}
	if err := unit.Resize(size); err != nil {
		if again := a.noteStore(v, -1); again != nil {
			a.log.Warn("volume not resized", "volume", v.Name, "err", again)
		}
		return err
	}
	return a.noteStore(v, -1)
}

// forgetStore forgets what a volume was on that was removed while the server runs: one
// of its name is new.
func (a *assembly) forgetStore(v *conf.Volume) error {
	return errors.Join(recordFile(a.stateDir, v.Name).remove(), a.forgetShield(v))
}

// keepRecord returns what puts the record of a volume's store back.
func (a *assembly) keepRecord(v *conf.Volume) (restore func() error) {
	file := recordFile(a.stateDir, v.Name)
	text, err := durable.Read(file.path())
	if err != nil {
		return file.remove
	}
	return func() error { return durable.Replace(file.path(), text) }
}
