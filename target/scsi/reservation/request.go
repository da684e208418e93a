package reservation

// Action is a service action of PERSISTENT RESERVE OUT (SPC-4 clause 6.16.2).
type Action uint8

// The service actions.
const (
	Register Action = iota
	Reserve
	Release
	Clear
	Preempt
	PreemptAndAbort
	RegisterAndIgnoreExistingKey
	RegisterAndMove
)

// Request is a PERSISTENT RESERVE OUT command with what its list says.
type Request struct {
	Action     Action
	From       Nexus  // that the command came by
	Holder     string // whom registrations that it makes count for
	Scope      uint8
	Type       Type
	Key        uint64 // RESERVATION KEY
	ServiceKey uint64 // SERVICE ACTION RESERVATION KEY
	Persist    bool   // APTPL

	// Ports are the relative target port identifiers of the target device
	// with ALL_TG_PT, else empty.
	Ports []uint16
	// Initiators are the initiator ports of the TransportIDs with SPEC_I_PT.
	Specified  bool // SPEC_I_PT
	Initiators []string

	// Of REGISTER AND MOVE.
	To         Nexus
	Unregister bool // UNREG
}

// Reason is what is wrong with a request.
type Reason uint8

// The reasons.
const (
	Conflict       Reason = iota // status RESERVATION CONFLICT
	InvalidCDB                   // INVALID FIELD IN CDB
	InvalidList                  // INVALID FIELD IN PARAMETER LIST
	ListLength                   // PARAMETER LIST LENGTH ERROR
	InvalidRelease               // INVALID RELEASE OF PERSISTENT RESERVATION
	TooMany                      // INSUFFICIENT REGISTRATION RESOURCES
)

// Refusal says why a request changes nothing. Field and Bit are the field
// pointer into the CDB or the list; Bit -1: none.
type Refusal struct {
	Reason Reason
	Field  int
	Bit    int
}

var errConflict = &Refusal{Reason: Conflict}

func invalidList(field, bit int) *Refusal { return &Refusal{InvalidList, field, bit} }

// Event is a unit attention condition.
type Event uint8

// The events.
const (
	ReservationsPreempted  Event = iota // CLEAR removed the registration and the reservation
	ReservationsReleased                // a reservation that the nexus took part in has ended or changed
	RegistrationsPreempted              // a preemption removed the registration
)

// Notice is a unit attention condition to establish for a nexus.
type Notice struct {
	Nexus
	Event Event
}

// Change is what a request brings about.
type Change struct {
	Next    *State
	Notices []Notice
	// Abort are the nexuses whose commands PREEMPT AND ABORT ends, but for
	// the one that asks.
	Abort []Nexus
}

// tell adds a notice for each of the nexuses but the one that asks.
func (c *Change) tell(r *Request, e Event, to ...Nexus) {
	for _, n := range to {
		if n != r.From {
			c.Notices = append(c.Notices, Notice{n, e})
		}
	}
}

// tellRegistered adds a notice for all that are registered then.
func (c *Change) tellRegistered(r *Request, e Event) {
	for _, reg := range c.Next.registrations {
		c.tell(r, e, reg.Nexus)
	}
}

// actions is the table of service actions. All but the first row and REGISTER
// AND IGNORE EXISTING KEY need a registration whose key is RESERVATION KEY.
var actions = [...]struct {
	keyless bool
	apply   func(*State, *Request) (Change, *Refusal)
}{
	Register:                     {keyless: true, apply: (*State).applyRegister},
	Reserve:                      {apply: (*State).applyReserve},
	Release:                      {apply: (*State).applyRelease},
	Clear:                        {apply: (*State).applyClear},
	Preempt:                      {apply: (*State).applyPreempt},
	PreemptAndAbort:              {apply: (*State).applyPreempt},
	RegisterAndIgnoreExistingKey: {keyless: true, apply: (*State).applyRegister},
	RegisterAndMove:              {apply: (*State).applyMove},
}

// Apply returns what the request makes of s, which stays as it is.
func (s *State) Apply(r *Request) (Change, *Refusal) {
	row := &actions[r.Action]
	if !row.keyless && (r.Key == 0 || s.KeyOf(r.From) != r.Key) {
		return Change{}, errConflict
	}
	return row.apply(s, r)
}
