package medium

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"lunar/backstore/crypt"
	"lunar/conf"
)

// MayHaveFirstHeader refuses one for a volume that has something to lose.
func MayHaveFirstHeader(v *conf.Volume) error {
	header := v.Encryption.HeaderFile
	blank, err := blank(v)
	switch {
	case err != nil:
		return fmt.Errorf("encryption: %w", err)
	case v.ReadOnly:
		return fmt.Errorf("encryption: found no header file %s, and the volume is read-only", header)
	case !blank:
		clear := "send the volume to one with encryption (lunar volume send)"
		if v.Type == conf.FileVolume {
			clear = "lunar encrypt --keep-data encrypts them"
		}
		return fmt.Errorf("encryption: found no header file %s, and %s may hold data. If they are encrypted, put the copy of the header file there: without it nothing gives them back. If they are in clear, %s. If nothing of them is needed, lunar encrypt --give-up-data makes a header file",
			header, strings.Join(pathsOf(v), " or "), clear)
	}
	return nil
}

// pathsOf are the files or devices that a volume's data are on.
func pathsOf(v *conf.Volume) []string {
	if v.Path == "" {
		return v.Members
	}
	return []string{v.Path}
}

// blank reports whether a volume has nothing that could be cipher text. What is not there
// has nothing.
func blank(v *conf.Volume) (bool, error) {
	for _, path := range pathsOf(v) {
		one, err := crypt.Blank(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err == nil && !one {
			return false, nil
		}
	}
	return true, nil
}

// NotEncrypted refuses to serve cipher text as if it were data.
func NotEncrypted(v *conf.Volume) error {
	if v.Path == "" || v.Type == conf.BlockVolume {
		return nil
	}
	there, err := crypt.HasHeader(v.Path + conf.HeaderSuffix)
	if err == nil && there {
		err = fmt.Errorf("found %s, the header of an encrypted volume, and no encryption in the configuration: %s would be served as cipher text, and spoilt by writes. Put encryption back, or write the data in clear (lunar decrypt FILE VOLUME --key-file KEY); move the header away only if the file is another one", v.Path+conf.HeaderSuffix, v.Path)
	}
	return err
}

// CheckHeader reports a key or a header file that would keep a volume from being opened;
// the note says what a start will make, or what was not looked at.
func CheckHeader(v *conf.Volume) (note string, err error) {
	e := v.Encryption
	key, err := crypt.ReadKey(e.KeyFile)
	if err != nil {
		return "", err
	}
	if v.Clustered() {
		return "its header is in the cluster's state, which was not asked: lunar cluster status says whether this node's key file opens it", nil
	}
	if _, err := os.Stat(e.HeaderFile); errors.Is(err, fs.ErrNotExist) {
		return "no header file " + e.HeaderFile + " yet: the first start makes it, if the volume is empty; then keep a copy", nil
	}
	var old *crypt.Key
	if e.OldKeyFile != "" {
		old, _ = crypt.ReadKey(e.OldKeyFile) // nil: it is not needed, or Verify fails
	}
	return "", crypt.Verify(e.HeaderFile, key, old, v.BlockSize)
}
