package scsi

import (
	"fmt"
	"maps"

	"lunar/target/scsi/sense"
)

// AccessState is an asymmetric access state of a logical unit by a target port
// group (SPC-4 clause 5.15.2.4), with the codes of REPORT TARGET PORT GROUPS.
type AccessState uint8

// The access states.
const (
	ActiveOptimized    AccessState = 0x0
	ActiveNonOptimized AccessState = 0x1
	Standby            AccessState = 0x2
	Unavailable        AccessState = 0x3
	Offline            AccessState = 0xe
	Transitioning      AccessState = 0xf
)

// accessStates is the table of access states.
var accessStates = []struct {
	state     AccessState
	name      string
	restricts restrictions
	sense     *sense.Data // of commands that do not run in it
	// ask: SET TARGET PORT GROUPS may ask for it.
	ask bool
	// support is its bit in REPORT TARGET PORT GROUPS.
	support byte
}{
	{ActiveOptimized, "optimized", 0, nil, true, 0x01},
	{ActiveNonOptimized, "non-optimized", 0, nil, true, 0x02},
	{Standby, "standby", restrictStandby, sense.InStandby, true, 0x04},
	{Unavailable, "unavailable", restrictUnavailable, sense.InUnavailable, true, 0x08},
	{Offline, "offline", restrictOffline, sense.InOffline, true, 0x40},
	{Transitioning, "transitioning", restrictTransition, sense.InTransition, false, 0x80},
}

// accessRestrictions are the restrictions of each state.
var accessRestrictions = func() (b [16]restrictions) {
	for _, row := range accessStates {
		b[row.state] = row.restricts
	}
	return b
}()

// supportedAccess are the bits of all states.
var supportedAccess = func() (bits byte) {
	for _, row := range accessStates {
		bits |= row.support
	}
	return bits
}()

// notAccessible returns the sense data of an access state among the restrictions, nil
// if there is none.
func notAccessible(b restrictions) *sense.Data {
	for _, row := range accessStates {
		if row.restricts&b != 0 {
			return row.sense
		}
	}
	return nil
}

// String is the state's name in the configuration.
func (s AccessState) String() string {
	for _, row := range accessStates {
		if row.state == s {
			return row.name
		}
	}
	return fmt.Sprintf("%#x", uint8(s))
}

// AccessStateNames are the names that ParseAccessState takes.
func AccessStateNames() []string {
	var names []string
	for _, row := range accessStates {
		names = append(names, row.name)
	}
	return names
}

// ParseAccessState returns the state of a name.
func ParseAccessState(name string) (AccessState, bool) {
	for _, row := range accessStates {
		if row.name == name {
			return row.state, true
		}
	}
	return 0, false
}

// PortAccess is how a logical unit is reached through a target port group.
type PortAccess struct {
	State     AccessState
	Preferred bool
}

// Why an access state is what it is: STATUS CODE of REPORT TARGET PORT GROUPS.
const (
	accessExplicit = 0x01 // SET TARGET PORT GROUPS
	accessImplicit = 0x02 // the administrator
)

// groupAccess is the access through one group.
type groupAccess struct {
	PortAccess
	cause byte
}

// accessTable is an immutable snapshot: the groups by tag that differ from EveryTag's, or
// where that is not in it from active/optimized, not preferred.
type accessTable map[uint16]groupAccess

func initialAccess(from map[uint16]PortAccess) *accessTable {
	table := accessTable{}
	for tag, access := range from {
		table[tag] = groupAccess{PortAccess: access}
	}
	return &table
}

// state returns the access state of a target port.
func (t *accessTable) state(tag uint16) AccessState { return t.of(tag).State }

func (t *accessTable) of(tag uint16) groupAccess {
	if g, ok := (*t)[tag]; ok {
		return g
	}
	return (*t)[EveryTag]
}

// Access returns how the logical unit is reached through the portal group.
func (lu *LogicalUnit) Access(tag uint16) PortAccess { return lu.access.Load().of(tag).PortAccess }

// SetAccess changes how the logical unit is reached through portal groups, and
// tells all nexuses if that is a change of state (SPC-4 clause 5.15.2.5).
// Commands that are under way go on. Any goroutine may call it.
func (lu *LogicalUnit) SetAccess(change map[uint16]PortAccess) {
	lu.changeAccess(func(table accessTable) {
		for tag, access := range change {
			cause := table[tag].cause
			if table[tag].State != access.State {
				cause = accessImplicit
			}
			table[tag] = groupAccess{access, cause}
		}
	}, nil)
}

// changeAccess replaces the table and tells all nexuses but except.
func (lu *LogicalUnit) changeAccess(change func(accessTable), except *Nexus) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	old := lu.access.Load()
	table := maps.Clone(*old)
	change(table)
	lu.access.Store(&table)
	lu.restrictAll()
	lu.tellAccess(old, &table, except)
}

// tellAccess tells all nexuses but except of a change of state. The caller holds mu.
func (lu *LogicalUnit) tellAccess(old, table *accessTable, except *Nexus) {
	for _, tags := range []accessTable{*old, *table} {
		for tag := range tags {
			if table.state(tag) != old.state(tag) {
				lu.attention(sense.ASCAsymmetricAccessStateChanged, except)
				return
			}
		}
	}
}
