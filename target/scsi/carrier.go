package scsi

import (
	"bytes"
	"errors"
	"time"
)

// Carrier brings messages (package relay) to the server that serves a logical unit, for as long
// as that does without an interruption: whatever another Carrier brought somewhere else, and
// was not answered, does not run any more.
type Carrier interface {
	// Carry sends a message, or fails, which waits for nothing: then it was not sent. Else
	// done is called once, later, on any goroutine, with the answer, which is done's until
	// it returns, or an error; one of ErrNotSent says that nothing has happened or will. The
	// message must not change until then, or until the server asks for more of it. Messages of
	// one lane but those of Follow are handled in order, and once one was answered, none that was
	// sent before it is handled later.
	Carry(m Message, done func(answer []byte, err error)) error
	// Patience is how long what cannot be sent waits.
	Patience() time.Duration
	// Server is the name of that server.
	Server() string
	// Break ends the ways of a lane: what was brought by them and was not answered ends with an
	// error. Others may use them, too, whose commands end as well.
	Break(lane uint32)
}

// Relayed is how a command was relayed to another server, and where its time went.
type Relayed struct {
	Server string
	Waited time.Duration // from when it came until it was sent: for its data, or for the server
	Away   time.Duration // from then until its outcome was here
	There  time.Duration // of that, what the server has had it; 0: not known
	Ended  bool          // by the server; else it is not known what has become of it, or nothing has
}

// Tracer is a Port that tells whoever traces a session of relayed commands.
type Tracer interface{ Relayed(c *Command, how Relayed) }

// ErrNotSent is in the error of a message that was not sent.
var ErrNotSent = errors.New("the message was not sent")

// Message is a message to another server.
type Message struct {
	Lane    uint32
	Room    int      // bytes that the answer may have
	Command bool     // it is a command; others are about commands and nexuses
	Follow  bool     // it lets a command end that is under way, and is never behind what waits for that
	Body    [][]byte // parts, one behind the other
}

// everywhere are the operation codes of commands that are answered by what every server knows
// of a logical unit; all others are relayed to the one that serves it.
var everywhere = []byte{0x12, 0x25, 0xa0}

// everywhereActions are the same with a service action.
var everywhereActions = []struct {
	opcode byte
	action int
}{
	{0x9e, 0x10},                             // READ CAPACITY(16)
	{0xa3, 0x0a}, {0xa3, 0x0c}, {0xa3, 0x0d}, // target port groups, and what is supported
	{0xa4, 0x0a},
}

// relayed reports whether the row's command is for the server that serves the unit.
func (r *Row) relayed() bool {
	for _, e := range everywhereActions {
		if r.Opcode == e.opcode && r.ServiceAction == e.action {
			return false
		}
	}
	return bytes.IndexByte(everywhere, r.Opcode) < 0
}

// ServedElsewhere reports whether another server serves the logical unit.
func (lu *LogicalUnit) ServedElsewhere() bool {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	return lu.mu.carrier != nil
}

// Unsettled returns what ends the commands that were relayed so far, have no outcome and cannot be
// followed up: it is called when it is certain that none of them runs any more. nil: there are none.
func (lu *LogicalUnit) Unsettled() (settle func()) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	var all []func()
	for n := range lu.mu.nexuses {
		if n.passage != nil {
			if one := n.passage.unsettled(); one != nil {
				all = append(all, one)
			}
		}
	}
	if all == nil {
		return nil
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// Reopen tells the server that serves the logical unit again of all nexuses, of which it may have
// thought that they have gone.
func (lu *LogicalUnit) Reopen() {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	for n := range lu.mu.nexuses {
		if n.passage != nil {
			n.passage.reopen()
		}
	}
}
