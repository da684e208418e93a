package bulk

import (
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
	"lunar/scripts/sim/kernel"
)

// link is what transfers send over: channels of one rate, and the way there and back.
type link struct {
	k        *kernel.Kernel
	bits     float64 // of one channel, in a second
	rtt      int64   // ns
	channels []*kernel.Station
	next     int
}

func newLink(k *kernel.Kernel, bits float64, rtt int64, channels int) *link {
	l := &link{k: k, bits: bits, rtt: rtt}
	for range channels {
		l.channels = append(l.channels, kernel.NewStation(k))
	}
	return l
}

// send plans that there is called when a block has arrived; its channel is the next in turn.
func (l *link) send(bytes int, there kernel.Call) {
	l.next = (l.next + 1) % len(l.channels)
	l.channels[l.next].Serve(int64(float64(bytes)*8/l.bits*1e9), func() { l.oneWay(there) })
}

func (l *link) oneWay(there kernel.Call) { l.k.After(l.rtt/2, kernel.Arrival, there) }

// manner is how credits are given.
type manner struct {
	ordered  bool // the sink hears of a block by the channel of its data
	explicit bool // by request only
	silent   bool // a stub: no block is answered, each request with one credit
	blind    bool // a stub: none is needed
}

// transfer is a source and a sink of the server's over a link.
type transfer struct {
	manner
	k      *kernel.Kernel
	link   *link
	size   int
	source *rftp.Source
	sink   *rftp.Sink
	free   []*pipeline.Block // of the source
	load   *kernel.Station
	loadNS int64
	store  *kernel.Station
	stored int
	sent   int
	// messages of the control channel, both ways.
	messages int
	halted   func() int64 // how long the store takes longer now; nil: never
	left     int          // blocks that have not begun; negative: without end
	blocks   []*pipeline.Block
	seq      uint64
}

// newTransfer makes one with as many blocks at either side. A load of 0 ns takes no time. The
// store is twice as fast as the link.
func newTransfer(l *link, m manner, size, pool int, load int64) *transfer {
	t := &transfer{manner: m, k: l.k, link: l, size: size, load: kernel.NewStation(l.k), loadNS: load, store: kernel.NewStation(l.k), left: -1}
	first := 1
	if m.explicit {
		first = pool
	}
	for i := range pool {
		t.blocks = append(t.blocks, &pipeline.Block{Index: i})
		t.free = append(t.free, &pipeline.Block{})
	}
	t.sink, t.source = rftp.NewSink(t.blocks, 0, 0, uint32(size), first), rftp.NewSource(m.ordered)
	return t
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fill loads all free blocks of the source.
func (t *transfer) fill() {
	for len(t.free) > 0 && t.left != 0 {
		b := t.free[0]
		t.free = t.free[1:]
		t.left--
		b.Sequence, t.seq = t.seq, t.seq+1
		must(b.Do(pipeline.Source, pipeline.Take))
		t.load.Serve(t.loadNS, func() {
			must(b.Do(pipeline.Source, pipeline.Fill))
			t.source.Loaded(b)
			t.post()
		})
	}
}

// post posts what there are credits for, or asks for one.
func (t *transfer) post() {
	for t.blind && t.source.Waiting() > 0 { // whatever the sink has
		t.source.Granted([]rftp.Credit{{Addr: t.seq}})
		b, _, err := t.source.Post()
		must(err)
		t.sent++
		t.link.send(t.size, func() { t.link.oneWay(func() { t.completed(b) }) })
	}
	for {
		b, c, err := t.source.Post()
		must(err)
		if b == nil {
			break
		}
		t.sent++
		t.link.send(t.size, func() {
			if t.ordered {
				t.done(c.Addr)
			}
			t.link.oneWay(func() { t.completed(b) })
		})
	}
	if t.source.Asks() {
		t.messages++
		t.link.oneWay(func() { t.grant(t.sink.Requested()) })
	}
}

// completed frees a block of the source, whose sink may hear of it.
func (t *transfer) completed(b *pipeline.Block) {
	m, err := t.source.Completed(b, true)
	must(err)
	t.free = append(t.free, b)
	if m != nil && !t.blind {
		t.messages++
		t.link.oneWay(func() { t.done(m.Addr) })
	}
	t.fill()
	t.post()
}

// done is a block that is there, of which the sink has heard.
func (t *transfer) done(addr uint64) {
	b, err := t.sink.Done(addr, false)
	must(err)
	must(b.Do(pipeline.Sink, pipeline.Store))
	took := int64(float64(t.size) * 8 / t.link.bits / float64(len(t.link.channels)) * 1e9 / 2)
	if t.halted != nil {
		took += t.halted()
	}
	t.store.Serve(took, func() {
		t.stored++
		must(b.Do(pipeline.Sink, pipeline.Release))
		t.grant(t.sink.Put(b))
	})
	if !t.explicit && !t.silent {
		t.grant(t.sink.Answer())
	}
}

// grant sends credits to the source.
func (t *transfer) grant(c []rftp.Credit) {
	if len(c) == 0 {
		return
	}
	t.messages++
	t.link.oneWay(func() {
		t.source.Granted(c)
		t.post()
	})
}

// lost counts the blocks of the sink that are nowhere: not free, waiting, or in use.
func (t *transfer) lost() int {
	free := 0
	for _, b := range t.blocks {
		if b.State == pipeline.Free {
			free++
		}
	}
	return free - t.sink.Free()
}
