package volumes

import (
	"encoding/hex"
	"errors"
	"fmt"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/internal/durable"
)

// encipher puts encryption around the store of a volume that is to have it. It lies
// below the cache and protection information, so that nothing of the data is stored in
// clear. seen is as in openLayers. On error the store is closed.
func (a *Set) encipher(v *conf.Volume, seen sighting, l *layers) (err error) {
	if v.Encryption == nil {
		err = medium.NotEncrypted(v)
	} else if l.Cipher, err = a.openEncrypted(v, seen, l.store); err == nil {
		l.store = l.Cipher
	}
	if err != nil {
		return errors.Join(err, l.store.Close())
	}
	return nil
}

func (a *Set) openEncrypted(v *conf.Volume, seen sighting, store backstore.Store) (*crypt.Store, error) {
	e := v.Encryption
	key, err := crypt.ReadKey(e.KeyFile)
	if err != nil {
		return nil, err
	}
	var old *crypt.Key
	var lacking error // matters only if the old key is needed
	if e.OldKeyFile != "" {
		old, lacking = crypt.ReadKey(e.OldKeyFile)
	}
	id, err := a.headerOf(v, seen)
	if err == nil && durable.Absent(e.HeaderFile) {
		id, err = crypt.ID{}, a.firstHeader(v, key, store)
	}
	if err != nil {
		return nil, err
	}
	s, err := crypt.Open(crypt.Config{Data: store, Path: e.HeaderFile, Key: key, OldKey: old, Block: v.BlockSize, ID: id, Logger: a.Log})
	if err = a.adviseHeader(v, err); err != nil {
		return nil, errors.Join(err, lacking)
	}
	if lacking != nil {
		a.Log.Warn("the old key file cannot be read, and is not needed", "volume", v.Name, "err", lacking)
	}
	return s, nil
}

// adviseHeader says what can be done about another volume's header.
func (a *Set) adviseHeader(v *conf.Volume, err error) error {
	if errors.Is(err, crypt.ErrNotIts) && v.Path == "" {
		return fmt.Errorf("%w. Put the volume's own header there; only if its data are not needed any more, lunar encrypt --give-up-data makes another one", err)
	}
	if errors.Is(err, crypt.ErrNotIts) {
		err = fmt.Errorf("%w. Put the volume's own header there; or, if its data were enciphered with the one that is there: %s", err, a.saying(evidence.Adopt, v))
	}
	return err
}

// headerOf is the header that a volume has to have: the one that it had while it was
// open, or that is recorded, unless an administrator has said what is there; zero: any.
func (a *Set) headerOf(v *conf.Volume, seen sighting) (id crypt.ID, err error) {
	if open := a.Open[v.Name]; open != nil && open.Cipher != nil {
		return open.Cipher.ID(), nil
	}
	if seen.Record == nil || seen.Record.Header == "" || seen.Intention != evidence.None {
		return id, nil
	}
	raw, err := hex.DecodeString(seen.Record.Header)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("record of its store: found header %q, expected %d hexadecimal digits", seen.Record.Header, 2*len(id))
	}
	return crypt.ID(raw), nil
}

// firstHeader makes the header of a volume that has none and nothing to lose.
func (a *Set) firstHeader(v *conf.Volume, key *crypt.Key, store backstore.Store) error {
	header := v.Encryption.HeaderFile
	if x, ok := store.(interface{ Empty() bool }); ok && !x.Empty() {
		return fmt.Errorf("encryption: found no header file %s, and writes in excess that need it: put the copy of the header file there", header)
	}
	if err := medium.MayHaveFirstHeader(v); err != nil {
		return err
	}
	if err := crypt.Create(header, key, v.BlockSize); err != nil {
		return err
	}
	a.Log.Info("the header of an encrypted volume has been made: keep a copy of it, and of the key file; without either the data are lost", "volume", v.Name, "header", header)
	return nil
}
