package tier

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache/segment"
	"lunar/internal/eventually"
)

// settle waits until the stamp of the volume's store is noted.
func (o *opened) settle(t *testing.T) {
	t.Helper()
	v := o.store.(*volume)
	eventually.Holds(t, "the store is settled", func() bool { return v.row.Noted().Settled })
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

// Who looks through the whole cache does not make the process look dead.
func TestBeatWaitsForNobody(t *testing.T) {
	s := newSite(t)
	p := s.start()
	o := p.open("a", Back)
	row := o.store.(*volume).row
	row.Beat(0)
	eventually.Holds(t, "the process is noted as alive", func() bool { return row.Noted().Alive != 0 })
	p.cache.mu.Lock()
	row.Beat(0)
	eventually.Holds(t, "the process is noted as alive again", func() bool { return row.Noted().Alive != 0 })
	p.cache.mu.Unlock()
	p.end()
}
