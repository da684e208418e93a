package bulk_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/bulk"
	"lunar/internal/eventually"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// halting is a link over which blocks do not leave while it halts, and the answer that everything
// is stored does not arrive before answer is closed. over is closed when one or the other is so.
type halting struct {
	bulk.SourceLink
	answer chan struct{} // nil: it arrives at once
	over   chan struct{}

	asking sync.Once
	mu     sync.Mutex
	halts  bool
	held   []func()
}

func (l *halting) Write(b *pipeline.Block, frame []byte, c rftp.Credit, done func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if write := func() { l.SourceLink.Write(b, frame, c, done) }; l.halts {
		l.held = append(l.held, write)
		close(l.over)
	} else {
		write()
	}
}

func (l *halting) halt(halts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, write := range l.held {
		write()
	}
	l.halts, l.held = halts, nil
}

func (l *halting) Send(m *rftp.Message) error {
	err := l.SourceLink.Send(m)
	if m.Type == rftp.DatasetComplete && m.Flags&rftp.FlagReceived != 0 && l.answer != nil {
		l.asking.Do(func() { close(l.over) })
	}
	return err
}

func (l *halting) Receive() (rftp.Message, error) {
	m, err := l.SourceLink.Receive()
	if err == nil && m.Type == rftp.DatasetComplete && m.Flags&rftp.FlagReceived != 0 && l.answer != nil {
		<-l.answer
	}
	return m, err
}

// expiring is a context whose time is over when a channel is closed.
type expiring struct {
	context.Context
	over <-chan struct{}
}

func (c expiring) Done() <-chan struct{} { return c.over }

func (c expiring) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// within waits for what must happen.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(eventually.Patience):
		t.Fatal(what)
	}
	return v
}

// TestNetworkHaltsWhileHeld: commands are held no longer than they may be, though blocks do not
// leave, and the move goes on when they do.
func TestNetworkHaltsWhileHeld(t *testing.T) {
	from, to := newMedium(t, 48*mib), newSide(t, 48*mib)
	link := &halting{SourceLink: dial(t, to), over: make(chan struct{})}
	whileHeld(t, from, to, link, func(hold int) {
		if hold == 1 {
			link.halt(true)
			from.write(t, 0, backstoretest.Pattern(mib, 100))
		}
	}, func() {
		reader := backstoretest.NewClient(t, from.slot, backstoretest.NewLoop(t, false))
		read := make(chan error, 1)
		go func() { read <- reader.Do(backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(4096)}) }()
		if err := within(t, "commands are held for as long as the network halts", read); err != nil {
			t.Error(err)
		}
		link.halt(false)
	})
}

// TestLateAnswer: an answer to a question that is not waited for any more does not keep what comes
// behind it from being heard.
func TestLateAnswer(t *testing.T) {
	from, to := newMedium(t, 48*mib), newSide(t, 48*mib)
	link := &halting{SourceLink: dial(t, to), answer: make(chan struct{}), over: make(chan struct{})}
	whileHeld(t, from, to, link, func(hold int) {
		if hold == 2 {
			close(link.answer)
			for n := range int64(40) { // more than the receiver has memory for
				from.write(t, n*mib, backstoretest.Pattern(mib, 100+uint64(n)))
			}
		}
	}, func() {})
}

// TestOperationHangsWhileHeld: commands are not held for as long as one of them takes, and the move
// goes on behind it.
func TestOperationHangsWhileHeld(t *testing.T) {
	from, to := newMedium(t, 4*mib), newSide(t, 4*mib)
	o, holds := origin(from), 0
	o.Changed = func() []int64 { return nil }
	o.Hold = func(ctx context.Context, last func(context.Context, *bulk.Volume) error) error {
		if holds++; holds == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return last(t.Context(), from.volume)
	}
	move(t, from, to, o)
}

// whileHeld moves a volume. before is called before commands are held, which the first time is until
// the link is over, and meanwhile then.
func whileHeld(t *testing.T, from *medium, to *side, link *halting, before func(hold int), meanwhile func()) {
	t.Helper()
	from.fill(t, 1)
	changes := backstore.NewChanges(from.size, mib)
	if err := from.slot.Track(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	holds, begun := 0, make(chan struct{}, 4)
	o := origin(from)
	o.Changed = changes.Take
	o.Hold = func(_ context.Context, last func(context.Context, *bulk.Volume) error) error {
		holds++
		before(holds)
		ctx := t.Context()
		if holds == 1 {
			ctx = expiring{ctx, link.over}
		}
		return from.slot.Exchange(ctx, func(store backstore.Store) (backstore.Store, error) {
			held, err := bulk.OpenVolume(backstoretest.NewLoop(t, false), store)
			if err != nil {
				return store, err
			}
			defer held.Close()
			begun <- struct{}{}
			return store, last(ctx, held)
		})
	}
	received, ended := to.receive(t.Context()), make(chan error, 1)
	go func() {
		_, err := bulk.Send(t.Context(), link, o, bulk.Options{Channels: 2, Cores: 2})
		ended <- err
	}()
	within(t, "commands are not held", begun)
	meanwhile()
	err := within(t, "the move does not go on", ended)
	if r := <-received; err != nil || r.err != nil || !bytes.Equal(from.contents(t), to.contents(t)) {
		t.Errorf("found %v and %v", err, r.err)
	}
}
