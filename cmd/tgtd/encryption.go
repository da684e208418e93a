package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/evidence"
	"lunar/conf"
)

// enciphered puts encryption around the store of a volume that is to have it. It lies
// below the cache and protection information, so that nothing of the data is stored in
// clear. seen is as in openLayers. On error the store is closed.
func (a *assembly) enciphered(v *conf.Volume, seen sighting, store backstore.Store) (backstore.Store, error) {
	if v.Encryption == nil {
		if err := notEncrypted(v); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		return store, nil
	}
	s, err := a.openEncrypted(v, seen, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return s, nil
}

func (a *assembly) openEncrypted(v *conf.Volume, seen sighting, store backstore.Store) (backstore.Store, error) {
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
	if err == nil && absent(e.HeaderFile) {
		id, err = crypt.ID{}, a.firstHeader(v, key)
	}
	if err != nil {
		return nil, err
	}
	s, err := crypt.Open(crypt.Config{Data: store, Path: e.HeaderFile, Key: key, OldKey: old, Block: v.BlockSize, ID: id, Logger: a.log})
	if err = a.adviseHeader(v, err); err != nil {
		return nil, errors.Join(err, lacking)
	}
	if lacking != nil {
		a.log.Warn("the old key file cannot be read, and is not needed", "volume", v.Name, "err", lacking)
	}
	a.ciphers[v.Name] = s
	return s, nil
}

// adviseHeader says what can be done about another volume's header.
func (a *assembly) adviseHeader(v *conf.Volume, err error) error {
	if errors.Is(err, crypt.ErrNotIts) {
		err = fmt.Errorf("%w. Put the volume's own header there; or, if its data were enciphered with the one that is there: %s", err, a.saying(evidence.Adopt, v))
	}
	return err
}

// changeKeys wraps the keys of volumes that are open with other key files. Who opens a
// volume anew needs the key file of before if that has to be undone, so both do not
// change at once.
func (c *change) changeKeys() error {
	a := c.daemon.assembly
	for i := range c.cfg.Volumes {
		now := &c.cfg.Volumes[i]
		was := c.old.Volume(now.Name)
		if was == nil || was.Encryption == nil || now.Encryption == nil || was.Encryption.KeyFile == now.Encryption.KeyFile {
			continue
		}
		if a.reopens(was, now) {
			return fmt.Errorf("volume %s: found another key-file, and other keys for which it has to be opened anew: apply one after the other", now.Name)
		}
		key, err := crypt.ReadKey(now.Encryption.KeyFile)
		if err != nil {
			return fmt.Errorf("volume %s: %w", now.Name, err)
		}
		before, err := a.ciphers[now.Name].Rewrap(key)
		if err != nil {
			return fmt.Errorf("volume %s: %w", now.Name, err)
		}
		c.undo = append(c.undo, func() error { _, err := a.ciphers[now.Name].Rewrap(before); return err })
		c.did = append(c.did, fmt.Sprintf("%s: the header %s has the new key: copy it again", conf.Key("volumes", now.Name, "encryption", "key-file"), now.Encryption.HeaderFile))
	}
	return nil
}

// headerOf is the header that a volume has to have: the one that it had while it was
// open, or that is recorded, unless an administrator has said what is there; zero: any.
func (a *assembly) headerOf(v *conf.Volume, seen sighting) (id crypt.ID, err error) {
	if open := a.ciphers[v.Name]; open != nil {
		return open.ID(), nil
	}
	if seen.record == nil || seen.record.Header == "" || seen.Intention != evidence.None {
		return id, nil
	}
	raw, err := hex.DecodeString(seen.record.Header)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("record of its store: found header %q, expected %d hexadecimal digits", seen.record.Header, 2*len(id))
	}
	return crypt.ID(raw), nil
}

// firstHeader makes the header of a volume that has none and nothing to lose.
func (a *assembly) firstHeader(v *conf.Volume, key *crypt.Key) error {
	header := v.Encryption.HeaderFile
	if err := mayHaveFirstHeader(v); err != nil {
		return err
	}
	if err := crypt.Create(header, key, v.BlockSize); err != nil {
		return err
	}
	a.log.Info("the header of an encrypted volume has been made: keep a copy of it, and of the key file; without either the data are lost", "volume", v.Name, "header", header)
	return nil
}

// mayHaveFirstHeader refuses one for a volume that has something to lose.
func mayHaveFirstHeader(v *conf.Volume) error {
	header := v.Encryption.HeaderFile
	blank, err := crypt.Blank(v.Path)
	switch {
	case err != nil:
		return fmt.Errorf("encryption: %w", err)
	case v.ReadOnly:
		return fmt.Errorf("encryption: found no header file %s, and the volume is read-only", header)
	case !blank:
		return fmt.Errorf("encryption: found no header file %s, and %s may hold data. If they are encrypted, put the copy of the header file there: without it nothing gives them back. If nothing of them is needed, tgtd encrypt --give-up-data makes a header file",
			header, v.Path)
	}
	return nil
}

// notEncrypted refuses to serve cipher text as if it were data.
func notEncrypted(v *conf.Volume) error {
	if v.Type != conf.FileVolume {
		return nil
	}
	there, err := crypt.HasHeader(v.Path + conf.HeaderSuffix)
	if err == nil && there {
		err = fmt.Errorf("found %s, the header of an encrypted volume, and no encryption in the configuration: %s would be served as cipher text, and spoilt by writes. Move the header away if the file is another one", v.Path+conf.HeaderSuffix, v.Path)
	}
	return err
}

// checkEncryption reports key and header files that would keep volumes from being
// opened; nothing is changed.
func checkEncryption(cfg *conf.Config, stateDir string) (notes []string, err error) {
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		if v.Encryption == nil {
			continue
		}
		resolved, failed := inStateDir(cfg, stateDir)
		if failed != nil {
			return nil, failed
		}
		note, failed := checkHeader(resolved.Volume(v.Name).Encryption, v.BlockSize)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("volume %s: %w", v.Name, failed))
		} else if note != "" {
			notes = append(notes, "volume "+v.Name+": "+note)
		}
	}
	return notes, err
}

// inStateDir resolves the paths of a configuration that is only looked at.
func inStateDir(cfg *conf.Config, stateDir string) (*conf.Config, error) {
	dir, err := pathOfStateDir(stateDir)
	if err == nil {
		cfg.InStateDir(dir)
	}
	return cfg, err
}

func checkHeader(e *conf.VolumeEncryption, block int) (note string, err error) {
	key, err := crypt.ReadKey(e.KeyFile)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(e.HeaderFile); errors.Is(err, fs.ErrNotExist) {
		return "no header file " + e.HeaderFile + " yet: the first start makes it, if the volume is empty; then keep a copy", nil
	}
	var old *crypt.Key
	if e.OldKeyFile != "" {
		old, _ = crypt.ReadKey(e.OldKeyFile) // nil: it is not needed, or Verify fails
	}
	return "", crypt.Verify(e.HeaderFile, key, old, block)
}

// forgetHeader has a volume take another header than the one that it had.
func forgetHeader(dir string, v *conf.Volume) error {
	file := recordFile(dir, v.Name)
	record, err := file.load()
	if err != nil || record == nil || record.Header == "" {
		return err
	}
	record.Header = ""
	return file.save(record)
}

type encryptCommand struct {
	File       string `arg:"" help:"The configuration file." type:"path"`
	Volume     string `arg:"" help:"A volume with encryption that has no header file."`
	GiveUpData bool   `required:"" help:"What the volume's file or device holds now is given up."`
	StateDir   string `type:"path" placeholder:"DIR" help:"State directory of the server. Default: as for serve."`
}

// Run makes the header file of a volume that may hold something, while nobody serves
// it.
func (k encryptCommand) Run(c console) (err error) {
	cfg, _, err := conf.Load(k.File)
	if err != nil {
		return reported(err)
	}
	dir, err := pathOfStateDir(k.StateDir)
	if err != nil {
		return err
	}
	cfg.InStateDir(dir)
	v := cfg.Volume(k.Volume)
	if v == nil || v.Encryption == nil || v.ReadOnly {
		return fmt.Errorf("found no volume %q with encryption that may be written in %s", k.Volume, k.File)
	}
	held, err := claimFor(dir, v.Encryption.HeaderFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.release()) }()
	key, err := crypt.ReadKey(v.Encryption.KeyFile)
	if err != nil {
		return err
	}
	store, err := openStore(v, backstore.Intents{}, slog.New(slog.DiscardHandler), nil) // which locks it
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	if err := errors.Join(crypt.Create(v.Encryption.HeaderFile, key, v.BlockSize), forgetHeader(dir, v), store.Close()); err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	_, err = fmt.Fprintf(c.out, "made %s: keep a copy of it and of %s; without either the data are lost\n", v.Encryption.HeaderFile, v.Encryption.KeyFile)
	return err
}
