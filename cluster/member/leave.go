package member

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lunar/cluster/etcd"
)

// Leave removes a member from the cluster, living or not, by its name, or by its number
// if it was admitted and never started. A living one puts its copy of the state aside. It
// fails with ErrNoQuorum, and for the last member, and where too few would be left that
// run.
func Leave(ctx context.Context, state *etcd.State, node string) error {
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
