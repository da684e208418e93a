package medium

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"lunar/conf"
)

// ownFile is a file or device that a volume has for itself alone, unless it only
// reads it.
type ownFile struct {
	volume, path string
	shared       bool
}

// fileKey tells files and devices from each other while the machine runs.
type fileKey struct{ dev, number uint64 }

// Key tells stores from each other: by file or device, or by path where there is
// none that can be looked at.
type Key struct {
	file fileKey
	Path string
}

// KeyOf is false for no path.
func KeyOf(path string) (Key, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return Key{Path: path}, path != ""
	}
	return Key{file: keyOfFile(info)}, true
}

func keyOfFile(info os.FileInfo) fileKey {
	st := info.Sys().(*syscall.Stat_t)
	if st.Mode&syscall.S_IFMT == syscall.S_IFBLK {
		return fileKey{number: st.Rdev}
	}
	return fileKey{st.Dev, st.Ino}
}

// ByStore finds volumes by what they are on, which is looked at once for each.
func ByStore(volumes []*conf.Volume, key func(string) (Key, bool)) map[Key][]*conf.Volume {
	all := map[Key][]*conf.Volume{}
	for _, v := range volumes {
		if k, ok := key(Path(v)); ok {
			all[k] = append(all[k], v)
		}
	}
	return all
}

// StoredTwice refuses configurations in which one file or device serves twice, by
// links, too. It ignores paths that lead to nothing or cannot be
// read: opening them reports that.
func StoredTwice(cfg *conf.Config) error {
	seen, errs := map[fileKey]ownFile{}, []error(nil)
	for i := range cfg.Volumes {
		for _, f := range filesOf(&cfg.Volumes[i]) {
			info, err := os.Stat(f.path)
			if err != nil {
				continue
			}
			key := keyOfFile(info)
			if o, twice := seen[key]; twice && !(f.shared && o.shared) {
				errs = append(errs, fmt.Errorf("volume %s: %s is the same file or device as %s of volume %s", f.volume, f.path, o.path, o.volume))
			}
			seen[key] = f
		}
	}
	return errors.Join(errs...)
}

// filesOf are a volume's.
func filesOf(v *conf.Volume) (all []ownFile) {
	add := func(path string, shared bool) {
		if path != "" {
			all = append(all, ownFile{v.Name, path, shared})
		}
	}
	add(v.Path, v.ReadOnly && v.Type != conf.BlockVolume)
	add(v.ProtectionFile, false)
	add(v.Map, false)
	add(v.Excess, false)
	for _, m := range v.Members {
		add(m, false)
	}
	if v.Encryption != nil {
		add(v.Encryption.HeaderFile, false)
	}
	return all
}
