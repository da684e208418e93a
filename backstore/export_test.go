package backstore

// Forgo makes a file or block store believe that the kernel refused every
// optional feature but punching holes.
func Forgo(s Store) {
	for _, a := range []ability{nowait, dsync, zeroRange, seekHole} {
		s.(*volume).forgo(a)
	}
}

// InlineSpan is the most that a thread zeroes or releases by itself, in bytes.
const InlineSpan = inlineSpan

// Trim makes a block store discard as on a device that cannot zero by itself.
func Trim(s Store) {
	v := s.(*volume)
	v.trims = true
	info := v.Info()
	info.DiscardZeroes = false
	v.info.Store(&info)
}
