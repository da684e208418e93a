package scsi

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"lunar/backstore"
)

// LUConfig describes a logical unit. Zero values get defaults in
// NewLogicalUnit.
type LUConfig struct {
	Name         string          // the volume's name in the configuration, for logs
	Store        backstore.Store // owned by the logical unit from now on
	BlockSize    int             // logical block length in bytes: 512 or 4096
	Vendor       string          // T10 vendor identification, 8 bytes
	Product      string          // product identification, 16 bytes
	Revision     string          // product revision level, 4 bytes
	Serial       string          // unit serial number (VPD 80h); default from Name
	NAA          uint64          // NAA locally assigned (3h...) identifier (VPD 83h); default from Serial
	WriteThrough bool            // every write is stable before it is acknowledged (WCE=0, not changeable)
	ReadOnly     bool            // write protected for everyone
	Logger       *slog.Logger
}

// LogicalUnit is SAM-5's logical unit: one volume as all its initiators see
// it. Any event thread may execute commands on it at the same time.
type LogicalUnit struct {
	config     LUConfig
	store      backstore.Store
	blockShift uint

	// state is what the data path reads: replaced as a whole by writers,
	// who hold mu.
	state atomic.Pointer[State]
	guard extentGuard

	mu struct {
		sync.Mutex
		nexuses map[*Nexus]struct{}
	}
}

// State is an immutable snapshot of a logical unit's changeable state.
type State struct {
	Blocks          uint64 // capacity in logical blocks
	WriteCache      bool   // WCE of the caching mode page: writes may stay volatile until flushed
	SoftProtect     bool   // SWP of the control mode page
	DescriptorSense bool   // D_SENSE of the control mode page
	Stopped         bool   // START STOP UNIT stopped the unit
}

// State returns the current snapshot; do not change it.
func (lu *LogicalUnit) State() *State { return lu.state.Load() }

// Name returns the volume's name.
func (lu *LogicalUnit) Name() string { return lu.config.Name }

// update replaces the state by a changed copy.
func (lu *LogicalUnit) update(change func(*State)) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	s := *lu.state.Load()
	change(&s)
	lu.state.Store(&s)
}
