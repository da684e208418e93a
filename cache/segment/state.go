package segment

// Positions in a copy of the state, in words. The sequence is 0 while the copy
// is being written.
const (
	atSequence   = 0
	atGeneration = 1
	atStatus     = 2 // and the process in the upper half
	atBuiltBy    = 3
	atSums       = atBuiltBy + maxBuild/8 // a word for each area
	atStateSum   = atSums + maxAreas
	stateWords   = atStateSum + 1
)

// stateAt are the places of the two copies.
var stateAt = [2]int{pageWords, pageWords + pageWords/2}

// status says how the last process left the segment.
type status uint32

const (
	statusOpen  status = 1 // it serves, or was killed
	statusClean status = 2 // it has ended in order
)

// state is what changes at attach and shutdown.
type state struct {
	sequence   uint64 // of the copy
	generation uint64 // counts the processes that attached the segment
	status     status
	process    uint32
	build      string
	sums       [maxAreas]uint32 // of areas, valid if clean
}

// write stores the state over the older copy and leaves the newer one as it is.
func (s state) write(w words) {
	older := 0
	if w.load(stateAt[0]+atSequence) > w.load(stateAt[1]+atSequence) {
		older = 1
	}
	at := stateAt[older]
	s.sequence = w.load(stateAt[1-older]+atSequence) + 1
	w.store(at+atSequence, 0)
	w.store(at+atGeneration, s.generation)
	w.store(at+atStatus, uint64(s.status)|uint64(s.process)<<32)
	storeText(w, at+atBuiltBy, maxBuild/8, s.build)
	for i, crc := range s.sums {
		w.store(at+atSums+i, uint64(crc))
	}
	w.store(at+atStateSum, uint64(s.sum(w, at)))
	w.store(at+atSequence, s.sequence)
}

// sum covers all of the copy at position at, and the sequence that it will have.
func (s state) sum(w words, at int) uint32 {
	crc := sum(0, s.sequence)
	for i := atGeneration; i < atStateSum; i++ {
		crc = sum(crc, w.load(at+i))
	}
	return crc
}

// readState returns the newest copy that is whole. torn says that the other one
// is neither whole nor unused: a process was killed while it wrote it, or it was
// damaged; then nothing may be concluded from a state that says clean. ok is
// false if no copy is whole.
func readState(w words) (s state, torn, ok bool) {
	for _, at := range stateAt {
		c, whole, used := readCopy(w, at)
		switch {
		case !whole:
			torn = torn || used
		case !ok || c.sequence > s.sequence:
			s, ok = c, true
		}
	}
	return s, torn, ok
}

func readCopy(w words, at int) (s state, whole, used bool) {
	for i := range stateWords {
		used = used || w.load(at+i) != 0
	}
	s.sequence = w.load(at + atSequence)
	if s.sequence == 0 || w.load(at+atStateSum) != uint64(s.sum(w, at)) {
		return state{}, false, used
	}
	s.generation = w.load(at + atGeneration)
	s.status, s.process = status(w.load(at+atStatus)), uint32(w.load(at+atStatus)>>32)
	s.build = loadText(w, at+atBuiltBy, maxBuild/8)
	for i := range s.sums {
		s.sums[i] = uint32(w.load(at + atSums + i))
	}
	return s, s.status == statusOpen || s.status == statusClean, used
}
