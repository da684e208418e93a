package state

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Naming is how the volumes of a server are named where the configuration does not
// say.
type Naming struct {
	// Local are those that earlier versions have served, by name: they keep the NAA locally
	// assigned identifier by which initiators know them.
	Local []string `json:"local"`
}

// NamingOf is where a state directory has it.
func NamingOf(dir string) File[Naming] {
	return File[Naming]{Marked{Kind: "naming", Dir: dir, Name: "naming.json"}}
}

// SettleNaming returns it, and decides it at the first start of a version that has it:
// in a directory that was used before, the volumes that are configured or on record are
// not new.
func SettleNaming(dir string, unused bool, configured []string) (*Naming, error) {
	file := NamingOf(dir)
	n, err := file.Load()
	if err != nil {
		return nil, fmt.Errorf("how volumes are named: %w; put a copy back. To go on without it, %s: volumes whose naa the configuration does not give keep the locally assigned one, and those that were new since become other disks for their initiators", err, file.Without())
	}
	if n != nil {
		return n, nil
	}
	n = &Naming{Local: []string{}}
	if !unused {
		n.Local = append(recorded(dir), configured...)
		slices.Sort(n.Local)
		n.Local = slices.Compact(n.Local)
	}
	return n, file.Save(n)
}

// recorded are the names of volumes that the directory has records of.
func recorded(dir string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(RecordOf(dir, "any").Path())) // without it, there are none
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names
}

// IsLocal reports whether a volume keeps the identifier of earlier versions.
func (n *Naming) IsLocal(volume string) bool { return n != nil && slices.Contains(n.Local, volume) }
