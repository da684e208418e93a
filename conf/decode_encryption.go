package conf

import "regexp"

// TuplesSuffix follows the path of a file volume in the default of protection-file.
const TuplesSuffix = ".pi"

// HeaderSuffix follows the path of a file volume in the default of header-file.
const HeaderSuffix = ".header"

func volumeEncryption(v *Volume) setter {
	return func(d *decoder, n node) {
		e := &VolumeEncryption{}
		ok := d.mapping(n, fields{
			"key-file":     keyPath(&e.KeyFile),
			"old-key-file": keyPath(&e.OldKeyFile),
			"header-file":  text(&e.HeaderFile, "a path", validPath),
		})
		if ok {
			d.require(n, "key-file", "the path of a file with 32 random bytes, which openssl rand -hex 32 makes")
		}
		v.Encryption = e
	}
}

// bareKey is what a key of 32 bytes looks like in place of its file's path, in
// hexadecimal digits or base64.
var bareKey = regexp.MustCompile(`^([0-9A-Fa-f]{64}|[A-Za-z0-9+_-][A-Za-z0-9+/_-]{42}=)$`)

// keyPath accepts the path of a file with a key, and never the key itself.
func keyPath(to *string) setter {
	return func(d *decoder, n node) {
		path, ok := n.scalar()
		switch {
		case !ok || !validPath(path):
			d.fail(n.path, n.kind(), "a path")
		case bareKey.MatchString(path):
			d.fail(n.path, "what looks like a key", "the path of a file that holds it")
		default:
			*to = path
		}
	}
}

// fitsEncryption fills in where the header of a volume is.
func (d *decoder) fitsEncryption(n node, v *Volume) {
	e := v.Encryption
	switch {
	case e == nil:
	case v.Type == RBDVolume && !v.Clustered():
		d.fail(n.path+".encryption", "encryption of an image without owners", "owners beside it: the header is kept in the state of their cluster")
	case v.Clustered() && e.HeaderFile != "":
		d.fail(n.path+".encryption.header-file", "a header-file with owners", "none: the header is in the cluster's state")
	case e.HeaderFile == "" && v.Type == FileVolume:
		e.HeaderFile = v.Path + HeaderSuffix
	case e.HeaderFile == "" && (v.Type == BlockVolume || v.Type == MirrorVolume):
		d.fail(n.path+".encryption", "no header-file", "header-file: the path of a file that keeps the volume's wrapped key")
	}
	if e != nil && e.OldKeyFile != "" && e.OldKeyFile == e.KeyFile {
		d.fail(n.path+".encryption.old-key-file", "the same as key-file", "another file than key-file")
	}
}
