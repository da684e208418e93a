package volumes

import (
	"fmt"

	"lunar/conf"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
)

// cacheSize is what the configuration's cache comes to on this machine, in
// bytes.
type cacheSize struct{ perNode, total, dirtyLimit int64 }

// minCache is the smallest cache, as in the configuration.
const minCache = 16 << 20

// cacheSizeOf divides the cache among nodes. usable is the memory that the
// process may use.
func cacheSizeOf(cfg *conf.Config, nodes int, usable int64) (s cacheSize, err error) {
	c := &cfg.Cache
	if s.perNode = int64(c.Size.Of(conf.Size(usable))); !c.PerNode {
		s.perNode /= int64(nodes)
	}
	s.total = s.perNode * int64(nodes)
	s.dirtyLimit = int64(c.DirtyLimit.Of(conf.Size(s.total)))
	switch {
	case s.total > usable:
		return s, fmt.Errorf("cache.size: found %s on %s, %s together, expected less than the %s of memory that this process may use",
			bytesize.Text(s.perNode), cli.Counted(nodes, "NUMA node"), bytesize.Text(s.total), bytesize.Text(usable))
	case s.total < minCache:
		return s, fmt.Errorf("cache.size: found %s, which is %s of the %s of memory that this process may use, expected at least %s",
			c.Size, bytesize.Text(s.total), bytesize.Text(usable), bytesize.Text(int64(minCache)))
	}
	return s, cfg.CheckCache(conf.Size(s.total))
}
