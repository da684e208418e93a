package buf

// Account counts the buffers that somebody uses. It belongs to the thread of the
// pools that they are from.
type Account struct {
	Used int      // bytes
	N    int      // buffers
	Of   *Account // in which all of it is counted as well; nil: none
}

// Add counts n bytes more, or less, of something that is no buffer.
func (a *Account) Add(n int) {
	for ; a != nil; a = a.Of {
		a.Used += n
	}
}

func (a *Account) open(n int) {
	for ; a != nil; a = a.Of {
		a.Used += n
		a.N++
	}
}

func (a *Account) close(n int) {
	for ; a != nil; a = a.Of {
		a.Used -= n
		a.N--
	}
}
