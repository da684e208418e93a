package daemon

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"lunar/backstore/crypt"
	"lunar/backstore/images"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/volumes"
)

// CloneSnapshot implements server.Source.
func (s *source) CloneSnapshot(by server.Asker, volume, snapshot string, r control.SnapshotClone) (control.SnapshotCloned, error) {
	out, err := s.changes.clone(by, volume, snapshot, r)
	return out, notSnapshot(fmt.Sprintf("there is no volume %s of snapshot %s of volume %s", r.Volume, snapshot, volume), err)
}

// clone makes a volume of a snapshot: an edit of the configuration like any other, with a
// file that is made before.
func (a *applier) clone(by server.Asker, volume, snapshot string, r control.SnapshotClone) (out control.SnapshotCloned, err error) {
	v, of, err := a.imagesOf(volume)
	if err != nil {
		return out, err
	}
	i, err := imageOf(of, snapshot)
	if err != nil {
		return out, err
	}
	if a.daemon.config.Load().Volume(r.Volume) != nil {
		return out, errors.New("there is a volume of this name already")
	}
	out.Path = a.clonePath(v, i, &r)
	edit := control.Edit{Path: []string{"volumes", r.Volume}, Set: a.cloned(v, out.Path, &r), IfNoneMatch: "*"}
	if err := mayClone(v, i, &r); err != nil {
		return out, err
	}
	if servesImage(v, &r) || r.DryRun {
		out.Changed, err = a.edit(by, control.Changes{Edits: []control.Edit{edit}, Permissions: r.Permissions})
		return out, err
	}
	if err := by.Begin(); err != nil {
		return out, err
	}
	a.cloning.Lock() // two of them at one path would take each other's file away
	defer a.cloning.Unlock()
	began := time.Now()
	file, err := of.Clone(a.life, snapshot, out.Path, headersOf(v, out.Path)...)
	if err != nil {
		return out, err
	}
	err = file.Place()
	if err == nil {
		err = cloneHeader(v, out.Path, i.Key)
	}
	if err != nil {
		return out, errors.Join(err, file.Undo())
	}
	took := time.Since(began)
	out.Took = took.Round(10 * time.Microsecond).String()
	if out.Changed, err = a.edit(by, control.Changes{Edits: []control.Edit{edit}, Permissions: r.Permissions}); err != nil {
		return out, errors.Join(err, file.Undo())
	}
	a.snapshots.changed(volume)
	a.log.Info("snapshot cloned", "snapshot", snapshot, "volume", volume, "as", r.Volume, "file", out.Path, "took", took)
	return out, file.Settle()
}

// servesImage reports whether the image itself is served, read-only. One that needs a header or
// protection information of its own, or lies in a cluster, is cloned to be served read-only.
func servesImage(v *conf.Volume, r *control.SnapshotClone) bool {
	return r.ReadOnly && v.Type == conf.FileVolume && v.Encryption == nil && v.Protection == 0
}

// clonePath is where the file of a clone is, or is to be.
func (a *applier) clonePath(v *conf.Volume, i images.Image, r *control.SnapshotClone) string {
	switch {
	case servesImage(v, r):
		return i.Path
	case v.Type == conf.RBDVolume && r.Path == "":
		return path.Join(path.Dir(v.Image), r.Volume)
	case v.Type == conf.RBDVolume:
		return r.Path
	case r.Path == "":
		return filepath.Join(filepath.Dir(filepath.Dir(i.Path)), r.Volume+filepath.Ext(v.Path)) // beside the file, wherever links lead
	case filepath.IsAbs(r.Path):
		return filepath.Clean(r.Path)
	}
	return filepath.Join(a.dir, r.Path)
}

// notCloned are the keys that a clone does not have of its volume: what tells disks from each
// other, what is about the file, and what others would do with the clone by themselves.
var notCloned = []string{"path", "image", "size", "serial", "naa", "designators", "snapshots", "protection-file", "excess", "excess-size", "excess-writes"}

// notRead are the keys that make no sense where nothing is written.
var notRead = []string{"write", "cache", "soft-threshold", "sanitize-rate"}

// cloned is what the configuration is to have of a clone.
func (a *applier) cloned(v *conf.Volume, place string, r *control.SnapshotClone) control.Object {
	object := control.Object{}
	if of, err := (&source{changes: a}).Object([]string{"volumes", v.Name}); err == nil {
		object = of.Config
	}
	without := notCloned
	if r.ReadOnly {
		without = append(slices.Clone(notCloned), notRead...)
	}
	for _, key := range without {
		delete(object, key)
	}
	if e, ok := object["encryption"].(map[string]any); ok { // its header is made beside its file
		e = maps.Clone(e)
		delete(e, "header-file")
		delete(e, "old-key-file")
		object["encryption"] = e
	}
	maps.Copy(object, r.Configuration)
	if v.Type == conf.RBDVolume {
		object["image"] = place
	} else {
		object["path"] = place
	}
	object["type"] = string(v.Type)
	if r.ReadOnly {
		object["read-only"] = true
	}
	return object
}

// mayClone refuses a clone that could not be read.
func mayClone(v *conf.Volume, i images.Image, r *control.SnapshotClone) error {
	_, other := r.Configuration["encryption"]
	switch encrypted := v.Encryption != nil; {
	case encrypted && v.Clustered():
		return errors.New("its header is in the cluster's state, and a clone needs one of its own: make the image with rbd clone, and its header with lunar cluster header save and restore (docs/cluster.md)")
	case !encrypted && i.Key != "":
		return volumes.SameKey(i.Key, "")
	case encrypted && i.Key == "":
		return volumes.SameKey("", "some")
	case encrypted && other:
		return errors.New("found encryption among its keys: a clone of an encrypted volume has the same key file, and a header file that is made beside it")
	}
	return nil
}

// headersOf are the header files of a clone at a path; none: it is not encrypted.
func headersOf(v *conf.Volume, place string) []string {
	if v.Encryption == nil {
		return nil
	}
	return []string{place + conf.HeaderSuffix}
}

// cloneHeader makes the header file of a clone, with the master key that the image is
// enciphered with.
func cloneHeader(v *conf.Volume, place, mark string) error {
	if v.Encryption == nil {
		return nil
	}
	key, err := crypt.ReadKey(v.Encryption.KeyFile)
	if err != nil {
		return err
	}
	err = crypt.Duplicate(v.Encryption.HeaderFile, place+conf.HeaderSuffix, key, v.BlockSize, mark)
	if errors.Is(err, crypt.ErrOtherKey) {
		return volumes.SameKey(mark, "another")
	}
	return err
}
