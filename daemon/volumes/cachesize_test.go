package volumes

import (
	"strings"
	"testing"

	"lunar/conf"
)

func TestCacheSize(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		cache, volume string
		nodes         int
		want          cacheSize
		err           string
	}{
		{"size: 4GiB", "", 2, cacheSize{2 * gib, 4 * gib, 2 * gib}, ""},
		{"size: 50%", "", 4, cacheSize{1 * gib, 4 * gib, 2 * gib}, ""},
		{"size: {per-node: 2GiB}, dirty-limit: 1GiB", "", 3, cacheSize{2 * gib, 6 * gib, 1 * gib}, ""},
		{"size: {per-node: 2GiB}, dirty-limit: 10%", "", 1, cacheSize{2 * gib, 2 * gib, gib / 5}, ""},
		{"size: {per-node: 3GiB}", "", 4, cacheSize{}, "found 3GiB on 4 NUMA nodes, 12GiB together, expected less than the 8GiB"},
		{"size: 9GiB", "", 1, cacheSize{}, "found 9GiB on 1 NUMA node, 9GiB together, expected less than the 8GiB"},
		{"size: 25%", "min: 1GiB", 1, cacheSize{2 * gib, 2 * gib, gib}, ""},
		{"size: 25%", "min: 1025MiB", 1, cacheSize{}, "volumes.v.cache.min: found 1025MiB, expected at most half of cache.size (1GiB)"},
		{"size: {per-node: 1GiB}, dirty-limit: 3GiB", "", 2, cacheSize{}, "cache.dirty-limit: found 3GiB, expected at most 90% of cache.size (2GiB)"},
	} {
		cfg, _, err := conf.Parse("test", []byte("cache: {"+test.cache+"}\nvolumes: {v: {type: file, path: v, cache: {"+test.volume+"}}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := cacheSizeOf(cfg, test.nodes, 8*gib)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: found %v, expected %s", test.cache, err, test.err)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s: found %+v, %v, expected %+v", test.cache, got, err, test.want)
		}
	}
	cfg, _, err := conf.Parse("test", []byte("cache: {size: 1%}\nvolumes: {v: {type: file, path: v, cache: true}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cacheSizeOf(cfg, 1, gib); err == nil || !strings.Contains(err.Error(), "found 1%, which is 10.2MiB of the 1GiB") {
		t.Errorf("found %v", err)
	}
}
