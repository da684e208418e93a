package tier

import "lunar/internal/cold"

// copyOut gives a reader what it wants of a block that it has pinned.
func (p *partition) copyOut(dst []byte, slot, off uint32) { copy(dst, p.bytes(slot)[off:]) }

// copyIn puts a writer's data into a block that it has claimed.
func (p *partition) copyIn(slot, off uint32, src []byte) { cold.Copy(p.bytes(slot)[off:], src) }
