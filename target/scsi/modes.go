package scsi

import (
	"encoding/binary"

	"lunar/target/scsi/mode"
	"lunar/target/scsi/sense"
)

// modeParameters returns what mode data for n in state is made from.
func (lu *LogicalUnit) modeParameters(n *Nexus, state *State) *mode.Parameters {
	defaults := lu.defaultState(state)
	return &mode.Parameters{
		BlockSize: lu.config.BlockSize, Blocks: state.Blocks, Values: &state.Values, Defaults: &defaults.Values,
		Protected: lu.protection(n, state) != nil,
		Threshold: lu.thresholdSets(),
	}
}

func runModeSense6(c *Command) { c.modeSense(uint32(c.CDB[4])) }

func runModeSense10(c *Command) { c.modeSense(uint32(binary.BigEndian.Uint16(c.CDB[7:]))) }

func (c *Command) modeSense(allocation uint32) {
	lu := c.Nexus.LU
	data, s := lu.modeParameters(c.Nexus, lu.State()).Sense(mode.ParseSense(c.CDB[:]))
	c.answer(data, allocation, s)
}

func runModeSelect6(c *Command)  { c.modeSelect(false) }
func runModeSelect10(c *Command) { c.modeSelect(true) }

// modeSelect tells the other initiators of a change, and empties the volatile
// cache when WCE goes from one to zero (SBC-3 clause 6.5).
func (c *Command) modeSelect(ten bool) {
	if s := mode.CheckSelect(c.CDB[:]); s != nil {
		c.Fail(s)
		return
	}
	lu := c.Nexus.LU
	if lu.state.Load().ReadOnly {
		c.Fail(sense.WriteProtected)
		return
	}
	before, after, s := lu.storeModes(c.Nexus, &mode.List{Data: c.List(), Ten: ten})
	if s != nil {
		c.Fail(s)
		return
	}
	if before != after {
		lu.Attention(sense.ASCModeParametersChanged, c.Nexus)
	}
	if before.WriteCache && !after.WriteCache {
		c.flushThen((*Command).Good)
		return
	}
	c.Good()
}

// storeModes stores list in the logical unit's state, as one step for all
// initiators.
func (lu *LogicalUnit) storeModes(n *Nexus, list *mode.List) (before, after mode.Values, refused *sense.Data) {
	lu.update(func(s *State) {
		before = s.Values
		after, refused = lu.modeParameters(n, s).Select(list)
		if refused == nil {
			s.Values = after
		}
	})
	return before, after, refused
}
