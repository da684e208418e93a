package link

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"lunar/cluster/link/wire"
)

// Kind says what a message is about, and so whose it is.
type Kind uint8

// The kinds. Each belongs to one package, which knows what its messages look like. A node
// that does not know a kind refuses it (ErrUnreachable).
const (
	Command Kind = 1 + iota // a SCSI command for the owner of its volume
	Manage                  // a task management function, or the end of a session, for the same
	Report                  // of a node's demand, to the controller of all promises
	Grant                   // of that controller, to a node
	Follow                  // about a command that is under way: what lets it end
)

// MaxBody is how many bytes a message and an answer may have.
const MaxBody = wire.MaxBody

// MaxBeat is how many bytes Config.Says may return. A connection whose beats are longer ends.
const MaxBeat = wire.MaxBeat

// Errors of messages, to be tested with errors.Is.
var (
	// ErrUnreachable: it was not sent, or the other node has no use for it. Nothing has
	// happened, and nothing will.
	ErrUnreachable = wire.ErrUnreachable
	// ErrUnknown: it was sent, and the connection ended before it was answered. The other
	// node has it, or has not.
	ErrUnknown = wire.ErrUnknown
)

// Peer is the other end of a connection.
type Peer struct {
	Node        string // which its certificate proves
	Incarnation string // of its process
}

// Message is a call.
type Message struct {
	Kind Kind
	Lane uint32 // those of one lane to one node are handled in order; Follow has lanes of its own
	Room int    // bytes that the answer may have; 0: some KiB
	// Body is the message, in parts that are sent one behind the other.
	Body [][]byte
}

// Receiver gets the messages of a kind. It must not wait for long: what waits behind is of the
// same lanes. It, or somebody later on any goroutine, calls answer once, also for a message
// of Send, for which that sends nothing: until then body is the handler's, and its bytes count.
// What is answered is copied before answer returns, which waits for nothing. An answer for
// which the message left no room, or one to a node that has gone, is not sent: the caller has
// ErrUnknown.
type Receiver func(from Peer, body []byte, answer func(body ...[]byte))

// Heard is what a node was heard to say last.
type Heard struct {
	Incarnation string    // of its process
	At          time.Time // when; zero: there is no connection over which it is heard
	Lost        time.Time // when the last such connection has ended; zero: none has
	Says        []byte    // Config.Says of that node; not to be changed
}

// Status is how a node is reached.
type Status struct {
	Node      string
	Address   string
	Up        bool
	Heard     Heard
	RoundTrip time.Duration // of the last beat
	Calls     int           // that are not answered yet
	Queued    int64         // bytes that wait to be sent
	Why       string        // what keeps it from being reached; empty: nothing does
	Commands  Tally
}

// Tally is what became of messages of a kind.
type Tally struct {
	Sent    uint64 // calls, since the beginning
	Unknown uint64 // of them, those that have an unknown outcome
	Open    int64  // those that are not answered yet
	Taken   uint64 // messages of the other node, since the beginning
	Held    int64  // of them, those that were not answered yet
}

// Config is a node's place among the others.
type Config struct {
	Cluster     string // name
	Node        string
	Incarnation string // of this process, unlike all before
	Transport   Transport
	// Beat is the time between beats. A connection over which none has come for Silence is
	// given up: some beats have to be lost for it.
	Beat, Silence time.Duration
	// Lanes is how many connections to each node carry calls, and how many those of Follow; 0: two.
	Lanes int
	// Memory is how many bytes messages of one other node may take here, with their answers:
	// calls, those of Follow, and those of Send apart. So many may wait to be sent to it over each
	// connection; 0: 64 MiB. At least one message fits.
	Memory int64
	// Says returns what each beat tells; it must not wait. nil: beats tell nothing.
	Says   func() []byte
	Logger *slog.Logger
}

// New returns the links of a node. They begin with Open.
func New(c Config) *Links { return newLinks(c) }

// Handle has h get the messages of a kind. It is called before Open.
func (l *Links) Handle(kind Kind, h Receiver) { l.receivers[kind] = h }

// Watch has changed hear that Up of a node may have changed, that it is heard again, or that it
// is heard no more because its connection has ended. It must not wait. It is called before Open.
func (l *Links) Watch(changed func(node string)) { l.watchers = append(l.watchers, changed) }

// Up reports whether messages can be sent to a node: from when all connections to it are there
// until none is that carries calls, or the one of beats has ended.
func (l *Links) Up(node string) bool {
	p := l.find(node)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up
}

// Heard returns what was heard of a node last.
func (l *Links) Heard(node string) Heard {
	p := l.find(node)
	if p == nil {
		return Heard{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard
}

// All is Heard of all other nodes.
func (l *Links) All() map[string]Heard {
	all := map[string]Heard{}
	for name := range *l.peers.Load() {
		all[name] = l.Heard(name)
	}
	return all
}

// Send sends a message without an answer, which may get lost: it fails with ErrUnreachable if
// it is not even sent. Messages of Send to a node are handled in order. It copies body, and
// waits for nothing.
func (l *Links) Send(node string, kind Kind, body ...[]byte) error {
	c, err := l.way(node, senders)
	if err != nil {
		return err
	}
	return c.Send(uint8(kind), body)
}

// Start sends a message and has done hear of its answer, or of ErrUnknown or ErrUnreachable.
// It waits for nothing. After an error, which is ErrUnreachable, done is not called; else it is
// called once, on a goroutine that must not wait. m.Body must not change until then, or until it
// is known otherwise that the node has it. The answer
// is done's until that returns.
func (l *Links) Start(node string, m Message, done func(answer []byte, err error)) error {
	c, err := l.way(node, l.wayOf(m.Kind, m.Lane))
	if err != nil {
		return err
	}
	return c.Call(uint8(m.Kind), m.Room, m.Body, done)
}

// Break ends the connection to a node that messages of a kind and lane take: calls that were not
// answered end with ErrUnknown. Another connection is made in its place.
func (l *Links) Break(node string, kind Kind, lane uint32) {
	if c, err := l.way(node, l.wayOf(kind, lane)); err == nil {
		c.End(errBroken)
	}
}

// errBroken is of connections that this node ends, since calls are not answered.
var errBroken = errors.New("its calls are not answered, and nobody waits for that any more")

// Call is Start that waits for the answer, or until ctx ends: the message then has been
// handled or has not, and the error is that of ctx and ErrUnknown. It copies m.Body; the answer
// is the caller's.
func (l *Links) Call(ctx context.Context, node string, m Message) ([]byte, error) {
	type outcome struct {
		answer []byte
		err    error
	}
	got := make(chan outcome, 1)
	m.Body = [][]byte{wire.Joined(m.Body)}
	if err := l.Start(node, m, func(answer []byte, err error) { got <- outcome{wire.Joined([][]byte{answer}), err} }); err != nil {
		return nil, err
	}
	select {
	case o := <-got:
		return o.answer, o.err
	case <-ctx.Done():
		return nil, errors.Join(ErrUnknown, ctx.Err())
	}
}
