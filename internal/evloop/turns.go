package evloop

// turns are the tasks of Again: those of this pass and those of the next. Two
// slices change places, so that a steady load allocates nothing.
type turns struct{ current, next []Task }

func (t *turns) add(task Task) { t.next = append(t.next, task) }

// swap begins a pass.
func (t *turns) swap() { t.current, t.next = t.next, t.current[:0] }

// due reports whether this pass must not block.
func (t *turns) due() bool { return len(t.current) > 0 }
