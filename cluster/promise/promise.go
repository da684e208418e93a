package promise

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lunar/cluster"
	"lunar/cluster/link"
	"lunar/scheduler"
	"lunar/scheduler/nodes"
)

// Links are how nodes reach each other: link.Links.
type Links interface {
	Handle(kind link.Kind, h link.Receiver)
	Send(node string, kind link.Kind, body ...[]byte) error
	Call(ctx context.Context, node string, m link.Message) ([]byte, error)
}

// Gates are what is promised with: target.Server.
type Gates interface {
	ReportQoS(*scheduler.GateReport)
	GrantQoS(*scheduler.NodeGrant)
	SetQoSNodes(int)
}

// Config is a node's part.
type Config struct {
	State      cluster.State
	Keys       cluster.Keys
	Node       string
	Lease      time.Duration // of the controller
	Links      Links
	Gates      Gates
	Living     func() []string          // the nodes that live; it must not wait
	Shared     func(device string) bool // which devices several nodes use
	Controller func() nodes.Config      // of a controller that begins here, but for its term
	Flows      func() []scheduler.Flow  // of sessions with this node; it may wait
	Logger     *slog.Logger
}

// Keeper is a node that takes part. Its methods may be called by any number of goroutines.
type Keeper struct {
	config     Config
	began      time.Time
	inbox      chan func()
	done       chan struct{} // closed when the goroutine that decides has ended
	end        context.CancelFunc
	rest       sync.WaitGroup
	superseded chan struct{} // an earlier controller hears here that it is none any more
	seen       atomic.Pointer[Seen]

	// What follows is the deciding goroutine's.
	node       nodes.Node
	controller *nodes.Controller
	elected    int64 // when it was
	asked      bool  // nodes were asked in this interval
	living     int
}

// New returns one that does nothing yet but hear: it is called before the links open.
func New(c Config) *Keeper {
	k := &Keeper{
		config: c, began: time.Now(), inbox: make(chan func(), 256), done: make(chan struct{}),
		superseded: make(chan struct{}, 1), node: nodes.Node{Shared: c.Shared},
	}
	c.Links.Handle(link.Report, k.hear)
	c.Links.Handle(link.Grant, k.hear)
	return k
}

// Start has the node take part.
func (k *Keeper) Start() {
	ctx, end := context.WithCancel(context.Background())
	k.end = end
	go k.run(ctx)
	k.rest.Go(func() { k.stand(ctx) })
}

// Stop ends that. If the node is the controller, another one can be elected at once.
func (k *Keeper) Stop() {
	k.end()
	<-k.done
	k.rest.Wait()
}

// now is the time of all that is decided.
func (k *Keeper) now() int64 { return int64(time.Since(k.began)) }

// post has the deciding goroutine do something. Of too much it loses some: each message is
// worth nothing once the next one comes.
func (k *Keeper) post(f func()) {
	select {
	case k.inbox <- f:
	default:
	}
}

// do is post that loses nothing and waits; it reports whether f has run.
func (k *Keeper) do(ctx context.Context, f func()) bool {
	ran := make(chan struct{})
	select {
	case k.inbox <- func() { f(); close(ran) }:
	case <-k.done:
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-ran:
		return true
	case <-k.done:
		return false
	}
}

// hear takes a message of another node.
func (k *Keeper) hear(from link.Peer, body []byte, answer func(...[]byte)) {
	switch kind, _ := nodes.KindOf(body); kind {
	case nodes.IsShow:
		go func() {
			var text []byte
			k.do(context.Background(), func() { text = k.shown() })
			answer(text)
		}()
		return
	case nodes.IsList:
		go k.flows(answer)
		return
	}
	message := bytes.Clone(body)
	answer()
	k.post(func() { k.take(from.Node, message) })
}

func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-k.inbox:
			f()
		case <-timer.C:
		}
		timer.Reset(k.decide())
	}
}

const (
	// ahead is how long before a grant is due nodes are asked for what it is made from.
	ahead = nodes.Interval / 10
	// waits is for how long after that grants wait for who has not answered.
	waits = nodes.Interval * 3 / 10
)

// decide does what is due, and returns how long it is until something is due again.
func (k *Keeper) decide() time.Duration {
	if n := len(k.config.Living()); n != k.living {
		k.living = n
		k.config.Gates.SetQoSNodes(n)
	}
	c := k.controller
	if c == nil {
		return nodes.Interval
	}
	due := max(c.Deadline(), k.elected+ahead)
	if now := k.now(); !k.asked && now >= due-ahead {
		k.asked = true
		if k.ask(); k.controller == nil { // this node itself has heard a later one
			return nodes.Interval
		}
	}
	if now := k.now(); now >= due && (now >= due+waits || !c.Awaits()) {
		k.asked = false
		k.deal(now)
		due = c.Deadline()
	}
	switch now := k.now(); {
	case !k.asked:
		return time.Duration(due - ahead - now)
	case now < due:
		return time.Duration(due - now)
	default:
		return time.Duration(due + waits - now)
	}
}

// ask asks all nodes that live for their reports.
func (k *Keeper) ask() {
	c := k.controller
	for _, node := range k.config.Living() {
		a := c.Ask(node)
		k.send(node, link.Report, a.Append(nil))
	}
}

// deal divides what there is over the nodes, and tells them.
func (k *Keeper) deal(now int64) {
	c := k.controller
	c.Deal(now, k.config.Living())
	for _, node := range c.Granted() {
		k.send(node, link.Grant, c.Grant(node, k.now(), nil))
	}
	t := c.Totals(now - k.elected)
	if t == nil {
		return
	}
	for _, node := range c.Granted() {
		k.send(node, link.Grant, t.Append(nil))
	}
}

// send sends a message, also to this node.
func (k *Keeper) send(node string, kind link.Kind, message []byte) {
	if node == k.config.Node {
		k.take(node, message)
		return
	}
	_ = k.config.Links.Send(node, kind, message) // who cannot be reached is silent
}

// take takes a message. One that comes too late is nothing to tell of: the next one is better.
func (k *Keeper) take(from string, message []byte) {
	if err := k.taken(from, message); err != nil {
		k.config.Logger.Debug("a message about the promise over all nodes means nothing here", "from", from, "error", err)
	}
}

func (k *Keeper) taken(from string, message []byte) error {
	kind, err := nodes.KindOf(message)
	if err != nil {
		return err
	}
	switch c := k.controller; kind {
	case nodes.IsAsk:
		answer, err := k.node.Answer(message, k.now(), k.config.Gates.ReportQoS)
		if err != nil {
			return err
		}
		k.send(from, link.Report, answer)
	case nodes.IsGrant:
		g, err := k.node.Grant(message, k.now())
		if err != nil {
			return err
		}
		k.config.Gates.GrantQoS(g)
	case nodes.IsTotals:
		t, err := k.node.Totals(message, k.now())
		if err != nil {
			return err
		}
		k.seen.Store(&Seen{from, *t, time.Now()})
	case nodes.IsReport:
		if c != nil {
			return c.Hear(from, message, k.now())
		}
	case nodes.IsSuperseded:
		var a nodes.Ask
		if err := a.Parse(message); err != nil {
			return err
		}
		if c != nil && a.Term > c.Term() {
			k.controller = nil
			select {
			case k.superseded <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

// errNobody: no node keeps the promise at the moment.
var errNobody = errors.New("no node keeps the promise over all nodes at the moment")
