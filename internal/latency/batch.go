package latency

// Batch is the commands of an event thread that have ended and are not counted yet: all of
// them are timed by one look at the clock.
type Batch struct {
	commands [32]ended
	n        int
}

// ended is a command that has ended.
type ended struct {
	slot  *Slot
	op    Operation
	since int64
}

// Add adds a command that came at a time, in ns, and reports whether there is no place for
// another one.
func (b *Batch) Add(s *Slot, op Operation, since int64) (full bool) {
	b.commands[b.n] = ended{s, op, since}
	b.n++
	return b.n == len(b.commands)
}

// Empty reports whether there is nothing to count.
func (b *Batch) Empty() bool { return b.n == 0 }

// Count counts all commands as ended now.
func (b *Batch) Count(now int64) {
	for from := 0; from < b.n; {
		first, to := &b.commands[from], from+1
		for to < b.n && b.commands[to].slot == first.slot && b.commands[to].op == first.op {
			to++
		}
		first.slot.used = now
		first.slot.By[first.op].addAll(b.commands[from:to], now)
		from = to
	}
	clear(b.commands[:b.n])
	b.n = 0
}
