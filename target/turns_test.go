package target

import (
	"testing"

	"lunar/target/pdu"
)

// TestTurns: the work of a pass is done whoever wants it, and divided among all who do.
func TestTurns(t *testing.T) {
	for _, n := range []int{1, 3, 16} {
		s := &shares{loop: holdingThread(t).loop, clock: func() int64 { return 0 }}
		done := make([]int, n)
		for i := range n {
			own := new(share)
			own.deliver = func() { // of one who has sent pings without end
				var ping pdu.BHS
				for ping.SetOpcode(pdu.OpNOPOut); !s.spent(own, &ping); done[i]++ {
					s.count(own, &ping, 0)
				}
			}
			s.enlist(&s.line, own)
		}
		s.Run()
		sum := 0
		for _, got := range done {
			sum += got
			if part := passWork / n; got < part-turnWork || got > part+turnWork {
				t.Errorf("one of %d has done %d, expected about %d", n, got, part)
			}
		}
		if sum != passWork {
			t.Errorf("%d have done %d of %d in a pass", n, sum, passWork)
		}
	}
}

// TestLongReadsAreDividedIntoPasses: the bytes of long reads that one pass begins are
// bounded, whatever number of connections asks for them; all of them get equal parts, one
// alone gets all, and neither short reads nor promised ones wait.
func TestLongReadsAreDividedIntoPasses(t *testing.T) {
	const each, passes = 128 << 10, 256
	for _, n := range []int{1, 4, 64} {
		s := &shares{loop: holdingThread(t).loop, clock: func() int64 { return 0 }}
		begun, done, all := 0, make([]int, n), make([]*share, n)
		ask := func(own *share, bytes uint32) bool {
			var read pdu.SCSICommand
			read.Init().SetRead(true)
			read.CDB()[0] = 0x28
			read.SetExpectedDataTransferLength(bytes)
			if s.spent(own, read.BHS()) {
				return false
			}
			s.count(own, read.BHS(), 0)
			begun += int(bytes)
			return true
		}
		for i := range n {
			own := &share{prior: func() bool { return false }}
			all[i] = own
			own.deliver = func() { // of one who asks without end
				for range passPDUs {
					if !ask(own, each) {
						return
					}
					done[i]++
				}
			}
			own.deliver()
		}
		for pass := range passes {
			s.pass = -1 // the loop's clock stands still
			for _, own := range all {
				own.pass = -1
			}
			before := begun
			s.Run()
			if now := begun - before; now > passData+each {
				t.Fatalf("%d: %d bytes in a pass, expected at most %d", n, now, passData+each)
			}
			if !ask(new(share), 4<<10) {
				t.Fatal("a short read waits")
			}
			if promised := (&share{prior: func() bool { return true }}); pass == passes/2 && !ask(promised, each) {
				t.Fatal("a promised read waits")
			}
		}
		if begun < passes*passData {
			t.Errorf("%d: %d bytes in %d passes, expected %d in each", n, begun, passes, passData)
		}
		for _, got := range done {
			if part := passes * passData / each / n; got < part-2 || got > part+passData/each+2 {
				t.Errorf("one of %d has done %d reads, expected about %d", n, got, part)
			}
		}
	}
}

// TestLongPassesBeginNoFurtherReads: when what one turn costs is more than a pass is to
// take, the others have theirs in the following passes, and one is had in each. A pass that
// has gone on for long takes none from who has just come, either.
func TestLongPassesBeginNoFurtherReads(t *testing.T) {
	now := int64(0)
	s := &shares{loop: holdingThread(t).loop, clock: func() int64 { return now }}
	turns := 0
	for range 3 {
		own := &share{prior: func() bool { return false }}
		own.deliver = func() {
			turns++
			now += passTime
		}
		s.enlist(&s.readers, own)
	}
	for pass := range 3 {
		s.pass, now = -1, s.loop.Now() // the loop's clock stands still
		if s.Run(); turns != pass+1 {
			t.Fatalf("%d turns in %d passes, expected one in each", turns, pass+1)
		}
	}
	s.pass, now = -1, s.loop.Now()+passTime
	var read pdu.SCSICommand
	read.Init().SetRead(true)
	read.CDB()[0] = 0x28
	read.SetExpectedDataTransferLength(64 << 10)
	if !s.spent(&share{prior: func() bool { return false }}, read.BHS()) {
		t.Error("a long read is begun at the end of a long pass")
	}
}
