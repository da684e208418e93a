package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"lunar/conf"
	"lunar/internal/arena"
	"lunar/internal/confine"
	"lunar/internal/locked"
)

// enforcing is what sandbox: enforce does; tests have it end the process.
var enforcing = confine.Enforce

// alone says that the process is this command's and serves nothing else, so that it may
// be confined for good: main sets it, and tests in one process do not.
var alone bool

// confineServer takes from a server that has started what it does not need. What the
// system refuses of that is told and done without.
func confineServer(d *daemon, cfg *conf.Config, log *slog.Logger) {
	limitMemory(cfg, len(d.Loops()), log)
	if !alone {
		return
	}
	if err := locked.Failure(); err != nil {
		log.Warn("keys of volumes are not locked in memory, and may be swapped out", "err", err)
	}
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
		usable, err := usableMemory("/")
		if err != nil {
			log.Warn("server.memory-limit: it stays as it is", "err", err)
			return
		}
		limit = heapShare(cfg, threads, usable)
	}
	debug.SetMemoryLimit(limit)
	log.Debug("limit of Go's memory", "bytes", arena.Bytes(limit))
}

// heapShare is what the cache, the buffers and ram volumes leave of the memory that the
// process may use, less a tenth of that for the kernel's part of it.
func heapShare(cfg *conf.Config, threads int, usable int64) int64 {
	taken := int64(cfg.Cache.Size.Of(conf.Size(usable))) + int64(cfg.Server.BuffersPerThread)*int64(threads)
	for i := range cfg.Volumes {
		if v := &cfg.Volumes[i]; v.Type == conf.RAMVolume {
			taken += int64(v.Size)
		}
	}
	left := usable - taken
	return max(left-left/10, leastHeap)
}
