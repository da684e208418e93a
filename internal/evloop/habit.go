package evloop

// habit counts for and against looking.
type habit int

const (
	spinFrom = 8 // looking pays while the habit is at least that
	spinMost = 16
	// spinMiss is what one look that would find no work takes off: it costs the whole
	// limit, one that pays saves less.
	spinMiss = 4
)

func (h habit) pays() bool { return h >= spinFrom }

func (h *habit) learn(hit bool) {
	if hit {
		*h = min(*h+1, spinMost)
	} else {
		*h = max(*h-spinMiss, 0)
	}
}
