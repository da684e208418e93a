package conf

import (
	"fmt"
	"slices"
)

// validateCache applies the rules that join the cache and its volumes, and
// decides where its memory is if the file does not.
func (d *decoder) validateCache(c *Config) {
	for i := range c.Volumes {
		d.validateCached(&c.Volumes[i], c)
	}
	d.chooseSegment(c)
	if c.Cache.Checksum && c.Cache.Segment == "" {
		d.fail("cache.checksum", "true with the cache in private memory", "a segment (cache.segment: "+DefaultSegment+"), which is what is checked, or false")
	}
	used := slices.ContainsFunc(c.Volumes, func(v Volume) bool { return v.Cache != nil })
	if c.Cache.Size.Given() && !used {
		d.warn("cache.size", c.Cache.Size.String()+" of memory that no volume uses", "a volume with cache: true")
	}
	if c.Cache.PerNode || c.Cache.Size.Percent > 0 {
		return // known on the machine alone: see CheckCache
	}
	if c.Cache.Size.Given() {
		c.checkShares(c.Cache.Size.Bytes, d.fail)
	}
}

// writeBackKeys are the keys of a volume's cache that say something of dirty data.
var writeBackKeys = []string{"flush-age", "dirty-limit"}

// validateCached checks what a volume says of the cache.
func (d *decoder) validateCached(v *Volume, c *Config) {
	path := "volumes." + v.Name
	if v.Cache == nil {
		if v.Write == WriteBack && slices.Contains(volumeKeys["cache"], v.Type) {
			d.fail(path+".write", `"back" without cache`, "cache: true as well: it is the cache that writes back later")
		}
		return
	}
	if !c.Cache.Size.Given() && !d.given("cache.size") {
		d.fail(path+".cache", "a volume behind the cache", "cache.size, which gives the cache its memory")
	}
	if v.Cache.Max > 0 && v.Cache.Max < v.Cache.Min {
		d.fail(path+".cache.max", v.Cache.Max.String(), fmt.Sprintf("at least min (%v)", v.Cache.Min))
	}
	if d.given(path+".direct") && !v.Direct {
		d.warn(path+".direct", "false behind the cache", "true: else the page cache holds everything a second time")
	}
	for _, key := range writeBackKeys {
		if key = path + ".cache." + key; v.Write != WriteBack && d.given(key) {
			d.fail(key, "write: "+string(v.Write)+", with which no data is dirty", "write: back, or not this key")
		}
	}
}

// chooseSegment takes shared memory where a crash would lose acknowledged
// writes without it, and private memory otherwise.
func (d *decoder) chooseSegment(c *Config) {
	c.Cache.SegmentGiven = d.given("cache.segment")
	for _, v := range c.Volumes {
		if v.Write != WriteBack || v.Cache == nil || c.Cache.Segment != "" {
			continue
		}
		if c.Cache.SegmentGiven {
			d.fail("volumes."+v.Name+".write", `"back" with cache.segment: none`,
				"cache.segment: "+DefaultSegment+", where acknowledged writes outlive a crash of tgtd, or write: through")
			continue
		}
		c.Cache.Segment = DefaultSegment
	}
}

// CheckCache compares what volumes want of the cache with its size, which for
// shares and for sizes per node is known on the machine alone.
func (c *Config) CheckCache(size Size) error {
	var problems Errors
	c.checkShares(size, func(path, found, expected string) {
		problems = append(problems, Problem{File: "configuration", Key: path, Found: found, Expected: expected})
	})
	if len(problems) > 0 {
		return problems
	}
	return nil
}

func (c *Config) checkShares(size Size, fail func(path, found, expected string)) {
	limit := func(path string, found, most Size, expected string) {
		if found > most {
			fail(path, found.String(), "at most "+expected)
		}
	}
	dirty := c.Cache.DirtyLimit.Of(size)
	limit("cache.dirty-limit", dirty, Amount{Percent: maxPercent}.Of(size), fmt.Sprintf("%d%% of cache.size (%v)", maxPercent, size))
	var minima Size
	for _, v := range c.Volumes {
		if v.Cache == nil {
			continue
		}
		path := "volumes." + v.Name + ".cache"
		limit(path+".min", v.Cache.Min, size/2, fmt.Sprintf("half of cache.size (%v), so that something is left for others", size/2))
		limit(path+".dirty-limit", v.Cache.DirtyLimit.Of(size), dirty, fmt.Sprintf("cache.dirty-limit (%v)", dirty))
		before := minima
		if minima += v.Cache.Min; before <= size && minima > size && v.Cache.Min <= size/2 {
			fail(path+".min", fmt.Sprintf("minima of %v together", minima), fmt.Sprintf("at most cache.size (%v)", size))
		}
	}
}
