package link_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is two nodes, of which b answers.
type pair struct {
	t    *testing.T
	net  *linktest.Network
	a, b *link.Links
}

// echo answers a message with itself.
func echo(_ link.Peer, body []byte, answer func(...[]byte)) { answer(body) }

// bubble runs a test in time of its own. prepare is called before the links are opened.
func bubble(t *testing.T, prepare func(*pair), test func(*testing.T, *pair)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{t: t, net: linktest.New()}
		p.a, p.b = link.New(p.net.Config("a", "a.1")), link.New(p.net.Config("b", "b.1"))
		p.b.Handle(link.Command, echo)
		if prepare != nil {
			prepare(p)
		}
		p.a.Open()
		p.b.Open()
		p.net.Meet(p.a, p.b)
		defer p.net.Wait()
		defer p.b.Close()
		defer p.a.Close()
		p.until("both are up", func() bool { return p.a.Up("b") && p.b.Up("a") })
		test(t, p)
	})
}

func (p *pair) until(what string, is func() bool) {
	p.t.Helper()
	for since := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(since) > time.Minute {
			p.t.Fatalf("not within a minute: %s: %+v %+v", what, p.a.Status(), p.b.Status())
		}
	}
}

// Bodies of all sizes come back, also those that nearly fill a message.
func TestCall(t *testing.T) {
	bubble(t, nil, func(t *testing.T, p *pair) {
		for _, n := range []int{0, 1, 4096, 5 << 10, 1 << 20, link.MaxBody} {
			body := bytes.Repeat([]byte{byte(n)}, n)
			got, err := p.a.Call(t.Context(), "b", link.Message{Kind: link.Command, Lane: uint32(n), Room: n, Body: [][]byte{body[:n/2], body[n/2:]}})
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes: found %d bytes, %v", n, len(got), err)
			}
		}
		if _, err := p.a.Call(t.Context(), "b", link.Message{Kind: link.Command, Body: [][]byte{make([]byte, link.MaxBody+1)}}); !errors.Is(err, link.ErrUnreachable) {
			t.Errorf("too long: error %v", err)
		}
		if _, err := p.a.Call(t.Context(), "b", link.Message{Kind: link.Grant}); !errors.Is(err, link.ErrUnreachable) || !strings.Contains(err.Error(), "not known") {
			t.Errorf("a kind that is not known: error %v", err)
		}
		if _, err := p.a.Call(t.Context(), "c", link.Message{Kind: link.Command}); !errors.Is(err, link.ErrUnreachable) {
			t.Errorf("a node that is not known: error %v", err)
		}
		if h := p.a.Heard("b"); h.Incarnation != "b.1" || time.Since(h.At) > p.net.Beat {
			t.Errorf("found %+v", h)
		}
	})
}

// An answer that is longer than its room ends the connection, and the caller does not know.
func TestNoRoom(t *testing.T) {
	long := func(_ link.Peer, _ []byte, answer func(...[]byte)) { answer(make([]byte, 1<<20)) }
	bubble(t, func(p *pair) { p.b.Handle(link.Report, long) }, func(t *testing.T, p *pair) {
		if _, err := p.a.Call(t.Context(), "b", link.Message{Kind: link.Report}); !errors.Is(err, link.ErrUnknown) {
			t.Errorf("found error %v", err)
		}
		p.until("it is up again", func() bool { return p.a.Up("b") })
	})
}

// Messages of a lane are handled in order, through connections that end and connect again, and
// none twice. After one that was answered, no earlier one of unknown outcome is handled.
func TestOrder(t *testing.T) {
	const lanes, each = 3, 400
	var mu sync.Mutex
	var last [lanes]uint32
	handle := func(_ link.Peer, body []byte, answer func(...[]byte)) {
		lane, n := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
		mu.Lock()
		if n <= last[lane] {
			t.Errorf("lane %d: found %d behind %d", lane, n, last[lane])
		}
		last[lane] = n
		mu.Unlock()
		answer()
	}
	bubble(t, func(p *pair) { p.b.Handle(link.Command, handle) }, func(t *testing.T, p *pair) {
		p.net.Delay("a", "b", func() time.Duration { return 3 * time.Millisecond })
		var all sync.WaitGroup
		var unknown, answered int
		for lane := range uint32(lanes) {
			all.Go(func() {
				for n := uint32(1); n <= each; n++ {
					m := link.Message{Kind: link.Command, Lane: lane, Body: [][]byte{binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, lane), n)}}
					for {
						err := p.a.Start("b", m, func(_ []byte, err error) {
							mu.Lock()
							defer mu.Unlock()
							if err == nil {
								answered++
							} else if errors.Is(err, link.ErrUnknown) {
								unknown++
							}
						})
						if err == nil {
							break
						}
						time.Sleep(time.Millisecond)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		for range 4 {
			time.Sleep(50 * time.Millisecond)
			p.net.Break("a", "b")
		}
		all.Wait()
		p.until("all is answered", func() bool { return p.a.Status()[0].Calls == 0 })
		mu.Lock()
		defer mu.Unlock()
		if unknown == 0 || answered < each {
			t.Errorf("found %d answers and %d unknown outcomes", answered, unknown)
		}
	})
}

// A way that is cut, one or both, has what was sent be of unknown outcome after the silence, and
// the node unheard; a mended one is used again.
func TestCut(t *testing.T) {
	var mu sync.Mutex
	var told []string
	bubble(t, func(p *pair) {
		p.a.Watch(func(node string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, node)
		})
	}, func(t *testing.T, p *pair) {
		for _, cuts := range [][][2]string{{{"a", "b"}}, {{"b", "a"}}, {{"a", "b"}, {"b", "a"}}} {
			for _, c := range cuts {
				p.net.Cut(c[0], c[1], true)
			}
			since := time.Now()
			if _, err := p.a.Call(t.Context(), "b", link.Message{Kind: link.Command}); !errors.Is(err, link.ErrUnknown) {
				t.Errorf("%v: found error %v", cuts, err)
			}
			if took := time.Since(since); took > p.net.Silence+p.net.Beat {
				t.Errorf("%v: it took %v", cuts, took)
			}
			p.until("it is not heard", func() bool { return time.Since(p.a.Heard("b").At) > p.net.Silence })
			if p.a.Up("b") {
				t.Errorf("%v: it is up", cuts)
			}
			for _, c := range cuts {
				p.net.Cut(c[0], c[1], false)
			}
			p.until("both are up", func() bool { return p.a.Up("b") && p.b.Up("a") && time.Since(p.a.Heard("b").At) < p.net.Silence })
			if _, err := p.a.Call(t.Context(), "b", link.Message{Kind: link.Command}); err != nil {
				t.Errorf("%v: found error %v when it was mended", cuts, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(told) < 6 {
			t.Errorf("found %d changes told", len(told))
		}
	})
}

// A node whose process ends is heard no more at once, and its next process is heard with another
// incarnation; a message to the first one is not handled by the second.
func TestRestart(t *testing.T) {
	bubble(t, func(p *pair) {
		p.b.Handle(link.Command, func(_ link.Peer, _ []byte, answer func(...[]byte)) {
			time.AfterFunc(time.Minute, func() { answer() })
		})
	}, func(t *testing.T, p *pair) {
		got := make(chan error, 1)
		if err := p.a.Start("b", link.Message{Kind: link.Command}, func(_ []byte, err error) { got <- err }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		since := time.Now()
		p.b.Close()
		if err := <-got; !errors.Is(err, link.ErrUnknown) {
			t.Errorf("found error %v", err)
		}
		p.until("it is not heard", func() bool { return p.a.Heard("b").At.IsZero() })
		if took := time.Since(since); took > p.net.Beat {
			t.Errorf("it took %v", took)
		}
		p.b = link.New(p.net.Config("b", "b.2"))
		p.b.Open()
		p.net.Meet(p.b)
		p.until("the next one is heard", func() bool { return p.a.Up("b") && p.b.Up("a") && p.a.Heard("b").Incarnation == "b.2" })
		p.b.Close()
		time.Sleep(time.Minute)
	})
}

// Requests beyond the memory wait until others are answered, and beats do not wait for them.
func TestMemory(t *testing.T) {
	var mu sync.Mutex
	var owed []func(...[]byte)
	const size = 1 << 20
	bubble(t, func(p *pair) {
		c := p.net.Config("b", "b.1")
		c.Memory = 4 * size
		p.b = link.New(c)
		p.b.Handle(link.Command, func(_ link.Peer, _ []byte, answer func(...[]byte)) {
			mu.Lock()
			defer mu.Unlock()
			owed = append(owed, answer)
		})
	}, func(t *testing.T, p *pair) {
		answered := 0
		for lane := range uint32(20) {
			err := p.a.Start("b", link.Message{Kind: link.Command, Lane: lane, Body: [][]byte{make([]byte, size/2)}, Room: size / 2}, func(_ []byte, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				answered++
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for most := 0; most < 20; {
			time.Sleep(10 * p.net.Silence)
			mu.Lock()
			if len(owed) > 4 {
				t.Errorf("found %d messages that are handled at once", len(owed))
			}
			if !p.a.Up("b") {
				t.Error("it is not up")
			}
			for _, answer := range owed {
				answer()
			}
			most += len(owed)
			if len(owed) == 0 {
				t.Fatal("nothing is handled any more")
			}
			owed = nil
			mu.Unlock()
		}
		p.until("all is answered", func() bool { mu.Lock(); defer mu.Unlock(); return answered == 20 })
	})
}

// Two nodes whose memory is full of each other's calls go on: what follows up on them has a way of its
// own.
func TestFollowUps(t *testing.T) {
	const size, each = 1 << 20, 40
	serve := func(own **link.Links) link.Receiver { // which asks its sender for more before it answers
		return func(from link.Peer, _ []byte, answer func(...[]byte)) {
			m := link.Message{Kind: link.Follow, Body: [][]byte{make([]byte, size/2)}, Room: size / 2}
			if err := (*own).Start(from.Node, m, func([]byte, error) { answer() }); err != nil {
				answer()
			}
		}
	}
	bubble(t, func(p *pair) {
		for _, own := range []struct {
			node  string
			links **link.Links
		}{{"a", &p.a}, {"b", &p.b}} {
			c := p.net.Config(own.node, own.node+".1")
			c.Memory = 4 * size
			*own.links = link.New(c)
			(*own.links).Handle(link.Command, serve(own.links))
			(*own.links).Handle(link.Follow, echo)
		}
	}, func(t *testing.T, p *pair) {
		var mu sync.Mutex
		answered := 0
		for i := range uint32(each) {
			for to, links := range map[string]*link.Links{"b": p.a, "a": p.b} {
				m := link.Message{Kind: link.Command, Lane: i, Body: [][]byte{make([]byte, size)}}
				for links.Start(to, m, func(_ []byte, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					answered++
				}) != nil {
					time.Sleep(time.Millisecond) // too much waits to be sent
				}
			}
		}
		p.until("all is answered", func() bool { mu.Lock(); defer mu.Unlock(); return answered == 2*each })
	})
}

// One of several connections that breaks ends what went over it, and nothing else.
func TestOneBreaks(t *testing.T) {
	const lanes = 2
	var mu sync.Mutex
	var owed []func(...[]byte)
	var told atomic.Int32
	bubble(t, func(p *pair) {
		p.b.Handle(link.Command, func(_ link.Peer, _ []byte, answer func(...[]byte)) {
			mu.Lock()
			defer mu.Unlock()
			owed = append(owed, answer)
		})
		p.a.Watch(func(string) { told.Add(1) })
	}, func(t *testing.T, p *pair) {
		for range 8 { // more than there are: the oldest one breaks
			owed = nil
			lost, before := 0, told.Load()
			for lane := range uint32(lanes) {
				if err := p.a.Start("b", link.Message{Kind: link.Command, Lane: lane}, func(_ []byte, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						lost++
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			p.until("they are handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(owed) == lanes })
			if !p.net.BreakOne("a", "b", 0) {
				t.Fatal("there is no connection")
			}
			time.Sleep(time.Second)
			if !p.a.Up("b") {
				t.Error("it is not up a second later")
			}
			for _, answer := range owed {
				answer()
			}
			p.until("all is over", func() bool { return p.a.Status()[0].Calls == 0 })
			changes := told.Load() - before
			if lost == lanes && changes == 0 { // as by the one of beats
				t.Error("both calls are lost")
			}
			if lost < lanes && changes > 0 {
				t.Errorf("found %d changes told", changes)
			}
		}
	})
}

// A connection over which nothing comes any more, and of whose end nobody hears, ends after some
// time, whatever it carries, and another one takes its place.
func TestOneStalls(t *testing.T) {
	bubble(t, nil, func(t *testing.T, p *pair) {
		for range 12 { // more than there are connections: the oldest comes first
			if !p.net.Stall("a", "b", 0) {
				t.Fatal("there is no connection")
			}
			since := time.Now()
			for lane := range uint32(2) {
				_, err := p.a.Call(t.Context(), "b", link.Message{Kind: link.Command, Lane: lane})
				if err != nil && !errors.Is(err, link.ErrUnknown) && !errors.Is(err, link.ErrUnreachable) {
					t.Error(err)
				}
			}
			if took := time.Since(since); took > 3*p.net.Silence {
				t.Errorf("calls have ended after %v", took)
			}
			time.Sleep(time.Second)
			if !p.a.Up("b") || p.a.Status()[0].Why != "" {
				t.Errorf("found %+v a second later", p.a.Status())
			}
		}
	})
}

// What cannot be sent is refused beyond the bounds, and does not grow.
func TestQueue(t *testing.T) {
	bubble(t, func(p *pair) {
		c := p.net.Config("a", "a.1")
		c.Memory = 1 << 20
		p.a = link.New(c)
	}, func(t *testing.T, p *pair) {
		p.net.Cut("a", "b", true)
		sent := 0
		var err error
		for ; err == nil; sent++ {
			err = p.a.Send("b", link.Report, make([]byte, 64<<10))
		}
		if !errors.Is(err, link.ErrUnreachable) || sent > 16+100 { // the queue, and what the network has taken
			t.Errorf("found error %v after %d messages", err, sent)
		}
		p.net.Cut("a", "b", false)
	})
}

// Two processes of one name: that which the state knows keeps its connections.
func TestSameName(t *testing.T) {
	bubble(t, nil, func(t *testing.T, p *pair) {
		p.a.SetNodes(map[string]link.Address{"b": {At: "b", Incarnation: "b.1"}})
		other := link.New(p.net.Config("b", "b.2"))
		other.SetNodes(map[string]link.Address{"a": {At: "a"}})
		time.Sleep(time.Second)
		if s := other.Status(); s[0].Up || !strings.Contains(s[0].Why, "another process") {
			t.Errorf("found %+v", s)
		}
		if !p.b.Up("a") {
			t.Error("the first process is not linked any more")
		}
		other.Close()
	})
}

// A node of another cluster is not linked.
func TestAnotherCluster(t *testing.T) {
	bubble(t, nil, func(t *testing.T, p *pair) {
		c := p.net.Config("c", "c.1")
		c.Cluster = "other"
		other := link.New(c)
		other.SetNodes(map[string]link.Address{"a": {At: "a"}})
		time.Sleep(time.Second)
		if s := other.Status(); s[0].Up || !strings.Contains(s[0].Why, `found a node of cluster "other", expected "test"`) {
			t.Errorf("found %+v", s)
		}
		other.Close()
	})
}

// Beats say what they are given.
func TestSays(t *testing.T) {
	bubble(t, func(p *pair) {
		c := p.net.Config("b", "b.1")
		c.Says = func() []byte { return []byte("well") }
		p.b = link.New(c)
	}, func(t *testing.T, p *pair) {
		p.until("it is said", func() bool { return string(p.a.Heard("b").Says) == "well" })
		if s := p.a.Status()[0]; s.Address != "b" || s.Why != "" || s.Node != "b" {
			t.Errorf("found %+v", s)
		}
	})
}
