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
	list := &mode.List{Data: c.List(), Ten: ten}
	if lu.config.SaveHeritage != nil {
		c.register(func() outcome { return lu.saveModes(c.Nexus, list) })
		return
	}
	lu.mu.Lock()
	end := lu.storeModes(c.Nexus, list)
	lu.mu.Unlock()
	end(c)
}

// saveModes is storeModes of a logical unit that several servers present: the registrar's
// part.
func (lu *LogicalUnit) saveModes(n *Nexus, list *mode.List) (end outcome) {
	after, refused := lu.modeParameters(n, lu.State()).Select(list)
	if refused != nil {
		return failure(refused)
	}
	err := lu.lasting(nil, func(h *Heritage) { h.Modes = &after }, func() { end = lu.storeModes(n, list) })
	if err != nil {
		return lu.unsaved("mode pages cannot be saved: they stay as they were", err)
	}
	return end
}

// storeModes stores list in the logical unit's state, as one step for all
// initiators. The caller holds mu.
func (lu *LogicalUnit) storeModes(n *Nexus, list *mode.List) outcome {
	before := lu.state.Load()
	after, refused := lu.modeParameters(n, before).Select(list)
	if refused != nil {
		return failure(refused)
	}
	next := *before
	next.Values = after
	lu.state.Store(&next)
	if before.Values != after {
		lu.attention(sense.ASCModeParametersChanged, n)
	}
	if before.WriteCache && !after.WriteCache {
		return func(c *Command) { c.flushThen((*Command).Good) }
	}
	return (*Command).Good
}
