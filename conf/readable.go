package conf

import (
	"fmt"
	"os"
)

// warnIfReadable warns of a file that holds secrets and that everyone may
// read.
func (d *decoder) warnIfReadable(key, path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return
	}
	mode := fmt.Sprintf("mode %04o on %s, which holds secrets", info.Mode().Perm(), path)
	d.warn(key, mode, "a file that others cannot read (chmod 600 "+path+")")
}
