package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"lunar/cluster"
	"lunar/internal/durable"
)

// backup is the state of a cluster at one revision, without what ends with its holders and
// what is of this package.
type backup struct {
	Version  int              `json:"version"`
	Cluster  string           `json:"cluster"`
	Revision cluster.Revision `json:"revision"`
	Items    []backupItem     `json:"items"`
}

type backupItem struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

const (
	backupKind    = "cluster-backup"
	backupVersion = 1
)

// Backup writes a cluster's state to a file, and returns how many keys that has, and the revision at
// which they were so. The file is as secret as the state.
func Backup(ctx context.Context, state cluster.State, name, file string) (keys int, at cluster.Revision, err error) {
	items, at, err := state.Get(ctx, cluster.KeysOf(name).All())
	if err != nil {
		return 0, 0, err
	}
	b := backup{Version: backupVersion, Cluster: name, Revision: at}
	for _, i := range items {
		if i.Lease == 0 && !strings.HasPrefix(i.Key, keysOf(name)) {
			b.Items = append(b.Items, backupItem{i.Key, i.Value})
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return 0, 0, err
	}
	return len(b.Items), at, durable.ReplaceSealed(file, backupKind, text)
}

// Parts in which a backup is read back: etcd takes 128 changes and 1.5 MiB at once.
const (
	partItems = 100
	partBytes = 1 << 20
)

// Restored is what Restore has done: keys of the backup that it has written, and those that were
// there already, as they are in the backup.
type Restored struct{ Written, There int }

// Restore writes what Backup wrote into a cluster of the same name whose state has none of
// it. It fails with ErrConflict for a key with another value. What was written before a failure
// stays, and is no obstacle to another attempt.
func Restore(ctx context.Context, state cluster.State, name, file string) (r Restored, err error) {
	text, sealed, err := durable.ReadSealed(file, backupKind)
	if err != nil {
		return r, err
	}
	var b backup
	if !sealed || json.Unmarshal(text, &b) != nil || b.Version != backupVersion {
		return r, fmt.Errorf("found another file, expected a backup of a cluster, of version %d", backupVersion)
	}
	if b.Cluster != name {
		return r, fmt.Errorf("found a backup of cluster %s, expected %s", b.Cluster, name)
	}
	rest, err := missing(ctx, state, &b)
	if err != nil {
		return r, err
	}
	for r.There = len(b.Items) - len(rest); len(rest) > 0; {
		var conditions []cluster.Condition
		var changes []cluster.Change
		for size := 0; len(rest) > 0 && len(changes) < partItems && (size == 0 || size+len(rest[0].Value) <= partBytes); rest = rest[1:] {
			conditions = append(conditions, cluster.Condition{Key: rest[0].Key})
			changes = append(changes, cluster.Change{Key: rest[0].Key, Value: rest[0].Value})
			size += len(rest[0].Key) + len(rest[0].Value)
		}
		_, err := state.Commit(ctx, conditions, changes)
		if errors.Is(err, cluster.ErrConflict) {
			return r, fmt.Errorf("found keys of the backup in cluster %s, expected a new cluster, of which no server has started yet (%w)", name, err)
		}
		if err != nil {
			return r, err
		}
		r.Written += len(changes)
	}
	return r, nil
}

// missing are the items of a backup that the state does not have.
func missing(ctx context.Context, state cluster.State, b *backup) (out []backupItem, err error) {
	items, _, err := state.Get(ctx, cluster.KeysOf(b.Cluster).All())
	if err != nil {
		return nil, err
	}
	there := map[string][]byte{}
	for _, i := range items {
		there[i.Key] = i.Value
	}
	for _, i := range b.Items {
		if was, ok := there[i.Key]; !ok || !bytes.Equal(was, i.Value) {
			out = append(out, i)
		}
	}
	return out, nil
}
