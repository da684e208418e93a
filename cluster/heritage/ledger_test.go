package heritage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
	"lunar/cluster/ownership"
)

// world is a cluster's state and the epochs of a volume's owner. Its tests run in virtual time, in which
// answers are as late as they say.
type world struct {
	t       *testing.T
	network *mem.Network
	keys    cluster.Keys
	epoch   uint64
}

func newWorld(t *testing.T) *world {
	return &world{t: t, network: mem.NewNetwork(), keys: cluster.KeysOf("prod")}
}

// record stores the owner's record, as ownership does.
func (w *world) record(node string, standing ownership.Standing, size int64) {
	w.t.Helper()
	r := ownership.Record{Node: node, Incarnation: node, Epoch: w.epoch, Standing: standing, Size: size}
	if _, err := w.network.Store.Commit(nil, []cluster.Change{{Key: w.keys.Owner("v"), Value: r.Encode()}}); err != nil {
		w.t.Fatal(err)
	}
}

// claim has a node be the owner, and opens its ledger.
func (w *world) claim(node string) (*Ledger, string) {
	w.t.Helper()
	w.epoch++
	w.record(node, ownership.Claiming, 0)
	l, value, err := Open(w.t.Context(), w.of(node))
	if err != nil {
		w.t.Fatal(err)
	}
	return l, string(value)
}

func (w *world) of(node string) Claim {
	return Claim{State: w.network.State(node), Keys: w.keys, Volume: "v", Node: node, Epoch: w.epoch, Value: w.keys.Heritage("v")}
}

func value(n int) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }

// TestLedger: the next owner has what the one before has stored, who can store no more.
func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, left := w.claim("n1")
		if left != "" {
			t.Errorf("found %q before anything was stored", left)
		}
		for i := range 3 {
			if err := a.Store(t.Context(), value(i)); err != nil {
				t.Fatal(err)
			}
			w.record("n1", ownership.Owned, int64(i)) // the owner amends it
		}
		b, left := w.claim("n2")
		if left != "2" {
			t.Errorf("found %q, expected what was stored last", left)
		}
		if err := a.Store(t.Context(), value(9)); !errors.Is(err, ErrSuperseded) {
			t.Errorf("found %v of a superseded owner", err)
		}
		if err := b.Store(t.Context(), value(3)); err != nil {
			t.Fatal(err)
		}
		w.record("n2", ownership.Free, 0)
		if err := b.Store(t.Context(), value(4)); !errors.Is(err, ErrSuperseded) {
			t.Errorf("found %v of an owner that has given the volume away", err)
		}
		if _, _, err := Open(t.Context(), w.of("n2")); !errors.Is(err, ErrSuperseded) {
			t.Errorf("found %v of one that opens it", err)
		}
		if _, left := w.claim("n1"); left != "3" {
			t.Errorf("found %q, expected 3", left)
		}
	})
}

// TestLedgerErrors: what fails has changed nothing.
func TestLedgerErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, _ := w.claim("n1")
		if err := l.Store(t.Context(), value(1)); err != nil {
			t.Fatal(err)
		}
		w.network.SetQuorum(false)
		if err := l.Store(t.Context(), value(2)); !errors.Is(err, cluster.ErrNoQuorum) || errors.Is(err, cluster.ErrUnknown) {
			t.Errorf("found %v without a quorum", err)
		}
		opened := make(chan string, 1)
		go func() {
			_, left, err := Open(t.Context(), w.of("n1"))
			opened <- fmt.Sprint(string(left), err)
		}()
		time.Sleep(retry)
		w.network.SetQuorum(true)
		if got := <-opened; got != "1<nil>" {
			t.Errorf("found %s by one that waits for a quorum", got)
		}
		if err := l.Store(t.Context(), json.RawMessage(`"`+strings.Repeat("x", MaxSize)+`"`)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("found %v of a large value", err)
		}
		w.network.SetRoom(1)
		if err := l.Store(t.Context(), value(3)); !errors.Is(err, cluster.ErrFull) {
			t.Errorf("found %v in a full state", err)
		}
		w.network.SetRoom(0)
		if _, left := w.claim("n2"); left != "1" {
			t.Errorf("found %q, expected 1", left)
		}
		for _, text := range []string{``, `{}`, `{"version":2,"value":1}`, `{"version":1}`} {
			if _, err := w.network.Store.Commit(nil, []cluster.Change{{Key: w.keys.Heritage("v"), Value: []byte(text)}}); err != nil {
				t.Fatal(err)
			}
			if _, left, err := Open(t.Context(), w.of("n2")); err == nil {
				t.Errorf("%q was read as %q", text, left)
			}
		}
	})
}

// TestLedgerAgain: an owner that closes the volume and opens it again for the same claim stores what
// it says, though its ledger is another one.
func TestLedgerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, _ := w.claim("n1")
		if err := first.Store(t.Context(), value(1)); err != nil {
			t.Fatal(err)
		}
		again, left, err := Open(t.Context(), w.of("n1"))
		if err != nil || string(left) != "1" {
			t.Fatalf("found %q, %v, expected 1", left, err)
		}
		if err := again.Store(t.Context(), value(2)); err != nil {
			t.Fatal(err)
		}
		if _, left, err := Open(t.Context(), w.of("n1")); err != nil || string(left) != "2" {
			t.Errorf("found %q, %v, expected 2, which was stored", left, err)
		}
	})
}

// TestLedgerUnknown: a change whose answers are lost is followed up until it is known, and
// made once.
func TestLedgerUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, _ := w.claim("n1")
		rng, mu := rand.New(rand.NewPCG(1, 1)), sync.Mutex{}
		chance := func() bool { mu.Lock(); defer mu.Unlock(); return rng.IntN(3) == 0 }
		w.network.Lose("n1", chance)
		for i := range 4 {
			if err := l.Store(t.Context(), value(i)); err != nil && !errors.Is(err, cluster.ErrNoQuorum) {
				t.Fatalf("change %d: %v", i, err)
			} else if err == nil {
				if _, left, err := Open(t.Context(), w.of("n3")); !errors.Is(err, ErrSuperseded) {
					t.Fatalf("found %q, %v by a node that is no owner", left, err)
				}
				items, _ := w.network.Store.Get(w.keys.Heritage("v"))
				if got, err := parse(items[0].Value); err != nil || string(got.Value) != fmt.Sprint(i) {
					t.Errorf("change %d: found %s, %v", i, got.Value, err)
				}
			}
		}
		// The claim ends while an answer is awaited.
		w.network.Lose("n1", func() bool { return true })
		ctx, cancel := context.WithTimeout(t.Context(), 3*retry)
		defer cancel()
		if err := l.Store(ctx, value(7)); err == nil {
			t.Error("a change without an answer has succeeded")
		}
	})
}

// TestSuccessions: through owners that follow one another while answers are late or lost, what
// an owner finds is what was stored last, or what the one before was storing.
func TestSuccessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rng, mu := rand.New(rand.NewPCG(2, 2)), sync.Mutex{}
		draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
		for i := range 3 {
			w.network.Delay(fmt.Sprintf("n%d", i), func() time.Duration { return time.Duration(draw(3)) * time.Millisecond })
		}
		stored, next := "", 0
		trying := map[string]bool{"": true}
		for round := range 60 {
			l, left := w.claim(fmt.Sprintf("n%d", round%3))
			if left != stored && !trying[left] {
				t.Fatalf("round %d: found %q, expected %q or one of %v", round, left, stored, trying)
			}
			stored, trying = left, map[string]bool{}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			var m sync.Mutex
			go func() { // the owner, which goes on while the next one claims
				defer close(ended)
				for {
					m.Lock()
					next++
					v := value(next)
					trying[string(v)] = true
					m.Unlock()
					if err := l.Store(ctx, v); err != nil {
						return
					}
					m.Lock()
					stored, trying = string(v), map[string]bool{}
					m.Unlock()
				}
			}()
			time.Sleep(time.Duration(draw(8)) * time.Millisecond)
			w.epoch++
			w.record("n9", ownership.Claiming, 0)
			if draw(2) == 0 {
				cancel() // it dies
			}
			<-ended
			cancel()
		}
		if next < 60 {
			t.Errorf("%d changes in 60 rounds", next)
		}
	})
}

// FuzzParse: whatever is in the state is refused, or is stored again as the same value.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"epoch":3,"change":7,"value":{"a":1}}`))
	f.Add([]byte(`{"version":1,"epoch":-1,"value":null}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parse(b)
		if err != nil {
			return
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("found %+v, which cannot be stored: %v", e, err)
		}
		if back, err := parse(text); err != nil || back.Epoch != e.Epoch || back.Change != e.Change {
			t.Errorf("found %+v, %v, expected %+v", back, err, e)
		}
	})
}
