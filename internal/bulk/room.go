package bulk

import (
	"fmt"

	"lunar/internal/arena"
	"lunar/internal/bytesize"
	"lunar/internal/pipeline/rftp"
)

// blockMemory is what a move, a checksum or a copy has in memory for each block at most: the sums of
// either side and those that are known, or the whole journal that is being read.
const blockMemory = 4 * rftp.SumSize

// CheckRoom says with numbers why the digests of a volume of size bytes do not fit into half of
// the memory that is free now; else nil. Who does without would end the server: a volume may be
// as large as it likes, where nothing is stored in it.
func CheckRoom(size int64) error {
	limits, err := arena.ReadLimits("")
	if err != nil {
		return err
	}
	if need := Blocks(size) * blockMemory; need > limits.Available/2 {
		return fmt.Errorf("found %s of memory for its digests, expected at most half of the %s that are free", bytesize.Text(need), bytesize.Text(limits.Available))
	}
	return nil
}
