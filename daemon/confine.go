package daemon

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"lunar/conf"
	"lunar/daemon/machine"
	"lunar/internal/bytesize"
	"lunar/internal/confine"
	"lunar/internal/locked"
)

// enforcing is what sandbox: enforce does; tests have it end the process.
var enforcing = confine.Enforce

// confineProcess takes away the rights that a started server does not need. Where the
// system refuses that, it logs so and goes on.
func confineProcess(cfg *conf.Config, log *slog.Logger) {
	tellUnlocked(nil, log)
	if err := confine.CoreDumps(cfg.Server.CoreDumps); err != nil {
		log.Warn("a crash may leave a core dump with keys and data", "err", err)
	}
	mode, on := map[string]confine.Mode{conf.SandboxEnforce: enforcing, conf.SandboxLog: confine.Log}[cfg.Server.Sandbox]
	if !on {
		return
	}
	if err := confine.Filter(mode); err != nil {
		log.Warn("system calls are not filtered (server.sandbox)", "err", err)
	}
}

// unlockedWarnings tell of keys that could not be locked in memory after an earlier
// failure; nil: at any time.
func unlockedWarnings(earlier error) []string {
	err := locked.Failure()
	if err == nil || errors.Is(err, earlier) {
		return nil
	}
	return []string{"keys of volumes are not locked in memory, and may be swapped out: " + err.Error()}
}

// tellUnlocked logs them as well.
func tellUnlocked(earlier error, log *slog.Logger) []string {
	warnings := unlockedWarnings(earlier)
	for _, w := range warnings {
		log.Warn(w)
	}
	return warnings
}

// leastHeap is what Go's heap may have at least, however little is left.
const leastHeap = 128 << 20

// limitMemory has the garbage collector keep to its part of the memory. GOMEMLIMIT in
// the environment, which the runtime has read, is left in force by auto.
func limitMemory(cfg *conf.Config, threads int, log *slog.Logger) {
	limit := int64(cfg.Server.MemoryLimit)
	switch limit {
	case int64(conf.NoMemoryLimit):
		limit = math.MaxInt64
	case 0:
		if os.Getenv("GOMEMLIMIT") != "" {
			return
		}
		usable, err := machine.UsableMemory("/")
		if err != nil {
			log.Warn("server.memory-limit: it stays as it is", "err", err)
			return
		}
		limit = heapShare(cfg, threads, usable)
	}
	debug.SetMemoryLimit(limit)
	log.Debug("limit of Go's memory", "bytes", bytesize.Text(limit))
}

// heapShare is what the cache, the buffers and ram volumes leave of the memory that the
// process may use, less a tenth of that for the kernel's part of it.
func heapShare(cfg *conf.Config, threads int, usable int64) int64 {
	taken := int64(cfg.Cache.Size.Of(conf.Size(usable))) + int64(cfg.Server.BuffersPerThread)*int64(threads)
	for i := range cfg.Volumes {
		if v := &cfg.Volumes[i]; v.Type == conf.RAMVolume {
			taken += int64(v.Size)
		} else {
			taken += int64(v.Held)
		}
	}
	left := usable - taken
	return max(left-left/10, leastHeap)
}
