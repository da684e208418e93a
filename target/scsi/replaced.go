package scsi

import (
	"math"

	"lunar/target/scsi/sense"
)

// Replaced tells that the whole medium is another one now, such as an earlier state of it:
// tokens for its data are revoked, and each initiator hears that the medium may have changed
// (SBC-3 clause 4.10). No operation of the store may be under way. Any goroutine may call it.
func (lu *LogicalUnit) Replaced() {
	lu.tokens.Changing(0, math.MaxInt64)
	lu.Attention(sense.ASCMediumMayHaveChanged, nil)
}
