package daemon

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"lunar/daemon/state"
	"lunar/daemon/volumes"
	"lunar/target/scsi"
	"lunar/target/scsi/reservation"
)

// decider is a file of the state directory that decides something.
type decider struct {
	state.Marked
	old  string                 // what versions without seals wrote
	load func() (string, error) // as a start does
}

// deciders are all of them but those with a format of their own.
func deciders(t *testing.T) []decider {
	dir := t.TempDir()
	reservations := volumes.ReservationFile{Marked: state.Marked{Kind: volumes.ReservationKind, Dir: dir, Name: "reservations"}}
	identifying := state.File[scsi.Identifying]{Marked: state.Marked{Kind: "identifying", Dir: dir, Name: "identifying"}}
	sanitize := state.File[scsi.SanitizeNote]{Marked: state.Marked{Kind: "sanitize", Dir: dir, Name: "sanitize"}}
	return []decider{
		{state.IdentityFile(dir), "00112233445566778899aabbccddeeff\n", func() (string, error) { return state.ServerIdentity(dir) }},
		{(&state.SegmentNote{StateDir: dir}).File(), "segment \"/dev/shm/lunar/x\"\n0000000000000007 \"/srv/a\"\n0000000000000009 \"\"\n", func() (string, error) {
			n, err := state.ReadSegmentNote(dir)
			if err == nil && n.Old {
				err = n.Write()
			}
			return n.Text(), err
		}},
		{reservations.Marked, fencing, func() (string, error) {
			s, err := reservations.Load()
			return stateText(s), err
		}},
		{identifying.Marked, `{"device":"AQI=","text":"aGVsbG8A"}` + "\n", func() (string, error) { return shown(identifying.Load()) }},
		{state.NamingOf(dir).Marked, `{"local":["a","b"]}` + "\n", func() (string, error) { return shown(state.NamingOf(dir).Load()) }},
		{sanitize.Marked, `{"exit":true}` + "\n", func() (string, error) { return shown(sanitize.Load()) }},
	}
}

// fencing is a reservation that keeps a host away.
const fencing = `{
	"version": 1,
	"type": 5,
	"holder": {
		"initiator": "iqn.2026-11.test:a,i,0x000000000001",
		"target": "iqn.2026-11.test:t",
		"port": 1
	},
	"registrations": [
		{
			"initiator": "iqn.2026-11.test:a,i,0x000000000001",
			"target": "iqn.2026-11.test:t",
			"port": 1,
			"key": "4660"
		}
	]
}
`

func stateText(s *reservation.State) string {
	if s == nil {
		return ""
	}
	return fmt.Sprint(s.Type(), s.Registrations())
}

func shown[T any](v *T, err error) (string, error) {
	if v == nil {
		return "", err
	}
	return fmt.Sprintf("%v", *v), err
}

// TestFilesOfBefore: what versions without seals wrote is read and sealed; of it, too,
// no bit that flips makes nothing of a reservation.
func TestFilesOfBefore(t *testing.T) {
	for _, d := range deciders(t) {
		for i := range len(d.old) * 8 {
			text := []byte(d.old)
			text[i/8] ^= 1 << (i % 8)
			writeFile(t, d.Path(), string(text))
			if got, err := d.load(); err == nil && (got == "" || d.Kind == volumes.ReservationKind && strings.HasPrefix(got, reservation.Type(0).String())) {
				t.Errorf("%s: bit %d: %q was taken for nothing", d.Kind, i, text)
			}
		}
		writeFile(t, d.Path(), d.old)
		first, err := d.load()
		if err != nil || first == "" {
			t.Errorf("%s: found %q, %v", d.Kind, first, err)
		}
		if _, sealed, err := d.Read(); err != nil || !sealed {
			t.Errorf("%s: sealed: %v, %v, expected that it is after it was read", d.Kind, sealed, err)
		}
		if again, err := d.load(); err != nil || again != first {
			t.Errorf("%s: found %q, %v, expected %q", d.Kind, again, err, first)
		}
	}
}

// TestEveryBitOfState: of each file that decides something, a bit that flips or an end
// that is missing keeps the server from starting.
func TestEveryBitOfState(t *testing.T) {
	flips := 0
	for _, d := range deciders(t) {
		writeFile(t, d.Path(), d.old)
		if _, err := d.load(); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(d.Path())
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(whole) * 8 {
			text := append([]byte(nil), whole...)
			text[i/8] ^= 1 << (i % 8)
			writeFile(t, d.Path(), string(text))
			if got, err := d.load(); err == nil {
				t.Errorf("%s: bit %d: found %q in %q", d.Kind, i, got, text)
			}
			flips++
		}
		for n := range whole {
			writeFile(t, d.Path(), string(whole[:n]))
			if got, err := d.load(); err == nil {
				t.Errorf("%s: %d bytes: found %q", d.Kind, n, got)
			}
		}
	}
	t.Logf("%d flips were refused", flips)
}
