package main

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"lunar/conf"
	"lunar/internal/durable"
)

// besides is the path, without an extension, of what the state directory keeps of
// a volume. It has what the volume is known by, so that another of the same name
// does not inherit it.
func (a *assembly) besides(kind string, v *conf.Volume) string {
	return filepath.Join(a.stateDir, kind, fmt.Sprintf("%s-%016x", v.Name, volumeID(v, a.identity)))
}

// intentLog is the path of the log that makes atomic writes to the volume's file
// or device atomic, empty for a volume that has none. It goes by the path alone:
// what a crash left there is to be completed whatever the volume is called then.
func (a *assembly) intentLog(v *conf.Volume) (string, error) {
	if v.Path == "" || v.ReadOnly {
		return "", nil
	}
	dir := filepath.Join(a.stateDir, "atomic")
	if err := durable.MakeDir(dir); err != nil {
		return "", fmt.Errorf("atomic writes: %w", err)
	}
	sum := sha256.Sum256([]byte(storePath(v)))
	return filepath.Join(dir, fmt.Sprintf("%x.log", sum[:8])), nil
}
