package scsi

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/bits"
	"time"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/target/scsi/mode"
	"lunar/target/scsi/reservation"
)

// DefaultVendor is the T10 vendor identification where none is configured.
const DefaultVendor = "LUNAR"

// NewLogicalUnit makes a logical unit of an opened store, which it owns from
// now on. It fails when the store cannot hold blocks of the configured size;
// the store is still the caller's then.
func NewLogicalUnit(config LUConfig) (*LogicalUnit, error) {
	lu, info := &LogicalUnit{config: config, store: config.Store}, config.Store.Info()
	lu.config.setDefaults()
	if err := lu.checkSize(info); err != nil {
		return nil, fmt.Errorf("volume %q: %w", config.Name, err)
	}
	lu.clock.began = time.Now()
	lu.blockShift = uint(bits.TrailingZeros(uint(lu.config.BlockSize)))
	lu.protect = protectionOf(config.Store)
	lu.traits.Store(lu.findTraits(config.settings(), info))
	lu.mu.nexuses = make(map[*Nexus]struct{})
	lu.access.Store(initialAccess(config.Access))
	lu.reservations.Store(config.Reservations)
	if config.Reservations == nil {
		lu.reservations.Store(new(reservation.State))
	}
	if s, ok := config.Store.(backstore.WriteBack); ok {
		lu.inherited = s.Dirty() > 0
	}
	state := lu.defaultState(&State{
		Values: mode.Values{WriteThrough: config.WriteThrough}, ReadOnly: config.ReadOnly || info.ReadOnly,
	})
	state.Blocks = uint64(info.Size) >> lu.blockShift
	state.Sanitize = interrupted(config.Sanitizing)
	lu.state.Store(state)
	lu.identifying.Store(&config.Identifying)
	lu.sanitizeRate.Store(config.SanitizeRate)
	lu.watchSpace(config.SoftThreshold)
	if config.SaveHeritage != nil {
		lu.reported = lu.forgetReported
	}
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
	if config.NAA == nil {
		config.NAA = locallyAssigned(config.Serial)
	}
	if config.Designators == nil {
		config.Designators = config.unitDesignators()
	}
	setDefault(&config.Logger, slog.Default())
}

// locallyAssigned returns the NAA 3h identifier (SPC-4 clause 7.8.6.6.4) of a
// serial number.
func locallyAssigned(serial string) []byte {
	h := fnv.New64a()
	h.Write([]byte(serial))
	return binary.BigEndian.AppendUint64(nil, h.Sum64()>>4|3<<60)
}

// settings are those that the configuration has.
func (config *LUConfig) settings() Settings {
	return Settings{
		WriteThrough: config.WriteThrough, ReadOnly: config.ReadOnly, SanitizeRate: config.SanitizeRate, SoftThreshold: config.SoftThreshold,
		PhysicalBlock: config.PhysicalBlock, ExplicitAccess: config.ExplicitAccess, GroupNumbers: config.GroupNumbers,
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

// defaultState returns the state before any MODE SELECT, with the settings of s.
// Its Blocks are not set: they are no mode parameter.
func (lu *LogicalUnit) defaultState(s *State) *State {
	return &State{
		Values: mode.Values{
			WriteCache: lu.traits.Load().info.VolatileCache && !s.WriteThrough, OwnTags: lu.protect != protect.None,
			WriteThrough: s.WriteThrough,
		},
		ReadOnly: s.ReadOnly,
	}
}

// Close ends what the logical unit does by itself and closes its store, whose lanes
// are closed. After an error it may be called again.
func (lu *LogicalUnit) Close() error {
	lu.stopWatching()
	return lu.store.Close()
}

// Keeps reports whether CloseDirty without discard loses nothing that the cache has.
func (lu *LogicalUnit) Keeps() bool {
	s, ok := lu.store.(backstore.DirtyCloser)
	return ok && s.Keeps()
}

// CloseDirty is Close although the medium does not take what was acknowledged: that is
// kept for when the volume is opened again, or with discard given up. dirty is how many
// bytes the cache had of it. After an error it may be called again.
func (lu *LogicalUnit) CloseDirty(discard bool) (dirty int64, err error) {
	lu.stopWatching()
	if s, ok := lu.store.(backstore.DirtyCloser); ok {
		return s.CloseDirty(discard)
	}
	return 0, lu.store.Close()
}
