// Package crypttest has the tests that enciphered stores must pass wherever their headers are
// kept.
package crypttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/crypt"
)

// Subject is a store of one medium, of blocks of 512 bytes, and its header.
type Subject struct {
	// Open opens it as after a start, with the paths of a key file and of the one before (empty:
	// there is none). The first time there is no header yet. end closes it.
	Open func(t *testing.T, key, old string) (s *crypt.Store, end func() error, err error)
	// Fail has changes of the header fail, of which nothing happens then; nil: they never do.
	Fail func(fails bool)
}

// Run runs the tests over fresh subjects.
func Run(t *testing.T, fresh func(t *testing.T) Subject) {
	for name, test := range map[string]func(*subject){
		"reopen": (*subject).reopen, "rewrap": (*subject).rewrap, "old key": (*subject).oldKey, "erase": (*subject).erase, "failure": (*subject).failure,
	} {
		t.Run(name, func(t *testing.T) {
			test(&subject{t, fresh(t), t.TempDir()})
		})
	}
}

type subject struct {
	*testing.T
	on  Subject
	dir string
}

// key is the path of the n-th key file.
func (s *subject) key(n int) string {
	s.Helper()
	path := filepath.Join(s.dir, fmt.Sprint(n))
	if err := os.WriteFile(path, []byte(fmt.Sprintf("%064x", n)), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// with opens the store, uses it and closes it.
func (s *subject) with(key, old string, use func(*crypt.Store, *backstoretest.Client)) {
	s.Helper()
	store, end, err := s.on.Open(s.T, key, old)
	if err != nil {
		s.Fatal(err)
	}
	of := s.T
	defer func() { s.T = of }()
	s.Run("open", func(t *testing.T) { // whose end closes the lanes
		s.T = t
		use(store, backstoretest.NewClient(t, store, backstoretest.NewLoop(t, false)))
	})
	if err := end(); err != nil {
		of.Fatal(err)
	}
}

// refused has the store not be opened.
func (s *subject) refused(key, old string) {
	s.Helper()
	if _, end, err := s.on.Open(s.T, key, old); err == nil {
		s.Error("it was opened with another key")
		_ = end()
	}
}

// at is where the tests write.
const at = 8 << 10

func (s *subject) wrote(key string, seed uint64) (data []byte, mark string) {
	s.Helper()
	data = backstoretest.Pattern(4096, seed)
	s.with(key, "", func(c *crypt.Store, client *backstoretest.Client) {
		client.Write(s, at, data)
		mark = c.Mark()
	})
	return data, mark
}

func (s *subject) holds(key, old string, data []byte, mark string) {
	s.Helper()
	s.with(key, old, func(c *crypt.Store, client *backstoretest.Client) {
		if got := client.Read(s, at, len(data)); !bytes.Equal(got, data) || c.Mark() != mark {
			s.Errorf("found %.10x and master key %s, expected %.10x and %s", got, c.Mark(), data, mark)
		}
	})
}

// reopen: there is one master key from the first start on.
func (s *subject) reopen() {
	data, mark := s.wrote(s.key(1), 1)
	s.holds(s.key(1), "", data, mark)
	s.refused(s.key(2), "")
	s.holds(s.key(1), "", data, mark)
}

// rewrap: another key file opens the same master key, and the one before does not any more.
func (s *subject) rewrap() {
	data, mark := s.wrote(s.key(1), 1)
	s.with(s.key(1), "", func(c *crypt.Store, _ *backstoretest.Client) { s.rewraps(c, 2) })
	s.holds(s.key(2), "", data, mark)
	s.refused(s.key(1), "")
}

func (s *subject) rewraps(c *crypt.Store, n int) {
	s.Helper()
	key, err := crypt.ReadKey(s.key(n))
	if err == nil {
		_, err = c.Rewrap(key)
	}
	if err != nil {
		s.Error(err)
	}
}

// oldKey: the old key file is needed once.
func (s *subject) oldKey() {
	data, mark := s.wrote(s.key(1), 1)
	s.refused(s.key(2), s.key(3))
	s.holds(s.key(2), s.key(1), data, mark)
	s.holds(s.key(2), "", data, mark)
	s.refused(s.key(1), "")
}

// erase: another master key is there for good, and nothing of before is read.
func (s *subject) erase() {
	data, mark := s.wrote(s.key(1), 1)
	s.with(s.key(1), "", func(c *crypt.Store, client *backstoretest.Client) {
		client.Must(s, backstore.Op{Kind: backstore.Erase, Len: c.Info().Size})
		if c.Mark() == mark {
			s.Error("the master key is the same")
		}
		if got := client.Read(s, at, len(data)); bytes.Equal(got, data) {
			s.Error("data of before are read")
		}
	})
	fresh, now := s.wrote(s.key(1), 2)
	if now == mark {
		s.Error("the master key of before is back")
	}
	s.holds(s.key(1), "", fresh, now)
}

// failure: a change that fails leaves everything as it was, and can be made later.
func (s *subject) failure() {
	if s.on.Fail == nil {
		s.Skip("its changes do not fail")
	}
	data, mark := s.wrote(s.key(1), 1)
	s.with(s.key(1), "", func(c *crypt.Store, client *backstoretest.Client) {
		key, err := crypt.ReadKey(s.key(2))
		if err != nil {
			s.Fatal(err)
		}
		s.on.Fail(true)
		if _, err := c.Rewrap(key); err == nil {
			s.Error("the key has changed")
		}
		if err := client.Do(backstore.Op{Kind: backstore.Erase, Len: c.Info().Size}); err == nil || c.Mark() != mark {
			s.Errorf("found %v and master key %s, expected an error and %s", err, c.Mark(), mark)
		}
		if got := client.Read(s, at, len(data)); !bytes.Equal(got, data) {
			s.Errorf("found %.10x, expected what was written", got)
		}
		s.on.Fail(false)
	})
	s.holds(s.key(1), "", data, mark)
	s.with(s.key(1), "", func(c *crypt.Store, _ *backstoretest.Client) { s.rewraps(c, 2) })
	s.holds(s.key(2), "", data, mark)
}
