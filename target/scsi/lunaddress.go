package scsi

// MaxLUN is the largest LUN number that one addressing level can carry.
const MaxLUN = 1<<14 - 1

// Addressing methods, the two leftmost bits of a LUN (SAM-5 clause 4.7.7).
const (
	peripheralDevice = 0
	flatSpace        = 1
)

// EncodeLUN returns LUN number n, at most MaxLUN, as the 8 bytes (big endian)
// that initiators see: by the peripheral device method up to 255, else by the
// flat space method.
func EncodeLUN(n uint64) uint64 {
	if n > 255 {
		n |= flatSpace << 14
	}
	return n << 48
}

// DecodeLUN returns the LUN number that the 8 bytes of lun (big endian)
// address by either method, whichever EncodeLUN would have taken. It reports
// false for all other LUNs: further levels, buses, well known logical units.
func DecodeLUN(lun uint64) (uint64, bool) {
	first := lun >> 48
	if lun<<16 != 0 {
		return 0, false
	}
	switch first >> 14 {
	case peripheralDevice:
		return first, first <= 255
	case flatSpace:
		return first & MaxLUN, true
	}
	return 0, false
}
