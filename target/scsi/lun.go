package scsi

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/internal/refusals"
	"lunar/target/scsi/mode"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/thirdparty"
)

// LUConfig describes a logical unit. Zero values get defaults in
// NewLogicalUnit.
type LUConfig struct {
	Name          string          // the volume's name in the configuration, for logs
	Store         backstore.Store // owned by the logical unit from now on
	Device        string          // what its bytes are on, which other units may share; default: Name, of its own
	BlockSize     int             // logical block length in bytes: 512 (default) or 4096
	Vendor        string          // T10 vendor identification, 8 bytes
	Product       string          // product identification, 16 bytes
	Revision      string          // product revision level, 4 bytes
	Serial        string          // unit serial number (VPD 80h); default from Name
	NAA           []byte          // NAA identifier (VPD 83h), of 8 or 16 bytes; default a locally assigned one (3h...) from Serial
	Designators   []byte          // descriptors that name the unit in VPD 83h; default of Vendor, Product, Serial and NAA
	WriteThrough  bool            // see Settings
	ReadOnly      bool            // see Settings
	Shared        bool            // other servers present the same unit, and one of all serves it: see Hold
	PhysicalBlock int             // see Settings
	Removable     bool            // the medium can be ejected and loaded
	SanitizeRate  int64           // see Settings
	SoftThreshold int64           // see Settings

	Refusals *refusals.Counters // what is refused; nil: it is not counted
	Logger   *slog.Logger

	// Access is how the unit is reached through portal groups at first, by
	// tag: active/optimized where it does not say.
	Access map[uint16]PortAccess
	// ExplicitAccess: see Settings.
	ExplicitAccess bool
	// GroupNumbers: see Settings.
	GroupNumbers bool

	// Reservations are persistent reservations of before a loss of power.
	Reservations *reservation.State
	// SaveReservations makes them stable, whole or not at all. Calls come one
	// at a time and may block. Nil: APTPL is refused.
	SaveReservations func(*reservation.State) error

	// Sanitizing is a sanitize operation of before a restart that has not succeeded;
	// nil: there was none.
	Sanitizing *SanitizeNote
	// SaveSanitizing makes stable that there is such an operation; nil: there is none.
	// Calls come one at a time and may block. Nil: it is forgotten with the process.
	SaveSanitizing func(*SanitizeNote) error

	// Identifying is the identifying information that initiators have set, and
	// SaveIdentifying makes it stable, whole or not at all. Calls come one at a time
	// and may block. Nil: a restart forgets it.
	Identifying     Identifying
	SaveIdentifying func(Identifying) error

	// SaveHeritage, of a logical unit that is Shared, makes stable what the next server
	// is to go on with, in place of all other functions that save. Calls come one at a
	// time and may block. It fails with ErrBusy, ErrElsewhere or ErrTooLarge, which
	// initiators are told of, or others.
	SaveHeritage func(*Heritage) error
}

// Identifying is identifying information (SPC-4 clause 5.6): what initiators
// write down about a logical unit, for themselves and others.
type Identifying struct {
	Device []byte `json:"device,omitempty"` // peripheral device identifying information, of any bytes
	Text   []byte `json:"text,omitempty"`   // the same for people: UTF-8 that ends with NUL
}

// LogicalUnit is SAM-5's logical unit: one volume as all its initiators see
// it. Any event thread may execute commands on it at the same time.
type LogicalUnit struct {
	config     LUConfig
	store      backstore.Store
	traits     atomic.Pointer[traits] // replaced under mu
	blockShift uint
	protect    protect.Type // of the store's protection information

	// state is what the data path reads: replaced as a whole by writers,
	// who hold mu.
	state   atomic.Pointer[State]
	guard   extentGuard
	atomics atomicWrites
	tasks   taskSet
	clock   clock
	space   spaceWatch

	storeErrors [storeKinds]atomic.Uint64 // by backstore.Kind

	identifying  atomic.Pointer[Identifying] // replaced by registrar
	sanitizeRate atomic.Int64                // see Settings

	starts atomic.Uint32 // START STOP UNIT and loads

	// What is reserved for whom, and how the target ports lead here: replaced
	// as a whole under mu; what the data path needs of it are the nexuses'
	// restrictions. registrar alone replaces reservations.
	reservations atomic.Pointer[reservation.State]
	access       atomic.Pointer[accessTable]
	flux         flux
	transfers    transfers
	registrar    registrar
	reported     func(*Nexus) // hears that a unit attention was reported; nil: nobody does

	resizing sync.Mutex // one Resize at a time

	copies     thirdparty.Records
	copying    atomic.Int32 // moves of copies under way whose destination it is
	tokens     thirdparty.Tokens
	complaints complaints
	stability  stability
	inherited  bool // the store had dirty data when it came

	lastDeferred atomic.Pointer[deferredError]

	mu struct {
		sync.Mutex
		nexuses    map[*Nexus]struct{}
		departed   map[claimant]departed
		reserved   reservation.Nexus // who holds RESERVE; zero: nobody
		holding    bool              // see Hold
		holds      uint64            // how often that was called
		serves     bool              // between Succeed and Resign
		tenure     uint64            // how often serves has changed
		latest     Latest            // that has made reservations what they are
		doubt      bool              // who has asked for it may not know
		owed       []Owed            // replaced as a whole
		told       []Owed            // see forgetTold
		forgetting bool              // forgetTold is about to be called
		carrier    Carrier           // to the server that serves the unit; nil: this one does
		// registrants are who has proven to be behind the registrations of reservations.
		registrants map[registrant]any
	}
}

// spaceWatch tells initiators that the space for blocks that are not mapped yet
// runs out (SBC-3 clause 4.7.3.7): once when less than the threshold is left,
// and again only after there was more.
type spaceWatch struct {
	threshold atomic.Int64 // bytes
	stop      chan struct{}
	ended     sync.WaitGroup
	reached   bool
	known     atomic.Bool // the store can tell
}

// State is an immutable snapshot of a logical unit's changeable state.
type State struct {
	Blocks      uint64 // capacity in logical blocks
	mode.Values        // of the mode pages; WriteThrough is one of Settings
	Stopped     bool   // START STOP UNIT stopped the unit
	ReadOnly    bool   // nobody may write: the store cannot be written, or see Settings
	Ejected     bool   // START STOP UNIT ejected the medium
	Sanitize    *sanitizing
}

// State returns the current snapshot; do not change it.
func (lu *LogicalUnit) State() *State { return lu.state.Load() }

// Name returns the volume's name.
func (lu *LogicalUnit) Name() string { return lu.config.Name }

// Shared reports whether other servers present the logical unit, too.
func (lu *LogicalUnit) Shared() bool { return lu.config.Shared }

// Device names what the volume's bytes are on.
func (lu *LogicalUnit) Device() string { return lu.config.Device }

// Store returns the logical unit's store, for opening and closing lanes.
func (lu *LogicalUnit) Store() backstore.Store { return lu.store }

// update replaces the state by a changed copy.
func (lu *LogicalUnit) update(change func(*State)) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	s := *lu.state.Load()
	change(&s)
	lu.state.Store(&s)
}
