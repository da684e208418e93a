package scsi

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/internal/refusals"
	"lunar/target/scsi/reservation"
)

// DefaultVendor is the T10 vendor identification where none is configured.
const DefaultVendor = "LUNAR"

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
	NAA           uint64          // NAA locally assigned (3h...) identifier (VPD 83h); default from Serial
	WriteThrough  bool            // see Settings
	ReadOnly      bool            // see Settings
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
}

// LogicalUnit is SAM-5's logical unit: one volume as all its initiators see
// it. Any event thread may execute commands on it at the same time.
type LogicalUnit struct {
	config     LUConfig
	store      backstore.Store
	found      atomic.Pointer[traits] // replaced under mu
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

	identifying  atomic.Pointer[Identifying] // replaced by registrar
	sanitizeRate atomic.Int64                // see Settings

	starts atomic.Uint32 // START STOP UNIT and loads

	// What is reserved for whom, and how the target ports lead here: replaced
	// as a whole under mu; what the data path needs of it are the nexuses'
	// bars. registrar alone replaces reservations.
	reservations atomic.Pointer[reservation.State]
	access       atomic.Pointer[accessTable]
	registrar    registrar

	resizing sync.Mutex // one Resize at a time

	copies      copyRecords
	copying     atomic.Int32 // moves of copies under way whose destination it is
	designators []byte       // of itself, as of VPD page 83h
	tokens      rodTokens
	complaints  complaints
	stability   stability
	inherited   bool // the store had dirty data when it came

	lastDeferred atomic.Pointer[deferredError]

	mu struct {
		sync.Mutex
		nexuses  map[*Nexus]struct{}
		departed map[claimant]departed
		reserved reservation.Nexus // who holds RESERVE; zero: nobody
		// registrants are who has proven to be behind the registrations of reservations.
		registrants map[registrant]any
	}
}

// State is an immutable snapshot of a logical unit's changeable state.
type State struct {
	Blocks          uint64 // capacity in logical blocks
	WriteCache      bool   // WCE of the caching mode page: writes may stay volatile until flushed
	SoftProtect     bool   // SWP of the control mode page
	DescriptorSense bool   // D_SENSE of the control mode page
	Stopped         bool   // START STOP UNIT stopped the unit
	OwnTags         bool   // ATO of the control mode page: application tags are the initiators'
	WriteThrough    bool   // WCE stays zero; see Settings
	ReadOnly        bool   // nobody may write: the store cannot be written, or see Settings
	Ejected         bool   // START STOP UNIT ejected the medium
	Sanitize        *sanitizing
}

// NewLogicalUnit makes a logical unit of an opened store, which it owns from
// now on. It fails when the store cannot hold blocks of the configured size;
// the store is still the caller's then.
func NewLogicalUnit(config LUConfig) (*LogicalUnit, error) {
	lu, info := &LogicalUnit{config: config, store: config.Store}, config.Store.Info()
	lu.config.setDefaults()
	if err := lu.checkSize(info); err != nil {
		return nil, fmt.Errorf("volume %q: %w", config.Name, err)
	}
	lu.designators = unitDesignators(&lu.config)
	lu.clock.began = time.Now()
	lu.blockShift = uint(bits.TrailingZeros(uint(lu.config.BlockSize)))
	lu.protect = protectionOf(config.Store)
	lu.found.Store(lu.findTraits(config.settings(), info))
	lu.mu.nexuses = make(map[*Nexus]struct{})
	lu.access.Store(initialAccess(config.Access))
	lu.reservations.Store(config.Reservations)
	if config.Reservations == nil {
		lu.reservations.Store(new(reservation.State))
	}
	if s, ok := config.Store.(backstore.WriteBack); ok {
		lu.inherited = s.Dirty() > 0
	}
	state := lu.defaultState(&State{WriteThrough: config.WriteThrough, ReadOnly: config.ReadOnly || info.ReadOnly})
	state.Blocks = uint64(info.Size) >> lu.blockShift
	state.Sanitize = interrupted(config.Sanitizing)
	lu.state.Store(state)
	lu.identifying.Store(&config.Identifying)
	lu.sanitizeRate.Store(config.SanitizeRate)
	lu.watchSpace(config.SoftThreshold)
	return lu, nil
}

// setDefaults fills in what the configuration leaves open. Serial and NAA
// follow from the name, so that a volume keeps its identity over restarts.
func (config *LUConfig) setDefaults() {
	setDefault(&config.BlockSize, 512)
	setDefault(&config.Device, config.Name)
	setDefault(&config.Vendor, DefaultVendor)
	setDefault(&config.Product, "VIRTUAL DISK")
	setDefault(&config.Revision, "0001")
	setDefault(&config.Serial, config.Name)
	setDefault(&config.NAA, locallyAssigned(config.Serial))
	setDefault(&config.Logger, slog.Default())
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// locallyAssigned returns the NAA 3h identifier (SPC-4 clause 7.8.6.6.4) of a
// serial number.
func locallyAssigned(serial string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(serial))
	return h.Sum64()>>4 | 3<<60
}

// settings are those that the configuration has.
func (config *LUConfig) settings() Settings {
	return Settings{
		WriteThrough: config.WriteThrough, ReadOnly: config.ReadOnly, SanitizeRate: config.SanitizeRate, SoftThreshold: config.SoftThreshold,
		PhysicalBlock: config.PhysicalBlock, ExplicitAccess: config.ExplicitAccess,
	}
}

// checkSize holds the block size against what the store says of itself.
func (lu *LogicalUnit) checkSize(info backstore.Info) error {
	size := lu.config.BlockSize
	if size != 512 && size != 4096 {
		return fmt.Errorf("block size %d: expected 512 or 4096", size)
	}
	if err := lu.checkUnit(info); err != nil {
		return err
	}
	if info.Size < int64(size) {
		return fmt.Errorf("%s has %d bytes: expected at least one block of %d", info.Describe, info.Size, size)
	}
	if rest := info.Size % int64(size); rest != 0 {
		lu.config.Logger.Warn("the end of the backing store is not used: it is no whole block",
			"volume", lu.config.Name, "bytes", rest, "block size", size)
	}
	return nil
}

func (lu *LogicalUnit) checkUnit(info backstore.Info) error {
	if size, unit := lu.config.BlockSize, info.BlockSize; unit > 1 && size%unit != 0 {
		return fmt.Errorf("block size %d: expected a multiple of %d, the smallest unit that %s can write", size, unit, info.Describe)
	}
	return nil
}

// State returns the current snapshot; do not change it.
func (lu *LogicalUnit) State() *State { return lu.state.Load() }

// Name returns the volume's name.
func (lu *LogicalUnit) Name() string { return lu.config.Name }

// Device names what the volume's bytes are on.
func (lu *LogicalUnit) Device() string { return lu.config.Device }

// Store returns the logical unit's store, for opening and closing lanes.
func (lu *LogicalUnit) Store() backstore.Store { return lu.store }

// Close ends what the logical unit does by itself and closes its store, whose lanes
// are closed. After an error it may be called again.
func (lu *LogicalUnit) Close() error {
	lu.stopWatching()
	return lu.store.Close()
}

// Keeps reports whether Abandon without discard loses nothing that the cache has.
func (lu *LogicalUnit) Keeps() bool {
	s, ok := lu.store.(backstore.Abandoner)
	return ok && s.Keeps()
}

// Abandon is Close although the medium does not take what was acknowledged: that is
// kept for when the volume is opened again, or with discard given up. dirty is how many
// bytes the cache had of it. After an error it may be called again.
func (lu *LogicalUnit) Abandon(discard bool) (dirty int64, err error) {
	lu.stopWatching()
	if s, ok := lu.store.(backstore.Abandoner); ok {
		return s.Abandon(discard)
	}
	return 0, lu.store.Close()
}

// update replaces the state by a changed copy.
func (lu *LogicalUnit) update(change func(*State)) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	s := *lu.state.Load()
	change(&s)
	lu.state.Store(&s)
}

// ResetState returns what commands can change to its defaults, as a logical
// unit reset does (SAM-5 clause 6.3.3), and ends RESERVE and any ACA condition; the capacity,
// persistent reservations, access states, the medium where it is and a sanitize
// operation stay.
func (lu *LogicalUnit) ResetState() {
	lu.endReserve()
	lu.ClearACA(nil)
	lu.update(func(s *State) {
		before := *s
		*s = *lu.defaultState(s)
		s.Blocks, s.Ejected, s.Sanitize = before.Blocks, before.Ejected, before.Sanitize
		lu.allowRemoval()
	})
}
