package volumes

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
)

// SerialOf is the volume's configured serial number, or one that depends on
// the server and on the volume's name.
func SerialOf(v *conf.Volume, identity string) string {
	if v.Serial != "" {
		return v.Serial
	}
	sum := sha256.Sum256([]byte(identity + "/" + v.Name))
	return hex.EncodeToString(sum[:8])
}

// volumeID is that of a volume, unless it goes on by another one.
func (a *Set) volumeID(v *conf.Volume) uint64 {
	if o := a.aliasOf(v); o != nil {
		return o.Is
	}
	return volumeID(v, a.Identity)
}

// volumeID tells a volume from all others in the cache, over restarts: it is of
// what initiators know the volume by and of what holds its bytes.
func volumeID(v *conf.Volume, identity string) uint64 {
	sum := sha256.Sum256([]byte(SerialOf(v, identity) + "\x00" + medium.Path(v)))
	return binary.BigEndian.Uint64(sum[:])
}

// aliasOf returns the alias of a volume that goes on by another identity; nil: it has
// none.
func (a *Set) aliasOf(v *conf.Volume) *state.Alias {
	found, ok := a.aliases.Load(v.Name)
	if !ok {
		return nil
	}
	o := found.(state.Alias)
	if o.Of != volumeID(v, a.Identity) {
		return nil // its path or serial has changed again
	}
	return &o
}
