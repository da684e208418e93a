package tier

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache/segment"
)

// settle waits until the stamp of the volume's store is noted.
func (o *opened) settle(t *testing.T) {
	t.Helper()
	v := o.store.(*volume)
	eventually(t, "the store is settled", func() bool { return v.row.state() == rowSettled })
}

// A store that somebody changes between a crash and the next start is not served from
// clean blocks, and gets no dirty ones until that is said.
func TestChangedAfterCrash(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		t.Run(policy.String(), func(t *testing.T) {
			s := newSite(t)
			p := s.start()
			data, others := backstoretest.Pattern(16<<10, 1), backstoretest.Pattern(16<<10, 2)
			o := p.open("a", policy)
			o.Write(t, 0, data)
			o.Must(t, backstore.Op{Kind: backstore.Flush})
			o.Read(t, 0, len(data))
			if policy == Back {
				o.Write(t, 64<<10, data)
			}
			o.settle(t)
			p.crash()
			f, err := os.OpenFile(s.path("a"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(others, 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			p = s.start().outcome(segment.Crashed)
			c := config("a", policy)
			if policy == Back {
				if _, err := p.wrap(c, siteSize); !errors.Is(err, ErrChanged) {
					t.Fatalf("found %v, expected a refusal", err)
				}
				c.Adopt = true
			}
			o = p.use(p.wrap(c, siteSize))
			if got := o.Read(t, 0, len(others)); !bytes.Equal(got, others) {
				t.Error("clean blocks of before are served")
			}
			if got := o.Read(t, 64<<10, len(data)); bytes.Equal(got, data) != (policy == Back) {
				t.Error("unwritten data are not what they were")
			}
			p.end()
		})
	}
}

// quietStore is a store whose changes begin when the test says so.
type quietStore struct {
	backstore.Stamper
	word   *atomic.Uint64
	begun  uint64
	asked  int
	during func(s *quietStore, asked int) // a question
	stamps uint64
}

func (s *quietStore) Watch(w *atomic.Uint64) { s.word = w }
func (s *quietStore) Exact() bool            { return true }

func (s *quietStore) Quiet() (uint64, bool) {
	s.asked++
	begun := s.begun
	s.during(s, s.asked)
	return begun, true
}

func (s *quietStore) Stamp() (backstore.Stamp, error) {
	s.during(s, 0)
	s.stamps++
	return backstore.Stamp{State: [3]uint64{s.stamps, s.stamps, s.stamps}}, nil
}

// begin is a change that ends at once.
func (s *quietStore) begin() {
	s.begun++
	if s.word.Load() != backstore.Disturbed {
		s.word.Store(backstore.Disturbed)
	}
}

// Whenever a change begins while a stamp is being noted, or has begun since the look
// before, the row does not say that the store is as noted.
func TestSettling(t *testing.T) {
	for at := -1; at <= 2; at++ { // never, as the stamp is taken, after the first question or the second
		s := &quietStore{during: func(s *quietStore, asked int) {
			if asked == at {
				s.begin()
			}
		}}
		v := &volume{row: ownTable(1).row(0)}
		v.row.store(atState, rowOpen)
		v.witness.store = s
		s.Watch(v.row.stateWord())
		v.witness.look(v)
		if settled := v.row.state() == rowSettled; settled != (at < 0) {
			t.Errorf("change at %d: settled %t", at, settled)
		}
		if at >= 0 {
			continue
		}
		s.begin()
		if v.row.state() != rowOpen || v.row.noted().Settled {
			t.Error("a change that begins later is not seen")
		}
		for look, want := range []uint64{rowOpen, rowSettled} {
			if v.witness.look(v); v.row.state() != want {
				t.Errorf("look %d after a change: state %d, expected %d", look, v.row.state(), want)
			}
		}
	}
}

// Who looks through the whole cache does not make the process look dead.
func TestBeatWaitsForNobody(t *testing.T) {
	s := newSite(t)
	p := s.start()
	o := p.open("a", Back)
	row := o.store.(*volume).row
	row.store(atAlive, 0)
	eventually(t, "the process is noted as alive", func() bool { return row.load(atAlive) != 0 })
	p.cache.mu.Lock()
	row.store(atAlive, 0)
	eventually(t, "the process is noted as alive again", func() bool { return row.load(atAlive) != 0 })
	p.cache.mu.Unlock()
	p.end()
}
