package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lunar/cluster"
	"lunar/cluster/etcd"
)

// ErrServes says that a server of a node runs.
var ErrServes = errors.New("its server runs")

// Leave removes a member from the cluster, living or not, by its name, or by its number
// if it was admitted and never started. A living one puts its copy of the state aside. It
// fails with ErrNoQuorum, with ErrServes while the node has a server in the cluster, for the
// last member, and where too few would be left that run.
func Leave(ctx context.Context, state *etcd.State, name, node string) error {
	key := cluster.KeysOf(name).Node(node)
	items, _, err := state.Get(ctx, key)
	if err != nil {
		return err
	}
	for _, i := range items {
		if i.Key == key {
			return fmt.Errorf("node %s: %w and would go on without its member: take the node out of owners, give its volumes away (lunar cluster drain %[1]s), stop it (systemctl stop lunar), and then leave", node, ErrServes)
		}
	}
	members, err := state.Members(ctx)
	if err != nil {
		return err
	}
	names := []string{}
	for _, m := range members {
		number := fmt.Sprintf("%x", m.ID)
		if m.Name != node && (m.Name != "" || number != node) {
			if m.Name == "" {
				number += " (admitted, not started)"
			}
			names = append(names, cmp.Or(m.Name, number))
			continue
		}
		if len(members) == 1 {
			return fmt.Errorf("%s is the cluster's last member: its state ends with its directory alone", node)
		}
		return settled(ctx, func() error { return state.Remove(ctx, m.ID) })
	}
	slices.Sort(names)
	return fmt.Errorf("found no member %s, expected one of %s", node, strings.Join(names, ", "))
}
