package cache

import "testing"

// A sweep for SYNCHRONIZE CACHE does not pass a block of which a writer still
// holds dirty data: Done promises that all that was dirty has been written.
func TestSweepWaitsForWhatOthersHold(t *testing.T) {
	p := partition(t, 4)
	k := Key{1, 0}
	dirtyWrite(p, k, 0b11)
	writer := p.BeginWrite(k, 0b10, 0b10, true, &Waiter{})
	if writer.Outcome != Granted {
		t.Fatalf("the writer's claim: outcome %d", writer.Outcome)
	}
	var sync Waiter
	out := make([]Extent, 4)
	run := p.TakeDirty(Key{}, Key{LU: 9}, out, &sync)
	if run.Outcome != Granted || run.Next != k {
		t.Fatalf("outcome %d, next %v, expected the other sub-block and to go on at %v", run.Outcome, run.Next, k)
	}
	p.EndFlush(out[:run.Extents], true)
	if again := p.TakeDirty(run.Next, Key{LU: 9}, out, &sync); again.Outcome != Wait {
		t.Fatalf("outcome %d while the writer holds dirty data, expected to wait", again.Outcome)
	}
	if n := count(p.EndWrite(&writer, Dirty)); n != 1 {
		t.Fatalf("%d waiters go on after the write, expected the sweep", n)
	}
	if last := p.TakeDirty(run.Next, Key{LU: 9}, out, &sync); last.Outcome != Granted {
		t.Fatalf("outcome %d, expected the writer's data", last.Outcome)
	}
}
