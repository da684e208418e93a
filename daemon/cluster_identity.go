package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lunar/cluster"
	"lunar/control"
	"lunar/daemon/state"
)

// identity is the cluster's: that which the state directory knows, or else the first that
// a node has told the cluster.
func (m *membership) identity(stateDir string) (string, error) {
	id, err := state.ClusterIdentity(stateDir, m.conf.Named)
	if err != nil || id != "" {
		return id, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), identityTime)
	defer cancel()
	for {
		if id, err = m.agree(ctx, rand.Text()); err == nil {
			return id, state.KeepClusterIdentity(stateDir, m.conf.Named, id)
		}
		m.log.Warn("the cluster's identity is not known yet", "error", err)
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(time.Second):
		}
	}
}

// clusterIdentity is the value of the key of that name.
type clusterIdentity struct {
	Version  int    `json:"version"`
	Identity string `json:"identity"`
}

// confirm has the cluster's state know the identity that this node goes by: a state that was
// made anew has none, and the next node that is new would give the disks other names.
func (m *membership) confirm(ctx context.Context, own string) {
	for {
		found, err := m.agree(ctx, own)
		if err == nil && found != own {
			m.stranger.Store(true)
			m.look()
			m.log.Error("this node's disks have other serial numbers than on other nodes, so that hosts take them for other disks: "+control.StrangerHelp, "identity", own, "expected", found)
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// agree reads the identity, or makes it one that is offered.
func (m *membership) agree(ctx context.Context, offered string) (string, error) {
	key := m.keys().Identity()
	fresh, err := json.Marshal(clusterIdentity{1, offered})
	if err != nil {
		return "", err
	}
	_, err = m.state.Commit(ctx, []cluster.Condition{{Key: key}}, []cluster.Change{{Key: key, Value: fresh}})
	if err != nil && !errors.Is(err, cluster.ErrConflict) && !errors.Is(err, cluster.ErrUnknown) {
		return "", err
	}
	items, _, err := m.state.Get(ctx, key)
	if err != nil {
		return "", err
	}
	for _, i := range items {
		var v clusterIdentity
		if i.Key != key {
			continue
		}
		if err := json.Unmarshal(i.Value, &v); err != nil || v.Version != 1 || v.Identity == "" {
			return "", fmt.Errorf("found %q, expected version 1 and an identity (%w)", i.Value, err)
		}
		return v.Identity, nil
	}
	return "", errors.New("found none")
}
