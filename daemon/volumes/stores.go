package volumes

import (
	"errors"
	"fmt"
	"strings"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/durable"
)

// place refuses a store that is not the volume's, or not all of it.
func (a *Set) place(v *conf.Volume) (p sighting, err error) {
	if v.Path == "" {
		if v.Type == conf.MirrorVolume && v.Encryption != nil { // of which the header is on record
			p.Record, err = state.RecordOf(a.StateDir, v.Name).Peek()
		}
		return p, err
	}
	if p.Sighting, err = state.LookAt(a.StateDir, v); err != nil {
		return p, err
	}
	if p.Recorded != nil && !p.Found.Missing && !p.Found.Identity.Same(p.Recorded.Identity) {
		p.Owner = a.owners().Of(p.Found.Identity, v.Name)
	}
	if p.Record != nil && p.Record.Alias != nil {
		a.aliases.Store(v.Name, *p.Record.Alias)
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
		a.Log.Warn("store of a volume", "volume", v.Name, "found", why)
	}
	if err := a.intend(v, &p); err != nil {
		return p, err
	}
	a.follow(v, &p)
	if p.Intention != evidence.None {
		a.Log.Warn("store of a volume is taken as an administrator has said", "volume", v.Name, "said", p.Intention, "store", p.Path)
	}
	return p, nil
}

// follow lets a volume go on by the identity that it had when its file or device is the
// one that it was, at another path: its reservations and the like are kept by that.
func (a *Set) follow(v *conf.Volume, p *sighting) {
	moved := p.Recorded != nil && p.Path != p.Recorded.Path && p.Found.Identity.Same(p.Recorded.Identity)
	if !moved || p.Intention == evidence.Forget || a.aliasOf(v) != nil {
		return
	}
	before := *v
	before.Path = p.Recorded.Path
	was := volumeID(&before, a.Identity)
	if o := p.Record.Alias; o != nil && o.Of == was {
		was = o.Is
	}
	a.aliases.Store(v.Name, state.Alias{Of: volumeID(v, a.Identity), Is: was})
}

// NoteStores records what volumes were opened from.
func (a *Set) NoteStores(volumes []conf.Volume) error {
	if len(volumes) == 0 {
		return nil
	}
	var lacks []state.Payload
	for i := range volumes {
		of, err := a.recordOf(&volumes[i], -1)
		if err != nil {
			return err
		}
		lacks = append(lacks, of...)
	}
	if err := state.WriteAll(a.Fresh, lacks); err != nil {
		return fmt.Errorf("records of the volumes' stores: %w", err)
	}
	return state.RecordOf(a.StateDir, volumes[0].Name).Settled()
}

// noteStore records what a volume is on now, with its size or the smaller one that it
// is about to have; negative: it stays.
func (a *Set) noteStore(v *conf.Volume, soon int64) error {
	lacks, err := a.recordOf(v, soon)
	if err == nil {
		err = state.WriteAll(nil, lacks)
	}
	return err
}

// recordOf is what the record of a volume's store lacks.
func (a *Set) recordOf(v *conf.Volume, soon int64) (lacks []state.Payload, err error) {
	if v.Path == "" {
		if header := a.headerID(v); header != "" {
			return state.RecordOf(a.StateDir, v.Name).Keep(&state.Record{Header: header})
		}
		return nil, nil
	}
	found, err := backstore.Look(v.Path)
	if err == nil && found.Missing {
		return nil, nil // it was removed while open; the record tells the next start
	}
	if soon >= 0 {
		found.Size = min(found.Size, soon)
	}
	if err == nil {
		lacks, err = state.RecordOf(a.StateDir, v.Name).Keep(&state.Record{Path: medium.Path(v), Identity: found.Identity, Size: found.Size, Header: a.headerID(v), Alias: a.aliasOf(v)})
	}
	if err != nil {
		return nil, fmt.Errorf("volume %s: record of its store: %w", v.Name, err)
	}
	return lacks, nil
}

// headerID is that of an open volume's header; empty: it has none.
func (a *Set) headerID(v *conf.Volume) string {
	if open := a.Open[v.Name]; open != nil && open.Cipher != nil {
		return open.Cipher.ID().String()
	}
	return ""
}

// ResizeStore changes the size of an open volume and records it: before it shrinks,
// or after a crash the store would be shorter than it should be.
func (a *Set) ResizeStore(v *conf.Volume, size int64) error {
	unit := a.Open[v.Name].Unit
	if size < unit.Store().Info().Size {
		if err := a.noteStore(v, size); err != nil {
			return err
		}
	}
	if err := unit.Resize(size); err != nil {
		if again := a.noteStore(v, -1); again != nil {
			a.Log.Warn("volume not resized", "volume", v.Name, "err", again)
		}
		return err
	}
	return a.noteStore(v, -1)
}

// ForgetStore forgets what a volume was on that was removed while the server runs: one
// of its name is new.
func (a *Set) ForgetStore(v *conf.Volume) error {
	return errors.Join(state.RecordOf(a.StateDir, v.Name).Remove(), a.forgetShield(v))
}

// KeepRecord returns what puts the record of a volume's store back.
func (a *Set) KeepRecord(v *conf.Volume) (restore func() error) {
	file := state.RecordOf(a.StateDir, v.Name)
	text, err := durable.Read(file.Path())
	if err != nil {
		return file.Remove
	}
	return func() error { return durable.Replace(file.Path(), text) }
}
