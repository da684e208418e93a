package volumes

import (
	"golang.org/x/sys/unix"

	"lunar/control"
)

// Space is what the file of a volume may still get of its file system, as it was measured
// last; nil: that is not known.
func (h *health) Space(volume string) *control.Space {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of(volume).space
}

// Measure looks at the file system of a volume's file, unless somebody does. It may block
// as long as the file system does.
func (h *health) Measure(volume, path string) {
	h.mu.Lock()
	w := h.of(volume)
	busy := w.measuring
	w.measuring = true
	h.mu.Unlock()
	if busy {
		return
	}
	found := spaceOf(path)
	h.mu.Lock()
	defer h.mu.Unlock()
	w.measuring, w.space = false, found
}

// Shares notes how much of a volume's file its snapshots or clones have too: writing there
// takes space.
func (h *health) Shares(volume string, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of(volume).shared = bytes
}

// spaceOf is nil if the file system does not tell.
func spaceOf(path string) *control.Space {
	var fs unix.Statfs_t
	var file unix.Stat_t
	if unix.Statfs(path, &fs) != nil || unix.Stat(path, &file) != nil {
		return nil
	}
	return &control.Space{
		Free: int64(fs.Bavail) * fs.Bsize, Size: int64(fs.Blocks) * fs.Bsize,
		Unallocated: max(0, file.Size-file.Blocks*512),
	}
}
