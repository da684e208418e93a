package rbd

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Answers is whether a cluster answers this server about a pool. It asks for an object now and
// then, the same one on all servers, by the instance that the pool's images are open with.
type Answers struct {
	clients *Clients
	account Account
	of      Name

	mu    sync.Mutex
	store string
	asked time.Time // when what is not answered yet was; zero: all is
	last  time.Time // when something was answered
}

const (
	askEvery  = time.Second
	askInTime = time.Second // for an answer
)

// Answers begins to ask for a pool and namespace of an account, until ctx ends. Nobody waits for
// what is not answered then.
func (c *Clients) Answers(ctx context.Context, a Account, of Name) *Answers {
	out := &Answers{clients: c, account: a, of: of}
	go out.ask(ctx)
	return out
}

// Silent returns the name of the pool, which is the same on all servers (empty: it is not known
// yet), and since when it does not answer; zero: it does. Of a process that stood still nothing is
// known until it has asked again: last is when there was an answer.
func (a *Answers) Silent() (store string, since, last time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.asked.IsZero() && time.Since(a.asked) > askInTime {
		since = a.asked
	}
	return a.store, since, a.last
}

func (a *Answers) ask(ctx context.Context) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if i := a.clients.known(a.account); i != nil { // else nobody has use for it
			a.askBy(i)
		}
	}
}

// askBy waits for an answer, for as long as it takes. That the cluster refuses is an answer, too.
func (a *Answers) askBy(i *instance) {
	a.note(a.store, time.Now())
	if errors.Is(i.Ask(a.of), unix.ESHUTDOWN) { // it was fenced, and may have had nothing open that would tell
		a.clients.banish(i)
	}
	a.note(i.Cluster()+"/"+a.of.Pool+"/"+a.of.Namespace, time.Time{})
	_ = a.clients.release(i, defaultPatience) // what cannot be closed has no more use either
}

func (a *Answers) note(store string, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store, a.asked = store, asked
	if asked.IsZero() {
		a.last = time.Now()
	}
}
