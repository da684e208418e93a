package sever

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"lunar/cluster"
)

// State is where requests are. Its methods may be called by any number of goroutines.
type State struct {
	State cluster.State
	Keys  cluster.Keys
}

const version = 1

// request is the value of a key of cluster.Keys.Sever.
type request struct {
	Version     int    `json:"version"`
	ID          string `json:"id"`
	Incarnation string `json:"incarnation"` // of the process that is asked
	Done        bool   `json:"done,omitempty"`
}

func (r request) encode() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return text
}

func parse(value []byte) (r request, err error) {
	if err = json.Unmarshal(value, &r); err == nil && r.Version != version {
		err = fmt.Errorf("found version %d, expected %d", r.Version, version)
	}
	return r, err
}

// tidyTime is how long it may take to remove a request that is over.
const tidyTime = time.Second

// Ask has a process of another node end all that this node has relayed to it before, and returns nil
// when nothing of that runs any more. What it answers after ctx has ended is of no account.
func (s State) Ask(ctx context.Context, self, other, incarnation string) error {
	key, r := s.Keys.Sever(other, self), request{Version: version, ID: rand.Text(), Incarnation: incarnation}
	at, err := s.State.Commit(ctx, nil, []cluster.Change{{Key: key, Value: r.encode()}})
	if err != nil {
		return err
	}
	defer func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		_, _ = s.State.Commit(within, nil, []cluster.Change{{Key: key, Delete: true}}) // or the next one replaces it
	}()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	for b := range s.State.Watch(within, key, at) {
		if b.Err != nil {
			return b.Err
		}
		for _, e := range b.Events {
			if a, err := parse(e.Value); err == nil && e.Key == key && !e.Deleted && a.ID == r.ID && a.Done {
				return nil
			}
		}
	}
	return ctx.Err()
}

// pause is that of who cannot reach the state.
const pause = 200 * time.Millisecond

// Serve has end called when a node asks this process to end what it has relayed, until ctx ends.
// end calls then when nothing of that runs any more, on any goroutine; it does not wait.
func (s State) Serve(ctx context.Context, self, incarnation string, end func(node string, then func())) {
	var answers sync.WaitGroup
	defer answers.Wait()
	take := func(i cluster.Item) {
		node, ok := strings.CutPrefix(i.Key, s.Keys.Severs(self))
		r, err := parse(i.Value)
		if !ok || err != nil || r.Done || r.Incarnation != incarnation {
			return // what another process has begun ends with the volume's next owner
		}
		ended := make(chan struct{})
		end(node, sync.OnceFunc(func() { close(ended) }))
		answers.Go(func() {
			select {
			case <-ended:
				s.answer(ctx, i, r)
			case <-ctx.Done():
			}
		})
	}
	for ctx.Err() == nil {
		items, at, err := s.State.Get(ctx, s.Keys.Severs(self))
		if err != nil {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		for _, i := range items {
			take(i)
		}
		for b := range s.State.Watch(ctx, s.Keys.Severs(self), at) {
			for _, e := range b.Events {
				if !e.Deleted {
					take(e.Item)
				}
			}
		}
	}
}

// answer says that it is done, unless something else is asked by now. Who asks asks again if that fails.
func (s State) answer(ctx context.Context, i cluster.Item, r request) {
	r.Done = true
	_, _ = s.State.Commit(ctx, []cluster.Condition{{Key: i.Key, Modified: i.Modified}}, []cluster.Change{{Key: i.Key, Value: r.encode()}})
}
