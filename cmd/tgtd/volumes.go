package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"lunar/backstore"
	"lunar/conf"
	"lunar/target/scsi"
)

// openVolume makes a logical unit of the volume with the given number.
func (a *assembly) openVolume(v *conf.Volume, number int, identity string) (*scsi.LogicalUnit, error) {
	store, err := openStore(v, a.log)
	if err == nil {
		store, err = a.cached(v, number, store)
	}
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	lu, err := scsi.NewLogicalUnit(scsi.LUConfig{
		Name: v.Name, Store: store, BlockSize: v.BlockSize,
		Vendor: v.Vendor, Product: v.Product,
		Serial: serialOf(v, identity), NAA: v.NAA,
		WriteThrough: v.Write == conf.WriteSync, ReadOnly: v.ReadOnly, Logger: a.log,
	})
	if err != nil {
		store.Close()
		return nil, err
	}
	return lu, nil
}

func openStore(v *conf.Volume, log *slog.Logger) (backstore.Store, error) {
	sync := v.Write == conf.WriteSync
	switch v.Type {
	case conf.FileVolume:
		return openFile(v, backstore.FileConfig{
			Path: v.Path, Size: int64(v.Size), BlockSize: v.BlockSize,
			Direct: v.Direct, ReadOnly: v.ReadOnly, Sync: sync, Logger: log,
		})
	case conf.BlockVolume:
		return backstore.OpenBlock(backstore.BlockConfig{
			Path: v.Path, BlockSize: v.BlockSize,
			Buffered: !v.Direct, ReadOnly: v.ReadOnly, Sync: sync, Logger: log,
		})
	case conf.RAMVolume:
		return backstore.NewRAM(int64(v.Size), v.BlockSize)
	case conf.NullVolume:
		return backstore.NewNull(int64(v.Size), v.BlockSize)
	}
	return nil, fmt.Errorf("found type %q, expected file, block, ram or null", v.Type)
}

// openFile does without direct I/O where the file system has none and the
// configuration does not insist on it.
func openFile(v *conf.Volume, c backstore.FileConfig) (backstore.Store, error) {
	store, refused := backstore.OpenFile(c)
	if refused == nil || !v.MayBuffer {
		return store, refused
	}
	c.Direct = false
	store, err := backstore.OpenFile(c)
	if err != nil {
		return nil, refused // it has another reason
	}
	c.Logger.Warn("volume goes through the page cache below the block cache, which holds its data twice", "volume", v.Name, "reason", refused)
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
