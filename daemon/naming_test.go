package daemon

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/daemon/state"
	"lunar/internal/initiator"
)

// named is a server whose volumes are looked at by VPD page 83h.
type named struct {
	t   *testing.T
	dir string
}

// naa serves ram volumes of the given keys, LUN 0 first, and returns the NAA designator
// of each.
func (n named) naa(volumes ...string) (found []string) {
	n.t.Helper()
	var text, luns strings.Builder
	for i, keys := range volumes {
		name, more, _ := strings.Cut(keys, ",")
		fmt.Fprintf(&text, "  %s: {type: ram, size: 1MiB, %s}\n", name, more)
		fmt.Fprintf(&luns, "%d: %s, ", i, name)
	}
	file := filepath.Join(n.dir, "c.yaml")
	writeFile(n.t, file, "portal-groups: {p: {listen: [\"127.0.0.1:0\"]}}\nvolumes:\n"+text.String()+
		"targets: {\"iqn.2026-11.test:t\": {auth-group: none, luns: {"+luns.String()+"}}}\n")
	s := serve(n.t, "-c", file, "--state-dir", filepath.Join(n.dir, "state"), "--yes")
	defer s.stop()
	c := dial(n.t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	defer c.Close()
	for lun := range volumes {
		page := transfer(n.t, c, []byte{0x12, 1, 0x83, 1, 0, 0}, uint64(lun), nil, 256)
		for list := page[4:]; len(list) > 4; list = list[4+int(list[3]):] {
			if list[1] == 0x03 {
				found = append(found, hex.EncodeToString(list[4:4+int(list[3])]))
			}
		}
	}
	return found
}

// TestNamesOfVolumes: volumes that earlier versions served keep their identifier, new
// ones get one of the form that initiators prefer, and none changes.
func TestNamesOfVolumes(t *testing.T) {
	old := named{t, t.TempDir()}
	dir := filepath.Join(old.dir, "state")
	if err := state.Make(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := state.ServerIdentity(dir); err != nil { // as an earlier version left it
		t.Fatal(err)
	}
	local := old.naa("a", "b")
	for _, id := range local {
		if len(id) != 16 || id[0] != '3' {
			t.Errorf("found %s of a volume that was there before, expected an NAA locally assigned identifier", id)
		}
	}
	both := old.naa("a", "c")
	if both[0] != local[0] || !strings.HasPrefix(both[1], "6024c55") || len(both[1]) != 32 {
		t.Errorf("found %q, expected %s and an NAA IEEE registered extended identifier", both, local[0])
	}
	if again := old.naa("b", "c", "a"); again[0] != local[1] || again[1] != both[1] || again[2] != local[0] {
		t.Errorf("found %q, expected %q, %q and %q", again, local[1], both[1], local[0])
	}
	if err := os.Remove(state.NamingOf(dir).Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := state.SettleNaming(dir, false, []string{"c"}); err == nil {
		t.Error("a lost file was made anew: volume c would be another disk")
	}

	fresh := named{t, t.TempDir()}
	first := fresh.naa("a", "b,serial: given", "c,naa: \"5000000000000001\"")
	if !strings.HasPrefix(first[0], "6024c55") || first[1][0] != '3' || first[2] != "5000000000000001" {
		t.Errorf("found %q of a new server", first)
	}
	if again := fresh.naa("a", "b,serial: given", "c,naa: \"5000000000000001\""); strings.Join(again, " ") != strings.Join(first, " ") {
		t.Errorf("found %q after a restart, expected %q", again, first)
	}
}
