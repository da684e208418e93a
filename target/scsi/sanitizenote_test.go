package scsi

import (
	"errors"
	"sync"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// notes are what was made stable of sanitize operations, with the operations on the
// medium by then.
type notes struct {
	sync.Mutex
	medium *medium
	all    []*SanitizeNote
	after  []int // operations
	err    error
}

func (k *notes) save(n *SanitizeNote) error {
	k.Lock()
	defer k.Unlock()
	k.all, k.after = append(k.all, n), append(k.after, len(k.medium.ops()))
	return k.err
}

func notedUnit(t *testing.T, config LUConfig) (*thread, *Nexus, *notes) {
	k := &notes{medium: newMedium(1 << 20)}
	config.Name, config.SaveSanitizing = "v", k.save
	return newThread(t, k.medium, 3), newUnit(t, k.medium, config), k
}

// until lets things happen, here and on other goroutines.
func (th *thread) until(what string, f func() bool) {
	th.t.Helper()
	for !f() {
		if !th.turn() && !th.woken() {
			th.t.Fatalf("it did not come about: %s", what)
		}
	}
}

// TestSanitizeNoted: it is stable that there is an operation before it changes
// anything, and until all is stable that it has written.
func TestSanitizeNoted(t *testing.T) {
	for _, flags := range []byte{0, sanitizeExit} {
		th, n, k := notedUnit(t, LUConfig{})
		list := overwriteList(2, 7)
		x := th.start(n, sanitizeCDB(0x01|flags, list), list, 0)
		th.until("the end", func() bool { return x.ends > 0 })
		ops := k.medium.ops()
		if len(k.all) != 2 || k.all[0] == nil || k.all[0].Exit != (flags != 0) || k.all[1] != nil {
			t.Fatalf("found notes %+v", k.all)
		}
		if k.after[0] != 0 || k.after[1] != len(ops) || ops[len(ops)-1].Kind != backstore.Flush {
			t.Errorf("noted after %v of %d operations", k.after, len(ops))
		}
	}
}

// TestSanitizeNotNoted: an operation of which no note can be made does not begin, and
// one whose command is aborted before neither.
func TestSanitizeNotNoted(t *testing.T) {
	th, n, k := notedUnit(t, LUConfig{})
	list := overwriteList(1, 7)
	k.err = errors.New("disk full")
	x := th.start(n, sanitizeCDB(0x81, list), list, 0)
	th.until("the end", func() bool { return x.ends > 0 })
	if x.c.Sense == nil || *x.c.Sense != *sense.InternalTargetFailure {
		t.Errorf("found %+v", x.c.Sense)
	}
	k.err = nil
	k.Lock() // the note takes its time
	y := th.start(n, sanitizeCDB(0x01, list), list, 0)
	if y.c.Abort() {
		t.Error("nothing is under way")
	}
	k.Unlock()
	th.until("the end of the aborted one", func() bool { return y.ends > 0 })
	if last := k.all[len(k.all)-1]; last != nil || n.LU.State().Sanitize != nil || len(k.medium.ops()) > 0 {
		t.Errorf("found note %+v, operation %+v, changes %v", last, n.LU.State().Sanitize, k.medium.ops())
	}
}

// TestSanitizeInterrupted: what a note tells of has failed, until it is given up or
// another operation succeeds.
func TestSanitizeInterrupted(t *testing.T) {
	for _, exit := range []bool{false, true} {
		th, n, k := notedUnit(t, LUConfig{Sanitizing: &SanitizeNote{Exit: exit}})
		if x := th.start(n, testUnitReady, nil, 0); x.c.Sense == nil || *x.c.Sense != *sense.SanitizeFailed {
			t.Errorf("TEST UNIT READY: %+v", x.c.Sense)
		}
		x := th.start(n, sanitizeCDB(0x1f, nil), nil, 0)
		th.until("the end of EXIT FAILURE MODE", func() bool { return x.ends > 0 })
		if (x.c.Status == Good) != exit {
			t.Errorf("EXIT FAILURE MODE with AUSE=%v: %02x", exit, x.c.Status)
		}
		if !exit {
			list := overwriteList(1, 7)
			x = th.start(n, sanitizeCDB(0x01, list), list, 0)
			th.until("the end", func() bool { return x.ends > 0 })
		}
		if x := th.start(n, testUnitReady, nil, 0); x.c.Status != Good || k.all[len(k.all)-1] != nil {
			t.Errorf("TEST UNIT READY: %+v, note %+v", x.c.Sense, k.all[len(k.all)-1])
		}
	}
}
