package link

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/cluster/link/wire"
	"lunar/internal/greetings"
)

// mostGreetings is how many connections may be there that have not proven which node they are of.
const mostGreetings = 64

// Links are a node's connections to the others. Methods may be called by any number of
// goroutines.
type Links struct {
	config    Config
	lanes     int
	receivers [256]Receiver
	watchers  []func(string)
	greetings *greetings.Greetings

	mu    sync.Mutex // of changes of peers
	peers atomic.Pointer[map[string]*peer]
	ctx   context.Context
	close context.CancelFunc
	rest  sync.WaitGroup
}

// The connections that a node makes to another one, by number. From firstLane on they are those of
// calls and of follow-ups in turn.
const (
	beats     = 0
	senders   = 1 // of Send
	firstLane = 2
)

// class is what connections carry. Each has memory of its own.
type class int

const (
	sent class = iota
	calls
	follows
	classes
)

func classOf(way int) class {
	if way < firstLane {
		return sent
	}
	return calls + class(way-firstLane)%2
}

// wayOf is the connection of a lane.
func (l *Links) wayOf(kind Kind, lane uint32) int {
	way := firstLane + 2*int(lane%uint32(l.lanes))
	if kind == Follow {
		way++
	}
	return way
}

// began is what the numbers of beats count from, which say when they were sent.
var began = time.Now()

// peer is another node.
type peer struct {
	links  *Links
	name   string
	memory [classes]*wire.Memory // that its messages take here
	counts wire.Counts
	outs   []atomic.Pointer[conn]

	admission sync.Mutex // one connection of it replaces another at a time

	mu      sync.Mutex
	up      bool
	at      Address
	ins     [wire.Ways]*conn
	heard   Heard
	trip    time.Duration      // of the last beat and its answer
	why     string             // it cannot be reached
	forsake context.CancelFunc // ends the attempts to reach it; nil: there are none
}

// Address is where a node is reached.
type Address struct {
	At          string // host:port
	Incarnation string // of its process, as far as is known
}

func newLinks(c Config) *Links {
	if c.Lanes == 0 {
		c.Lanes = 2
	}
	if c.Memory == 0 {
		c.Memory = 64 << 20
	}
	if c.Says == nil {
		c.Says = func() []byte { return nil }
	}
	l := &Links{config: c, greetings: greetings.New(mostGreetings, wire.HangUp), lanes: min(c.Lanes, (wire.Ways-firstLane)/2)}
	l.ctx, l.close = context.WithCancel(context.Background())
	l.peers.Store(&map[string]*peer{})
	return l
}

// Open lets other nodes connect.
func (l *Links) Open() { l.rest.Go(l.accept) }

// Close ends all connections, and returns when no handler runs any more.
func (l *Links) Close() error {
	l.close()
	err := l.config.Transport.Listener.Close()
	l.rest.Wait()
	return err
}

// SetNodes says which other nodes there are, and where. It connects to those that are new, and
// gives up those that are not there any more.
func (l *Links) SetNodes(all map[string]Address) {
	for name, at := range all {
		if name == l.config.Node || at.At == "" {
			continue
		}
		p := l.peerOf(name)
		p.mu.Lock()
		p.at = at
		begin := p.forsake == nil && l.ctx.Err() == nil
		var ctx context.Context
		if begin {
			ctx, p.forsake = context.WithCancel(l.ctx)
		}
		p.mu.Unlock()
		for way := 0; begin && way < len(p.outs); way++ {
			l.rest.Go(func() { l.keep(ctx, p, way) })
		}
	}
	for name, p := range *l.peers.Load() {
		if _, there := all[name]; there {
			continue
		}
		p.mu.Lock()
		if p.forsake != nil {
			p.forsake()
			p.forsake = nil
		}
		p.mu.Unlock()
	}
}

func (l *Links) find(node string) *peer { return (*l.peers.Load())[node] }

// peerOf is find that makes it.
func (l *Links) peerOf(name string) *peer {
	if p := l.find(name); p != nil {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.find(name); p != nil {
		return p
	}
	p := &peer{links: l, name: name, outs: make([]atomic.Pointer[conn], firstLane+2*l.lanes)}
	for i := range p.memory {
		p.memory[i] = wire.NewMemory(l.config.Memory)
	}
	all := maps.Clone(*l.peers.Load())
	all[name] = p
	l.peers.Store(&all)
	return p
}

// way is a connection that messages to a node take.
func (l *Links) way(node string, number int) (*conn, error) {
	if p := l.find(node); p != nil {
		if c := p.outs[number].Load(); c != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("node %s: %w: there is no connection to it", node, ErrUnreachable)
}

// stands notes whether messages can be sent to the node, when a connection to it is there, or is
// there no more. One of several that is made again ends what went over it, and nothing else.
func (p *peer) stands() {
	p.mu.Lock()
	all, some := true, false
	for way := range p.outs {
		there := p.outs[way].Load() != nil
		all, some = all && there, some || there && way >= firstLane
	}
	was, failed := p.up, p.why != ""
	switch {
	case all:
		p.up, p.why = true, ""
	case !some || p.outs[beats].Load() == nil:
		p.up = false
	}
	is := p.up
	p.mu.Unlock()
	if all && failed {
		p.links.config.Logger.Info("there is a link to another node again", "node", p.name)
	}
	if is != was {
		p.changed()
	}
}

// changed tells who watches.
func (p *peer) changed() {
	for _, w := range p.links.watchers {
		w(p.name)
	}
}

// conn is a connection of a node.
type conn struct {
	*wire.Conn
	peer *peer
	from Peer
	way  int
}

// laterSilence is how many times later than a connection of beats another one ends that has been
// silent: a node that does not go on ends all of them by the former.
const laterSilence = 2

// newConn makes one on which both have said hello; made says that this node has made it.
func (p *peer) newConn(raw net.Conn, incarnation string, way int, made bool) *conn {
	c := &conn{peer: p, from: Peer{p.name, incarnation}, way: way}
	config := wire.Config{
		Peer: p.name, Made: made, Beats: way == beats, Silence: p.links.config.Silence, Queue: p.links.config.Memory,
		Memory: p.memory[classOf(way)], Counts: &p.counts, Handle: c.handle, Beat: c.beat,
	}
	if way != beats {
		config.Every, config.Silence = p.links.config.Beat, laterSilence*config.Silence
	}
	c.Conn = wire.New(raw, config)
	return c
}

// handle gives a message to its receiver, if there is one.
func (c *conn) handle(kind uint8, body []byte, answer func(...[]byte)) (known bool) {
	r := c.peer.links.receivers[kind]
	if r != nil {
		r(c.from, body, answer)
	}
	return r != nil
}

// beat notes what the node says, and says something of this one in turn.
func (c *conn) beat(number uint64, says []byte) {
	p := c.peer
	now := time.Now()
	p.mu.Lock()
	again := now.Sub(p.heard.At) > p.links.config.Silence
	p.heard = Heard{c.from.Incarnation, now, p.heard.Lost, bytes.Clone(says)}
	if c.Made {
		p.trip = now.Sub(began) - time.Duration(number)
	}
	p.mu.Unlock()
	if !c.Made {
		_ = c.SendBeat(number, p.links.config.Says()) // or it has ended
	}
	if again {
		p.changed()
	}
}

// deaf notes the end of a connection of beats: without another one the node is heard no more.
func (p *peer) deaf() {
	p.mu.Lock()
	over := p.ins[beats] == nil && p.outs[beats].Load() == nil
	if over {
		p.heard.At, p.heard.Lost = time.Time{}, time.Now()
	}
	p.mu.Unlock()
	if over {
		p.changed()
	}
}

// Status returns how the other nodes are reached, by name.
func (l *Links) Status() (all []Status) {
	peers := *l.peers.Load()
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		p := peers[name]
		s := Status{Node: name, Commands: tallyOf(&p.counts[Command])}
		for i := range p.outs {
			if c := p.outs[i].Load(); c != nil {
				calls, queued := c.Load()
				s.Calls, s.Queued = s.Calls+calls, s.Queued+queued
			}
		}
		p.mu.Lock()
		s.Up, s.Address, s.Heard, s.RoundTrip, s.Why = p.up, p.at.At, p.heard, p.trip, p.why
		p.mu.Unlock()
		all = append(all, s)
	}
	return all
}

func tallyOf(n *wire.Count) Tally {
	return Tally{n.Sent.Load(), n.Unknown.Load(), n.Open.Load(), n.Taken.Load(), n.Held.Load()}
}
