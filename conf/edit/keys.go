package edit

import "slices"

// identities are the lists whose elements go by one of their keys, and not by their
// place.
var identities = map[string]string{"luns": "lun", "chap": "user", "rules": "name"}

// order is how keys of a new mapping are written; others follow in the order of the
// alphabet.
var order = []string{
	"server", "cache", "log", "portal-groups", "discovery", "auth-groups", "qos", "ceph", "volumes", "targets",
	"name", "type", "driver", "ceph", "image", "path", "size", "block-size",
	"tag", "listen", "listen-iser",
	"alias", "portal-groups", "auth-group", "luns", "access",
	"lun", "volume", "read-only",
	"chap", "mutual", "user", "secret", "secret-file", "algorithms", "initiators", "networks", "group", "target",
	"reservation", "limit", "burst", "iops", "bandwidth",
}

func inOrder(keys []string) []string {
	rank := func(key string) int {
		if i := slices.Index(order, key); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		if a < b {
			return -1
		}
		return 1
	})
	return keys
}
