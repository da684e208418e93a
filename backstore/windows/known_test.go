package windows

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
)

// disc is a disk that is known, but whose writes nobody counts.
type disc struct {
	*memstore.Store
	serial uint64
}

// Medium is as that of files and devices.
func (d disc) Medium() [3]uint64 { return [3]uint64{d.serial} }

// TestMembersThatChangedPlaces: disks that have each other's names after a power cut are
// not taken for each other.
func TestMembersThatChangedPlaces(t *testing.T) {
	a, b, page := mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)
	c := mirrorOf(disc{a, 1}, disc{b, 2}, page)
	c.Window = time.Hour
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.poke()
	whole(t, m)
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Data: backstoretest.Pattern(4096, 1)})
	m.gate.RLock() // the members stay as they are
	defer m.gate.RUnlock()
	wrong := mirrorOf(disc{b.CrashClone(1), 2}, disc{a.CrashClone(1), 1}, page.CrashClone(1))
	if again, err := OpenMirror(wrong); err == nil {
		t.Error("the member without the newest data leads")
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFirstMemberThatIsEmpty: a new file does not take the data from the other member.
func TestFirstMemberThatIsEmpty(t *testing.T) {
	full := mem(t, crashSize)
	k := backstoretest.NewClient(t, full, backstoretest.NewLoop(t, false))
	data := backstoretest.Pattern(4096, 1)
	k.Write(t, 1<<20, data)
	fresh := mem(t, crashSize)
	m := openMirror(t, mirrorOf(fresh, full, mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	if !bytes.Equal(fresh.Bytes(), full.Bytes()) || !bytes.Equal(full.Bytes()[1<<20:][:4096], data) {
		t.Error("the data are gone")
	}
}
