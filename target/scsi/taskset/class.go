package taskset

import "math"

// Class says what a command does, as far as others can tell.
type Class uint8

// The classes.
const (
	Free  Class = iota // what it tells does not depend on any other: never waits for others
	Query              // tells of the logical unit
	Read               // reads the extent
	Write              // changes the extent
	Alter              // changes more, or what is not known
)

// Extent is a range of logical blocks.
type Extent struct{ First, Count uint64 }

// Whole is the extent of commands that do not tell theirs.
var Whole = Extent{0, math.MaxUint64}

func (e Extent) overlaps(o Extent) bool {
	return e.holds(o.First) && o.Count > 0 || o.holds(e.First) && e.Count > 0
}

func (e Extent) holds(block uint64) bool { return block >= e.First && block-e.First < e.Count }

// interference says when two commands must not run at the same time, or in
// another order.
type interference uint8

const (
	never   interference = iota
	overlap              // if their extents overlap
	always
)

// interferences is the matrix of classes. Two writes always interfere: which of
// them a power cut leaves tells their order.
var interferences = [...][Alter + 1]interference{
	Free:  {never, never, never, never, never},
	Query: {never, never, never, never, always},
	Read:  {never, never, never, overlap, always},
	Write: {never, never, overlap, always, always},
	Alter: {never, always, always, always, always},
}

func (c *Command) interferes(with *Command) bool {
	switch interferences[c.Class][with.Class] {
	case always:
		return true
	case overlap:
		return c.Extent.overlaps(with.Extent)
	}
	return false
}
