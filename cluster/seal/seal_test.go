package seal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/cluster"
	"lunar/cluster/heritage"
	"lunar/cluster/mem"
	"lunar/cluster/ownership"
)

// TestCopy: a header is saved, removed and restored; what would lose one, or change it under an
// owner, is refused.
func TestCopy(t *testing.T) {
	network, keys := mem.NewNetwork(), cluster.KeysOf("c")
	of := Of{State: network.State("admin"), Keys: keys, Volume: "v"}
	file := filepath.Join(t.TempDir(), "copy")
	put := func(key string, value []byte) {
		t.Helper()
		if _, err := network.Store.Commit(nil, []cluster.Change{{Key: key, Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := of.Save(t.Context(), file); !errors.Is(err, ErrNone) {
		t.Errorf("found %v without a header", err)
	}
	header := []byte("a header")
	put(keys.Owner("v"), ownership.Record{Node: "n", Incarnation: "i", Epoch: 1, Standing: ownership.Owned}.Encode())
	ledger, _, err := heritage.Open(t.Context(), heritage.Claim{State: network.State("n"), Keys: keys, Volume: "v", Node: "n", Epoch: 1, Value: keys.Header("v")})
	if err == nil {
		err = ledger.Store(t.Context(), Seal{"rbd/v", header}.Encode())
	}
	if err == nil {
		err = of.Save(t.Context(), file)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := of.Restore(t.Context(), file); !errors.Is(err, ErrThere) {
		t.Errorf("found %v where a header is", err)
	}
	put(keys.Node("n"), ownership.Node{Incarnation: "i"}.Encode())
	if err := of.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "node n has the volume") {
		t.Errorf("found %v while a node has the volume", err)
	}
	put(keys.Node("n"), ownership.Node{Incarnation: "later"}.Encode())
	if err := of.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := of.Remove(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("found %v of one that is removed", err)
	}
	if err := of.Restore(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	items, _ := network.Store.Get(keys.Header("v"))
	if s, err := Stored(items[0].Value); err != nil || !bytes.Equal(s.Header, header) || s.Image != "" {
		t.Errorf("found %+v, %v", s, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := of.Restore(t.Context(), file); err == nil || errors.Is(err, ErrThere) {
		t.Error("a damaged copy was taken")
	}
}
