package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
)

// TestRestoreAgain: one that was broken off is done again; what another state has is not written over.
func TestRestoreAgain(t *testing.T) {
	keys, file := cluster.KeysOf("lab"), filepath.Join(t.TempDir(), "backup")
	from, to := mem.NewNetwork().State("a"), mem.NewNetwork().State("a")
	var all []cluster.Change
	for i := range 5 {
		all = append(all, cluster.Change{Key: keys.Heritage(fmt.Sprint("v", i)), Value: fmt.Append(nil, i)})
	}
	for state, changes := range map[cluster.State][]cluster.Change{from: all, to: all[:2]} {
		if _, err := state.Commit(t.Context(), nil, changes); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Backup(t.Context(), from, "lab", file); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Restored{{Written: 3, There: 2}, {There: 5}} {
		if r, err := Restore(t.Context(), to, "lab", file); err != nil || r != want {
			t.Errorf("found %+v, %v, expected %+v", r, err, want)
		}
	}
	if items, _, err := to.Get(t.Context(), keys.All()); err != nil || len(items) != len(all) {
		t.Errorf("found %v, %v", items, err)
	}
	if _, err := to.Commit(t.Context(), nil, []cluster.Change{{Key: all[3].Key, Value: []byte("other")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), to, "lab", file); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("found %v", err)
	}
}

// TestManyOldTickets: tokens can be made however many others have run out.
func TestManyOldTickets(t *testing.T) {
	state, left := mem.NewNetwork().State("a"), 0
	for i := range 300 {
		value, err := json.Marshal(ticket{Version: 1, Sum: []byte{1}, Until: time.Unix(int64(i), 0)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := state.Commit(t.Context(), nil, []cluster.Change{{Key: ticketKey("lab", fmt.Appendf(nil, "%08d", i)), Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		changes, err := oldTickets(t.Context(), state, "lab", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		left = len(changes)
		if _, err := state.Commit(t.Context(), nil, append(changes, cluster.Change{Key: "/new", Value: []byte("ticket")})); err != nil {
			t.Fatal(err)
		}
	}
	if left != 0 {
		t.Errorf("found %d old tickets", left)
	}
}
