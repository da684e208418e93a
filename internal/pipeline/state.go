package pipeline

import "fmt"

// State is what a block is waiting for, or what is being done with it.
type State uint8

// The states. Source and Sink say which follows which.
const (
	Free      State = iota
	Loading         // a store fills it
	Loaded          // it has its data
	CPUWait         // for digest, cipher or compression
	Processed       // that is done
	NetWait         // the network has it; at the sink a credit for it is out
	Sent            // the network has done with it
	Arrived         // the peer has filled it
	StoreWait       // a store takes its data
	states
)

// String returns the state's name.
func (s State) String() string {
	return [...]string{"free", "loading", "loaded", "cpu wait", "processed", "network wait", "sent", "arrived", "store wait"}[s]
}

// Event is what happens to a block.
type Event uint8

// The events.
const (
	Take     Event = iota // a free block is taken: to be filled, or as a credit
	Fill                  // it is filled: loaded, or by the peer
	Queue                 // it goes to a stage of processors
	Process               // that has ended
	Post                  // it goes to the network
	Complete              // the network has done with it
	Fail                  // the network could not, and it will be sent again
	Store                 // it goes to the store
	Release               // nobody needs it any more
	events
)

// String returns the event's name.
func (e Event) String() string {
	return [...]string{"take", "fill", "queue", "process", "post", "complete", "fail", "store", "release"}[e]
}

// Transition is one entry of a Table.
type Transition struct {
	From State
	On   Event
	To   State
}

// Table says what follows from a state and an event. What it does not say is an error.
type Table struct {
	name string
	next [states][events]State // one more than the state; 0: there is none
}

// NewTable makes the table of one side, which its errors name.
func NewTable(name string, all ...Transition) *Table {
	t := &Table{name: name}
	for _, x := range all {
		t.next[x.From][x.On] = x.To + 1
	}
	return t
}

// Next returns the state after an event. After an error it is the one before.
func (t *Table) Next(s State, e Event) (State, error) {
	if s < states && e < events && t.next[s][e] != 0 {
		return t.next[s][e] - 1, nil
	}
	return s, fmt.Errorf("%s block: found event %v in state %v, which has none such", t.name, e, s)
}

// Source is the table of the side that sends, Sink that of the side that stores. Both may
// pass any number of stages of processors, or none.
var (
	Source = NewTable("source",
		Transition{Free, Take, Loading}, Transition{Loading, Fill, Loaded}, Transition{Loading, Release, Free},
		Transition{Loaded, Queue, CPUWait}, Transition{CPUWait, Process, Processed}, Transition{Processed, Queue, CPUWait},
		Transition{CPUWait, Release, Free}, Transition{Processed, Release, Free}, // there is no need to send it
		Transition{Loaded, Post, NetWait}, Transition{Processed, Post, NetWait},
		Transition{NetWait, Complete, Sent}, Transition{NetWait, Fail, Loaded}, Transition{Sent, Release, Free})
	Sink = NewTable("sink",
		Transition{Free, Take, NetWait}, Transition{NetWait, Fill, Arrived}, Transition{NetWait, Release, Free}, // an unused credit
		Transition{Arrived, Queue, CPUWait}, Transition{CPUWait, Process, Processed}, Transition{Processed, Queue, CPUWait},
		Transition{CPUWait, Release, Free}, // what arrived is damaged
		Transition{Arrived, Store, StoreWait}, Transition{Processed, Store, StoreWait}, Transition{StoreWait, Release, Free})
)
