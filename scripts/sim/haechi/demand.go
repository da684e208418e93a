package haechi

// second is the length of a period (T) in ns.
const second = int64(1_000_000_000)

// Pattern says when a client submits the requests of a period.
type Pattern uint8

// The demand patterns of the paper.
const (
	Closed   Pattern = iota // as many as the window allows, for ever
	Burst                   // the period's demand at its start
	Constant                // the period's demand at equal distances
)

// String names the pattern as the paper does.
func (p Pattern) String() string {
	return [...]string{Closed: "back-to-back", Burst: "burst", Constant: "constant rate"}[p]
}

// batch is requests that were submitted at the same time.
type batch struct {
	at    int64
	count int64
}

// backlog is the requests that a client has submitted and not yet issued,
// oldest first.
type backlog struct {
	batches []batch
	head    int
	count   int64
}

func (b *backlog) push(at, count int64) {
	b.count += count
	if last := len(b.batches) - 1; last >= b.head && b.batches[last].at == at {
		b.batches[last].count += count
		return
	}
	b.batches = append(b.batches, batch{at, count})
}

// pop removes the oldest request and returns when it was submitted.
func (b *backlog) pop() int64 {
	oldest := &b.batches[b.head]
	at := oldest.at
	b.count--
	if oldest.count--; oldest.count == 0 {
		b.drop()
	}
	return at
}

// drop removes the empty oldest batch; used space goes once it is half of all.
func (b *backlog) drop() {
	b.head++
	if b.head*2 >= len(b.batches) {
		b.batches = b.batches[:copy(b.batches, b.batches[b.head:])]
		b.head = 0
	}
}
