package daemon

import (
	"errors"
	"fmt"

	"lunar/conf"
	"lunar/daemon/medium"
)

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
		note, failed := medium.CheckHeader(resolved.Volume(v.Name))
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
	dir, err := conf.StateDir(stateDir)
	if err == nil {
		cfg.InStateDir(dir)
	}
	return cfg, err
}
