package tier

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// meet opens a file of the site as a server does, which grows it, and goes no further.
func (p *process) meet(c VolumeConfig, size int64) error {
	store, err := backstore.OpenFile(backstore.FileConfig{Path: p.path(c.Name), Size: size, Before: func(w backstore.Watched) error {
		return p.cache.Meet(c.ID, c.Adopt, false, w)
	}})
	if err != nil {
		return err
	}
	return store.Close()
}

// What a start changes of a store before it fails, or is killed, is not taken for
// somebody else's by the next; what somebody else has changed before it is, still.
func TestKilledWhileOpening(t *testing.T) {
	data := backstoretest.Pattern(16<<10, 1)
	for _, dismissed := range []bool{false, true} {
		s, c := newSite(t), config("a", Back)
		p := s.start()
		o := p.open("a", Back)
		o.Write(t, 0, data)
		o.settle(t)
		p.crash()
		p = s.start()
		if err := p.meet(c, 2*siteSize); err != nil {
			t.Fatal(err)
		}
		if dismissed {
			p.cache.Dismiss(c.ID)
		}
		p.crash()
		p = s.start()
		if err := p.meet(c, 2*siteSize); err != nil {
			t.Fatalf("dismissed %t: %v", dismissed, err)
		}
		o = p.use(p.wrap(c, 2*siteSize))
		if got := o.Read(t, 0, len(data)); !bytes.Equal(got, data) {
			t.Error("unwritten data are not what they were")
		}
		p.end()
	}
}

func TestMeetChanged(t *testing.T) {
	s, c := newSite(t), config("a", Back)
	p := s.start()
	o := p.open("a", Back)
	o.Write(t, 0, backstoretest.Pattern(16<<10, 1))
	o.settle(t)
	p.crash()
	if err := os.WriteFile(s.path("a"), make([]byte, siteSize), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p = s.start()
		if err := p.meet(c, 2*siteSize); !errors.Is(err, ErrChanged) {
			t.Fatalf("found %v, expected a refusal", err)
		}
		p.crash()
	}
	if n := len(s.file("a")); n != siteSize {
		t.Errorf("a refusal has made the file %d bytes long, expected %d", n, siteSize)
	}
}
