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

// companyID stands where NAA 6h has the IEEE company identifier of a maker. Lunar has
// none. This one is administratively assigned (IEEE 802c-2017, quadrant AAI: the first
// octet ends in 0010b), which are nobody's and which the IEEE gives to nobody.
const companyID = 0x024c55

// naaOf is the NAA identifier of a volume; nil: the locally assigned one that follows
// from its serial number.
func (a *Set) naaOf(v *conf.Volume) []byte {
	switch {
	case v.NAA != "":
		naa, _ := hex.DecodeString(v.NAA) // conf has checked it
		return naa
	case v.Serial != "" || a.Naming.IsLocal(v.Name):
		return nil
	}
	return registeredExtended(SerialOf(v, a.Identity))
}

// SuggestedNAA is an identifier for a volume with a serial number of the configuration,
// in digits.
func SuggestedNAA(v *conf.Volume) string { return hex.EncodeToString(registeredExtended(v.Serial)) }

// registeredExtended is an identifier of the form NAA 6h (SPC-4 clause 7.8.6.6.5) that
// follows from a serial number. Initiators prefer that form to all others.
func registeredExtended(serial string) []byte {
	sum := sha256.Sum256([]byte("naa/" + serial))
	naa := sum[:16]
	head := uint32(6)<<28 | companyID<<4 | uint32(naa[3]&0x0f)
	binary.BigEndian.PutUint32(naa, head)
	return naa
}

// designatorsOf are those that the configuration gives; nil: the others follow from the
// rest of the volume's identity.
func designatorsOf(v *conf.Volume) (all []byte) {
	for _, text := range v.Designators {
		one, _ := hex.DecodeString(text) // conf has checked it
		all = append(all, one...)
	}
	return all
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
