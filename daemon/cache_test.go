package daemon

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// cdb10 is READ (10) or WRITE (10) of 128 blocks.
func cdb10(opcode byte, lba uint32) []byte {
	cdb := make([]byte, 10)
	cdb[0], cdb[8] = opcode, 128
	binary.BigEndian.PutUint32(cdb[2:], lba)
	return cdb
}

// A volume behind the cache keeps what was acknowledged, through a restart
// too, and its memory is given back.
func TestServeCached(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, config, strings.ReplaceAll(`
cache: {size: 16MiB, block-size: 64KiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  lru: {type: file, path: DIR/lru.img, size: 32MiB, cache: true}
  fussy: {type: file, path: DIR/fussy.img, size: 32MiB, write: sync, cache: {admission: fussy, min: 1MiB, max: 4MiB, read-ahead: 0B}}
targets:
  iqn.2026-11.example.lunar:cached: {luns: {0: lru, 1: fussy}}
`, "DIR", dir))
	login := initiator.Options{Target: "iqn.2026-11.example.lunar:cached"}
	data := bytes.Repeat([]byte("cached blocks! "), 64<<10/15+1)[:64<<10]
	for round := range 2 {
		s := serve(t, "-c", config, "--state-dir", dir)
		c := dial(t, s.portal, login)
		for lun := range uint64(2) {
			settle(t, c, lun)
			for lba := uint32(0); round == 0 && lba < 40<<10; lba += 4 << 10 { // more than the cache holds
				transfer(t, c, cdb10(0x2a, lba), lun, data, 0)
			}
			for lba := uint32(0); lba < 40<<10; lba += 4 << 10 {
				if got := transfer(t, c, cdb10(0x28, lba), lun, nil, len(data)); !bytes.Equal(got, data) {
					t.Fatalf("round %d, LUN %d, LBA %d: other data than was written", round, lun, lba)
				}
			}
		}
		if _, err := c.Logout(0); err != nil {
			t.Error(err)
		}
		if status := s.stop(); status != cli.ExitOK {
			t.Fatalf("found exit status %d\n%s", status, s.log)
		}
	}
}
