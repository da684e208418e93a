package conf

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// DefaultSegment is the directory of the cache's shared memory where the
// configuration needs one and names none: a tmpfs on every distribution.
const DefaultSegment = "/dev/shm/lunar"

// privateMemory is the word for no segment.
const privateMemory = "none"

var defaultCache = Cache{Huge: "auto", DirtyLimit: Amount{Percent: 50}}

func (d *decoder) cache(n node, c *Cache) {
	d.mapping(n, fields{
		"size":              cacheSize(c),
		"block-size":        cacheBlock(&c.BlockSize),
		"huge":              oneOf(&c.Huge, "auto", "off", "require"),
		"segment":           segment(&c.Segment),
		"checksum":          boolean(&c.Checksum),
		"dirty-limit":       amount(&c.DirtyLimit, MiB, TiB, " of the cache"),
		"forward-threshold": forwardThreshold(&c.ForwardThreshold),
	})
	if !n.missing() && !d.has(n, "size") {
		d.warn(n.path, "no size", "cache.size; without it there is no cache")
	}
}

// cacheSize accepts the size of the whole, or that of each node.
func cacheSize(c *Cache) setter {
	return func(d *decoder, n node) {
		if _, mapping := n.ast.(ast.MapNode); !mapping {
			amount(&c.Size, 16*MiB, TiB, " of the memory, or {per-node: 2GiB}")(d, n)
			return
		}
		c.PerNode = true
		if d.mapping(n, fields{"per-node": size(&c.Size.Bytes, 1, 16*MiB, TiB)}) {
			d.require(n, "per-node", "the size on each NUMA node, such as 2GiB")
		}
	}
}

// cacheBlock accepts auto or a power of two.
func cacheBlock(to *Size) setter {
	return parsed(to, fmt.Sprintf("auto, or a power of two from %v to %v", 4*KiB, MiB), func(s string) (Size, bool) {
		if s == "auto" {
			return 0, true
		}
		return parsePowerOfTwo(s, 4*KiB, MiB)
	})
}

// segment accepts a directory or none.
func segment(to *string) setter {
	return parsed(to, "none, or the absolute path of a directory on tmpfs or hugetlbfs such as "+DefaultSegment, func(s string) (string, bool) {
		if s == privateMemory {
			return "", true
		}
		return filepath.Clean(s), validPath(s) && filepath.IsAbs(s)
	})
}

// forwardThreshold accepts auto, never or a size.
func forwardThreshold(to *Size) setter {
	const low, high = 4 * KiB, 16 * MiB
	return parsed(to, "auto, never, or a size from 4KiB to 16MiB such as 64KiB", func(s string) (Size, bool) {
		switch s {
		case "auto":
			return 0, true
		case "never":
			return NeverForward, true
		}
		v, err := ParseSize(s)
		return v, err == nil && v >= low && v <= high
	})
}

// volumeCache accepts true, false, or a mapping with details.
func volumeCache(v *Volume) setter {
	return func(d *decoder, n node) {
		c := VolumeCache{Admission: "lru", ReadAhead: MiB, FlushAge: 5 * time.Second}
		if _, scalar := n.ast.(ast.ScalarNode); scalar {
			use := false
			boolean(&use)(d, n)
			if use {
				v.Cache = &c
			}
			return
		}
		d.mapping(n, fields{
			"admission":   oneOf(&c.Admission, "lru", "fussy"),
			"min":         size(&c.Min, 1, 0, TiB),
			"max":         size(&c.Max, 1, 0, TiB),
			"read-ahead":  size(&c.ReadAhead, 1, 0, 64*MiB),
			"flush-age":   duration(&c.FlushAge, 100*time.Millisecond, time.Hour),
			"dirty-limit": amount(&c.DirtyLimit, MiB, TiB, " of the cache"),
		})
		v.Cache = &c
	}
}
