package daemon

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/medium"
	"lunar/internal/bulk"
	"lunar/internal/bulk/keyed"
	"lunar/internal/durable"
)

// What a volume's file is called until it is whole, and its journal.
const (
	receivingSuffix = ".receiving"
	journalSuffix   = ".receiving.journal"
)

// ReceiveVolume implements server.Source.
func (s *source) ReceiveVolume(by server.Asker, volume string, k control.Receive) (control.ReceivedVolume, error) {
	out, err := s.changes.receive(by, volume, k)
	return out, notMoved(fmt.Sprintf("volume %s was not received", volume), err)
}

// reception is a volume that comes from another server.
type reception struct {
	*applier
	*move
	control.Receive
	name   string
	place  *bulk.Place
	store  backstore.Store
	sealed bool // the volume is to have encryption
}

// receive waits for another server until the volume is whole.
func (a *applier) receive(by server.Asker, volume string, k control.Receive) (out control.ReceivedVolume, err error) {
	key, err := keyed.ParseKey(k.Key)
	if err != nil {
		return out, err
	}
	if err := by.Begin(); err != nil {
		return out, err
	}
	if !filepath.IsAbs(k.Path) {
		k.Path = filepath.Join(a.dir, k.Path)
	}
	k.Path = filepath.Clean(k.Path)
	if a.daemon.config.Load().Volume(volume) != nil {
		return out, errors.New("there is a volume of this name already")
	}
	if err := checkParent(k.Path, ""); err != nil { // now, and not when the sender comes
		return out, err
	}
	m, err := a.moves.begin(a.life, volume, receiving, k.Path)
	if err != nil {
		return out, err
	}
	defer func() { a.moves.end(volume, m, err) }()
	r := &reception{applier: a, move: m, Receive: k, name: volume}
	if !durable.Absent(k.Path) {
		if got := bulk.FindWhole(k.Path+journalSuffix, k.Path); got != nil { // a server that was killed has not served it
			if err := r.alike(got); err != nil {
				return out, err
			}
			return r.serve(got)
		}
		return out, fmt.Errorf("found %s, expected a file that there is not", k.Path)
	}
	listener, accept, err := listenMove(k.Listen, key)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	r.progress.Begin("waits for the other server at " + listener.Address())
	defer r.telling(by, "volume "+volume)()
	a.log.Info("a volume is being received", "volume", volume, "at", listener.Address())
	if out, err = r.run(accept); err != nil {
		a.log.Warn("a volume was not received", "volume", volume, "bytes", m.progress.Moved(), "err", err)
	}
	return out, err
}

// run takes one sender after the other until one has sent all.
func (r *reception) run(accept func(context.Context) (bulk.SinkLink, error)) (out control.ReceivedVolume, err error) {
	for {
		link, err := accept(r.ctx)
		if err != nil {
			return out, err
		}
		began, before := time.Now(), r.progress.Moved()
		got, err := bulk.Receive(r.ctx, link, bulk.Acceptance{Accept: r.accept, Cores: moveCores(), Progress: &r.progress})
		if err == nil {
			got.Sealed = r.sealed
			err = r.place.Journal.Finish(&got, r.Path+receivingSuffix)
		}
		err = errors.Join(err, r.close())
		switch {
		case err == nil:
			bytes, took := r.progress.Moved()-before, time.Since(began).Round(time.Millisecond)
			r.applier.log.Info("volume received", "volume", r.name, "from", got.Name, "stored", got.Stored, "there before", got.Kept, "damaged", got.Damaged,
				"bytes", bytes, "took", took, "rate", rateOf(bytes, took), "standby", r.Standby)
			return r.finish(&got)
		case r.ctx.Err() != nil:
			return out, r.ctx.Err()
		}
		r.applier.log.Warn("a volume that is being received is not whole: the sender may go on", "volume", r.name, "stored", got.Stored, "there before", got.Kept, "repeated", got.Repeated, "err", err)
		r.progress.Begin("waits for the other server; the last connection ended: " + err.Error())
	}
}

// accept opens the place of a volume that a sender offers.
func (r *reception) accept(o bulk.Offer) (*bulk.Place, error) {
	v, err := r.volume(o)
	if err != nil {
		return nil, err
	}
	partial, journal := r.Path+receivingSuffix, r.Path+journalSuffix
	switch {
	case durable.Absent(partial): // what a journal says is of nothing then
		if err := os.Remove(journal); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	case durable.Absent(journal):
		return nil, fmt.Errorf("found %s without its journal: remove it to begin anew", partial)
	}
	loop, err := r.moves.thread()
	if err != nil {
		return nil, err
	}
	r.sealed = v.Encryption != nil
	whole := bulk.FindWhole(journal, partial)
	place := &bulk.Place{Verified: !r.sealed && whole != nil && !whole.Sealed} // with encryption nobody knows by which header
	if place.Journal, err = bulk.OpenJournal(journal, o.Size); err != nil {
		return nil, fmt.Errorf("%w: remove %s and it to begin anew", err, partial)
	}
	r.place = place
	if err = r.open(v, partial); err == nil {
		place.Volume, err = bulk.OpenVolume(loop, r.store)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return place, nil
}

// open opens the file, with encryption if the volume is to have it.
func (r *reception) open(v *conf.Volume, partial string) (err error) {
	const directUnit = 4096
	file := conf.Volume{
		Name: v.Name, Type: conf.FileVolume, Path: partial, Size: v.Size, BlockSize: v.BlockSize,
		Direct: int64(v.Size)%directUnit == 0, MayBuffer: true,
	}
	if r.store, err = medium.Open(&file, backstore.Intents{}, r.applier.log, nil); err != nil || v.Encryption == nil {
		return err
	}
	key, err := crypt.ReadKey(v.Encryption.KeyFile)
	if err == nil && durable.Absent(v.Encryption.HeaderFile) {
		if r.place.Journal.Stored() > 0 {
			return fmt.Errorf("found no header %s of what was stored before", v.Encryption.HeaderFile)
		}
		err = crypt.Create(v.Encryption.HeaderFile, key, v.BlockSize)
	}
	if err != nil {
		return err
	}
	sealed, err := crypt.Open(crypt.Config{Data: r.store, Path: v.Encryption.HeaderFile, Key: key, Block: v.BlockSize, Logger: r.applier.log})
	if err == nil {
		r.store = sealed
	}
	return err
}

// close ends the use of what accept has opened.
func (r *reception) close() (err error) {
	if r.place == nil {
		return nil
	}
	if r.place.Volume != nil {
		r.place.Volume.Close()
	}
	if r.store != nil {
		err = r.store.Close()
	}
	err = errors.Join(err, r.place.Journal.Close())
	r.place, r.store = nil, nil
	return err
}

// object is what the configuration is to have of the volume.
func (r *reception) object(o bulk.Offer) control.Object {
	object := maps.Clone(r.Configuration)
	if object == nil {
		object = control.Object{}
	}
	object["type"], object["path"] = "file", r.Path
	object["size"], object["block-size"] = conf.Size(o.Size).String(), float64(o.Unit)
	if _, given := object["physical-block-size"]; !given && o.Physical > o.Unit && o.Physical&(o.Physical-1) == 0 {
		object["physical-block-size"] = float64(o.Physical)
	}
	return object
}

func (r *reception) edit(o bulk.Offer) []control.Edit {
	return []control.Edit{{Path: []string{"volumes", r.name}, Set: r.object(o), IfNoneMatch: "*"}}
}

// volume is what the volume would be in the configuration that is running.
func (r *reception) volume(o bulk.Offer) (*conf.Volume, error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	text, err := r.edited(r.texts.Load().running, r.edit(o), true)
	if err != nil {
		return nil, err
	}
	cfg, _, err := r.parseEdited(text)
	if err != nil {
		return nil, err
	}
	v := cfg.Volume(r.name)
	if v.Protection != 0 {
		return nil, errors.New("found protection, which a volume that is received cannot have")
	}
	return v, nil
}

func (r *reception) result(got *bulk.Received) control.ReceivedVolume {
	return control.ReceivedVolume{
		Path: r.Path + receivingSuffix, Source: got.Name, Size: got.Size, BlockSize: got.Unit,
		Stored: got.Stored, Kept: got.Kept, Repeated: got.Repeated, Checksum: hex.EncodeToString(got.Checksum[:]),
	}
}

// finish gives a whole volume its name, and has it served.
func (r *reception) finish(got *bulk.Received) (control.ReceivedVolume, error) {
	out := r.result(got)
	if r.Standby {
		return out, nil
	}
	// Whatever has come to the path meanwhile stays.
	err := unix.Renameat2(unix.AT_FDCWD, out.Path, unix.AT_FDCWD, r.Path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) && durable.Absent(r.Path) { // a file system that cannot look for that itself
		err = os.Rename(out.Path, r.Path)
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EINVAL) {
		return out, fmt.Errorf("found %s, which was not there before; what was received is %s", r.Path, out.Path)
	}
	if err := errors.Join(err, durable.SyncDir(filepath.Dir(r.Path))); err != nil {
		return out, err
	}
	return r.serve(got)
}

// alike refuses to serve cipher text in clear, or the reverse.
func (r *reception) alike(got *bulk.Received) error {
	v, err := r.volume(got.Offer)
	if err == nil && (v.Encryption != nil) != got.Sealed {
		with := map[bool]string{false: "without", true: "with"}
		err = fmt.Errorf("found %s, which was received %s encryption, expected one %s", r.Path, with[got.Sealed], with[!got.Sealed])
	}
	return err
}

// notServed says where the volume is. A refusal by itself would tell that nothing was changed.
func (r *reception) notServed(err error) error {
	reasons := []control.Reason{{Text: err.Error()}}
	if was := (*control.Refusal)(nil); errors.As(err, &was) && len(was.Reasons) > 0 {
		reasons = was.Reasons
	}
	return &control.Refusal{What: r.Path + " is whole, and is not served (the same command, or lunar volume create, makes a volume of it)", State: true, Reasons: reasons}
}

// serve makes a volume of a file that has its name.
func (r *reception) serve(got *bulk.Received) (control.ReceivedVolume, error) {
	out := r.result(got)
	out.Path = r.Path
	if _, err := r.applier.edit(server.Asker{By: "a move"}, control.Changes{Edits: r.edit(got.Offer)}); err != nil {
		return out, r.notServed(err)
	}
	out.Served = true
	return out, os.Remove(r.Path + journalSuffix)
}
