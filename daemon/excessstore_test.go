package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
)

// TestUnwrittenDataAboveExcess: unwritten data get into the file of a volume with writes in
// excess as it was, and into no other, as without excess; after a stop in order nothing is in
// doubt, though the excess device was written back in it.
func TestUnwrittenDataAboveExcess(t *testing.T) {
	const volume = "{type: file, path: back.img, size: 32MiB, excess: fast.img, excess-size: 16MiB, excess-writes: 100, write: back, cache: {flush-age: 1h}}"
	other := bytes.Repeat([]byte("somebody else's"), 32<<20/15+1)[:32<<20]
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, file string)
		want      string // of the refusal; empty: there is none
	}{
		"as it was": {func(*testing.T, string) {}, ""},
		"replaced": {func(t *testing.T, file string) {
			writeFile(t, file+".new", string(other))
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}, "/back.img is inode"},
		"written in place": {func(t *testing.T, file string) { writeFile(t, file, string(other)) }, "somebody else has written to the store"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriteBack(t)
			w.configure(t, volume)
			w.crashed(t)
			file := filepath.Join(w.dir, "back.img")
			test.meanwhile(t, file)
			if test.want != "" {
				before, _ := os.ReadFile(file)
				expectRefusal(t, w, test.want)
				if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, before) {
					t.Errorf("a refusal has changed the file: %v", err)
				}
				w.say(t, "adopt")
			}
			for range 2 {
				s := serve(t, w.args()...)
				c := w.dial(t, s.portal)
				readAll(t, c, 0)
				logout(t, c)
				if status := s.stop(); status != cli.ExitOK {
					t.Errorf("found exit status %d\n%s", status, s.log)
				}
				if text := s.log.String(); test.want == "" && strings.Contains(text, "were dropped") {
					t.Errorf("clean data were dropped:\n%s", text)
				}
			}
		})
	}
}
