package waits

import "testing"

// TestWaiter: it goes on once, after everything that it counted, and does not wait for
// what waits in its way.
func TestWaiter(t *testing.T) {
	passed := 0
	w := New(func() { passed++ })
	var ended, older, awaiting List
	w.Ends(&ended, false)
	w.Ends(&awaiting, true)
	w.Awaits(&older)
	w.Add()
	w.Done() // has counted everything
	for i, done := range []func(){ended.Ended, awaiting.Ended, w.Done, older.Ended} {
		if passed != 0 {
			t.Fatalf("it goes on before step %d", i)
		}
		done()
	}
	if passed != 1 {
		t.Errorf("it went on %d times, expected once", passed)
	}
	var nobody *Waiter
	nobody.Add()
	nobody.Awaits(&ended)
	nobody.Ends(&ended, false)
	nobody.Done()
	if len(ended) != 1 {
		t.Errorf("%d wait for the task, expected one", len(ended))
	}
}
