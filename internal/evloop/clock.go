package evloop

import "time"

var epoch = time.Now()

// Monotonic returns nanoseconds on a clock that never steps and that all loops
// of the process share. Its zero is the start of the process.
func Monotonic() int64 { return int64(time.Since(epoch)) }
