package conf

import "fmt"

// HeaderSuffix follows the path of a file volume in the default of header-file.
const HeaderSuffix = ".header"

func volumeEncryption(v *Volume) setter {
	return func(d *decoder, n node) {
		e := &VolumeEncryption{}
		ok := d.mapping(n, fields{
			"key-file":     text(&e.KeyFile, "a path", validPath),
			"old-key-file": text(&e.OldKeyFile, "a path", validPath),
			"header-file":  text(&e.HeaderFile, "a path", validPath),
		})
		if ok {
			d.require(n, "key-file", "the path of a file with 32 random bytes, which openssl rand -hex 32 makes")
		}
		v.Encryption = e
	}
}

// fitsEncryption fills in where the header of a volume is.
func (d *decoder) fitsEncryption(n node, v *Volume) {
	e := v.Encryption
	switch {
	case e == nil:
	case e.HeaderFile == "" && v.Type == FileVolume:
		e.HeaderFile = v.Path + HeaderSuffix
	case e.HeaderFile == "" && v.Type == BlockVolume:
		d.fail(n.path+".encryption", "no header-file", "header-file: the path of a file that keeps the volume's wrapped key")
	}
	if e != nil && e.OldKeyFile != "" && e.OldKeyFile == e.KeyFile {
		d.fail(n.path+".encryption.old-key-file", fmt.Sprintf("%q", e.OldKeyFile), "another file than key-file")
	}
}
