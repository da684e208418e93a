package errstore

import "lunar/backstore"

// RefuseClose returns s with a Close that fails with err the first n times, as that
// of a store which still has something to write, and then closes s. Close is to be
// called by one goroutine at a time.
func RefuseClose(s backstore.Store, n int, err error) backstore.Store {
	return &stubborn{s, n, err}
}

type stubborn struct {
	backstore.Store
	refusals int
	err      error
}

func (s *stubborn) Close() error {
	if s.refusals > 0 {
		s.refusals--
		return s.err
	}
	return s.Store.Close()
}
