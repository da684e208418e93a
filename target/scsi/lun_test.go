package scsi

import (
	"bytes"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/mode"
)

// TestNewLogicalUnitRefuses: stores that cannot hold the blocks, and what the
// error says.
func TestNewLogicalUnitRefuses(t *testing.T) {
	info := func(size int64, block int) backstore.Info {
		return backstore.Info{Size: size, BlockSize: block, Describe: "file /x"}
	}
	tests := []struct {
		name  string
		info  backstore.Info
		block int
		want  string
	}{
		{"block size", info(mib, 1), 1024, `volume "v": block size 1024: expected 512 or 4096`},
		{"unit", info(mib, 4096), 512, `volume "v": block size 512: expected a multiple of 4096, the smallest unit that file /x can write`},
		{"empty", info(0, 1), 512, `volume "v": file /x has 0 bytes: expected at least one block of 512`},
		{"short", info(4095, 1), 4096, `volume "v": file /x has 4095 bytes: expected at least one block of 4096`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewLogicalUnit(LUConfig{Name: "v", Store: infoStore{tt.info}, BlockSize: tt.block})
			if err == nil || err.Error() != tt.want {
				t.Errorf("%v, expected %s", err, tt.want)
			}
		})
	}
}

// TestUnevenStore: what does not fill the last block is left out, with a word
// in the log.
func TestUnevenStore(t *testing.T) {
	var lines bytes.Buffer
	info := backstore.Info{Size: 3*512 + 100}
	lu, err := NewLogicalUnit(LUConfig{Name: "v", Store: infoStore{info}, Logger: testLogger(&lines)})
	if err != nil {
		t.Fatal(err)
	}
	if lu.State().Blocks != 3 || !strings.Contains(lines.String(), "bytes=100") {
		t.Errorf("%d blocks; log: %s", lu.State().Blocks, lines.String())
	}
}

// TestIdentity: it follows from the name, differs between names, and is what
// the configuration says where it says something.
func TestIdentity(t *testing.T) {
	unit := func(c LUConfig) LUConfig {
		c.Store = infoStore{diskInfo()}
		lu, err := NewLogicalUnit(c)
		if err != nil {
			t.Fatal(err)
		}
		return lu.config
	}
	a, again, b := unit(LUConfig{Name: "a"}), unit(LUConfig{Name: "a"}), unit(LUConfig{Name: "b"})
	if !bytes.Equal(a.NAA, again.NAA) || a.Serial != again.Serial || bytes.Equal(a.NAA, b.NAA) || a.Serial == b.Serial {
		t.Errorf("a: %s %x, again: %s %x, b: %s %x", a.Serial, a.NAA, again.Serial, again.NAA, b.Serial, b.NAA)
	}
	if a.NAA[0]>>4 != 3 {
		t.Errorf("%x is not NAA 3h", a.NAA)
	}
	if c := unit(LUConfig{Name: "a", Serial: "s", NAA: []byte{0x30, 0, 0, 0, 0, 0, 0, 1}}); c.Serial != "s" || !bytes.Equal(c.NAA, []byte{0x30, 0, 0, 0, 0, 0, 0, 1}) {
		t.Errorf("serial %q, NAA %x", c.Serial, c.NAA)
	}
}

// TestResetState: a reset restores what commands changed, but not the capacity.
func TestResetState(t *testing.T) {
	n := newUnit(t, newMedium(mib), LUConfig{})
	fresh := *n.LU.State()
	n.LU.update(func(s *State) {
		*s = State{Blocks: 5, Values: mode.Values{SoftProtect: true, DescriptorSense: true}, Stopped: true}
	})
	n.LU.ResetState()
	fresh.Blocks = 5
	if got := *n.LU.State(); got != fresh {
		t.Errorf("%+v, expected %+v", got, fresh)
	}
}
