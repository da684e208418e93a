package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/intent"
	"lunar/target/scsi"
)

// openVolume makes a logical unit of the volume.
func (a *assembly) openVolume(v *conf.Volume) (*scsi.LogicalUnit, error) {
	seen, err := a.place(v)
	if err == nil && seen.Intention == evidence.Forget {
		err = a.forgetShield(v)
	}
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	failing, kept := &deferral{}, a.reservationFile(v)
	reserved, err := kept.load()
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	store, behind, err := a.openLayers(v, seen, failing)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	settings := settingsOf(a.cfg, v)
	config := scsi.LUConfig{
		Name: v.Name, Store: backstore.NewSlot(store), Device: deviceOf(v), BlockSize: v.BlockSize,
		Vendor: v.Vendor, Product: v.Product,
		Serial: serialOf(v, a.identity), NAA: v.NAA,
		WriteThrough: settings.WriteThrough, ReadOnly: settings.ReadOnly, Logger: a.log,
		Access: configuredAccess(a.cfg), ExplicitAccess: settings.ExplicitAccess,
		Reservations: reserved, SaveReservations: keeping(a.daemon.health, v.Name, "reservations", kept.save),
		PhysicalBlock: settings.PhysicalBlock, Removable: v.Removable,
		SanitizeRate: settings.SanitizeRate, SoftThreshold: settings.SoftThreshold,
		Refusals: a.daemon.refusals,
	}
	err = a.remember(v, &config)
	var lu *scsi.LogicalUnit
	if err == nil {
		lu, err = scsi.NewLogicalUnit(config)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	failing.bind(lu)
	if behind != nil {
		a.caches[v.Name] = behind
	}
	return lu, nil
}

// openLayers opens what holds a volume's bytes, with all that is around it. seen is what
// was found at its path; of a volume that is opened anew, nothing. behind is
// its part in the cache; nil: there is none. failing hears what the cache could not
// write.
func (a *assembly) openLayers(v *conf.Volume, seen sighting, failing *deferral) (store backstore.Store, behind tier.Changeable, err error) {
	intents, err := a.intents(v, seen)
	if err == nil {
		store, err = openStore(v, intents, a.log, a.meeting(v, seen))
		err = a.advise(v, err)
	}
	base, inCache := store, backstore.Store(nil)
	if err == nil && v.Path != "" {
		a.files[v.Name], _ = os.Stat(v.Path) // without, it is not opened anew
	}
	if err == nil {
		store, err = a.enciphered(v, seen, store)
	}
	if err == nil {
		store, err = a.cached(v, store, seen, failing)
		if errors.Is(err, tier.ErrChanged) {
			err = a.advise(v, fmt.Errorf("%s: %w", v.Path, err))
		}
	}
	if err == nil {
		if behind, _ = store.(tier.Changeable); behind != nil {
			inCache = store
		}
		store, err = a.shielded(v, store)
	}
	if err == nil {
		a.daemon.health.opened(v.Name, base, inCache)
	} else if a.daemon.cache != nil {
		a.daemon.cache.Dismiss(a.volumeID(v))
	}
	return store, behind, err
}

// advise adds to the refusal of a store what can be done about it.
func (a *assembly) advise(v *conf.Volume, err error) error {
	switch {
	case errors.Is(err, intent.ErrOverwritten):
		return fmt.Errorf("%w. Put the store of before back in its place; otherwise,%s", err, a.forgetting(v, "it is to be served as it is"))
	case errors.Is(err, tier.ErrChanged):
		return fmt.Errorf("%w. Nothing was written there;%s%s", err,
			a.adopting(v, "it is the volume as it was, such as a file that was renamed and is back, and gets the unwritten data"),
			a.forgetting(v, "it is to be served as it is, such as a backup that was restored"))
	case errors.Is(err, intent.ErrForeign) || errors.Is(err, intent.ErrPending):
		return fmt.Errorf("%w. %s", err, a.choices(v, &sighting{}))
	}
	return err
}

// openStore opens the volume's store. That of a volume with write: sync is as any other: its logical unit has
// each write made stable, until it is told otherwise.
//
// before hears of a file or device that was found; it may be nil.
func openStore(v *conf.Volume, intents backstore.Intents, log *slog.Logger, before func(backstore.Watched) error) (backstore.Store, error) {
	switch v.Type {
	case conf.FileVolume:
		return openFile(v, backstore.FileConfig{
			Path: v.Path, Size: int64(v.Size), BlockSize: v.BlockSize,
			Direct: v.Direct, ReadOnly: v.ReadOnly, Intents: intents, Logger: log, Before: before,
		}, backstore.OpenFile)
	case conf.BlockVolume:
		return backstore.OpenBlock(backstore.BlockConfig{
			Path: v.Path, BlockSize: v.BlockSize,
			Buffered: !v.Direct, ReadOnly: v.ReadOnly, Intents: intents, Logger: log, Before: before,
		})
	case conf.RAMVolume:
		return backstore.NewRAM(int64(v.Size), v.BlockSize)
	case conf.NullVolume:
		return backstore.NewNull(int64(v.Size), v.BlockSize)
	}
	return nil, fmt.Errorf("found type %q, expected file, block, ram or null", v.Type)
}

// openFile does without direct I/O where the file system has none and the
// configuration does not insist on it. open is backstore.OpenFile but in tests.
func openFile(v *conf.Volume, c backstore.FileConfig, open func(backstore.FileConfig) (backstore.Store, error)) (backstore.Store, error) {
	store, refused := open(c)
	if refused == nil || !v.MayBuffer {
		return store, refused
	}
	c.Direct = false
	store, err := open(c)
	if err != nil {
		return nil, refused // it has another reason
	}
	c.Logger.Warn("volume without direct I/O: the page cache holds its data besides the block cache", "volume", v.Name, "reason", refused)
	return store, nil
}

// serialOf is the volume's configured serial number, or one that depends on
// the server and on the volume's name.
func serialOf(v *conf.Volume, identity string) string {
	if v.Serial != "" {
		return v.Serial
	}
	sum := sha256.Sum256([]byte(identity + "/" + v.Name))
	return hex.EncodeToString(sum[:8])
}

// storePath is how the configuration names a volume's file or device; empty if
// it has none. Links are kept: those below /dev/disk/by-id say which device is
// meant, and what they lead to changes.
func storePath(v *conf.Volume) string {
	if v.Path == "" {
		return ""
	}
	return filepath.Clean(v.Path)
}

// sameStore reports whether two paths lead to the same file or device.
func sameStore(a, b string) bool {
	one, is1 := keyOfStore(a)
	two, is2 := keyOfStore(b)
	return is1 && is2 && one == two
}

// volumeID is that of a volume, unless it goes on by another one.
func (a *assembly) volumeID(v *conf.Volume) uint64 {
	if o := a.aliasOf(v); o != nil {
		return o.Is
	}
	return volumeID(v, a.identity)
}

// volumeID tells a volume from all others in the cache, over restarts: it is of
// what initiators know the volume by and of what holds its bytes.
func volumeID(v *conf.Volume, identity string) uint64 {
	sum := sha256.Sum256([]byte(serialOf(v, identity) + "\x00" + storePath(v)))
	return binary.BigEndian.Uint64(sum[:])
}
