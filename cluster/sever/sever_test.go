package sever_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
	"lunar/cluster/sever"
)

// pair is a node that asks and one that serves.
type pair struct {
	network *mem.Network
	asker   sever.State
	mu      sync.Mutex
	then    []func() // of what is to end
}

func bubble(t *testing.T, test func(*testing.T, *pair)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{network: mem.NewNetwork()}
		keys := cluster.KeysOf("prod")
		p.asker = sever.State{State: p.network.State("n2"), Keys: keys}
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		server := sever.State{State: p.network.State("n1"), Keys: keys}
		serving.Go(func() {
			server.Serve(ctx, "n1", "n1.1", func(node string, then func()) {
				if node != "n2" {
					t.Errorf("found that %s asks", node)
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				p.then = append(p.then, then)
			})
		})
		test(t, p)
		cancel()
		serving.Wait()
		p.asker.State.Close()
		server.State.Close()
	})
}

// ended ends what is to end, and returns how much that was.
func (p *pair) ended() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.then)
	for _, then := range p.then {
		then()
	}
	p.then = nil
	return n
}

func (p *pair) ask(t *testing.T, incarnation string, within time.Duration) <-chan error {
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		got <- p.asker.Ask(ctx, "n2", "n1", incarnation)
	}()
	return got
}

// Who asks hears of the end when there is one, and not before.
func TestAsk(t *testing.T) {
	bubble(t, func(t *testing.T, p *pair) {
		for range 2 {
			got := p.ask(t, "n1.1", time.Minute)
			time.Sleep(10 * time.Second)
			select {
			case err := <-got:
				t.Errorf("found %v before anything has ended", err)
			default:
			}
			if p.ended() != 1 {
				t.Error("nobody was asked")
			}
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
	})
}

// A late answer is not taken for one to another question.
func TestAskAgain(t *testing.T) {
	bubble(t, func(t *testing.T, p *pair) {
		if err := <-p.ask(t, "n1.1", time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("found %v", err)
		}
		p.mu.Lock()
		first := p.then
		p.then = nil
		p.mu.Unlock()
		got := p.ask(t, "n1.1", time.Minute)
		time.Sleep(time.Second)
		first[0]()
		time.Sleep(time.Second)
		select {
		case err := <-got:
			t.Errorf("found %v by an answer to an earlier question", err)
		default:
		}
		p.ended()
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

// Another process than the one that is asked does not answer, nor one that the state does not reach.
func TestAskNobody(t *testing.T) {
	bubble(t, func(t *testing.T, p *pair) {
		if err := <-p.ask(t, "n1.0", time.Minute); !errors.Is(err, context.DeadlineExceeded) || p.ended() != 0 {
			t.Errorf("found %v", err)
		}
		p.network.Cut("n1", true)
		got := p.ask(t, "n1.1", 10*time.Second)
		if err := <-got; !errors.Is(err, context.DeadlineExceeded) || p.ended() != 0 {
			t.Errorf("found %v", err)
		}
		p.network.Cut("n1", false)
	})
}
