package offline

import (
	"errors"
	"fmt"
	"log/slog"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
)

// Unencrypted is a volume that is to be encrypted and has no header.
type Unencrypted struct {
	File     string `arg:"" help:"The configuration file." type:"path"`
	Volume   string `arg:"" help:"${which}"`
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server. Default: as for serve."`
}

// MakeHeader makes the header file, while nobody serves the volume: what this holds is
// given up.
func (k Unencrypted) MakeHeader() (e *conf.VolumeEncryption, err error) {
	dir, err := conf.StateDir(k.StateDir)
	if err != nil {
		return nil, err
	}
	cfg, err := load(k.File, dir)
	if err != nil {
		return nil, conf.Reported(err)
	}
	v := cfg.Volume(k.Volume)
	if v == nil || v.Encryption == nil || v.ReadOnly {
		return nil, fmt.Errorf("found no volume %q with encryption that may be written in %s", k.Volume, k.File)
	}
	if v.Clustered() {
		return nil, fmt.Errorf("volume %s: found owners: its header is in the cluster's state, and is made when its first owner finds an image that holds nothing", v.Name)
	}
	held, err := state.TakeFor(dir, v.Encryption.HeaderFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	key, err := crypt.ReadKey(v.Encryption.KeyFile)
	if err != nil {
		return nil, err
	}
	stores, err := locked(v)
	if err == nil {
		err = errors.Join(crypt.Create(v.Encryption.HeaderFile, key, v.BlockSize), state.ForgetHeader(dir, v))
	}
	for _, s := range stores {
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	return v.Encryption, nil
}

// locked opens what a volume's data are on, which locks it. Whoever calls it closes them,
// after an error, too.
func locked(v *conf.Volume) (all []backstore.Store, err error) {
	log := slog.New(slog.DiscardHandler)
	if v.Type != conf.MirrorVolume {
		s, err := medium.Open(v, backstore.Intents{}, log, nil)
		if err != nil {
			return nil, err
		}
		return []backstore.Store{s}, nil
	}
	for _, path := range v.Members {
		s, err := medium.OpenMember(v, path, log)
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}
