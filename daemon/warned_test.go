package daemon

import (
	"strings"
	"testing"

	"lunar/control"
)

// TestWarned: a change is answered with the warnings of what it changed, and with new ones
// elsewhere; a whole text is answered with all.
func TestWarned(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	ctx, any := t.Context(), control.Condition{}
	volume := control.Object{"type": "ram", "size": "1MiB"}
	warned := func(done control.Changed, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(done.Warnings, "\n")
	}
	put := func(name string) string {
		return warned(o.api.Put(ctx, control.VolumeAt(name), volume, control.Permissions{}, any))
	}
	if text := put("one"); !strings.Contains(text, "volumes.one") {
		t.Errorf("found %q, expected that nothing uses it", text)
	}
	if text := put("two"); !strings.Contains(text, "volumes.two") || strings.Contains(text, "volumes.one") {
		t.Errorf("found %q, expected what is about the second alone", text)
	}
	lun := control.LUNAt("iqn.2026-11.test:t", "9")
	if text := warned(o.api.Put(ctx, lun, control.Object{"volume": "one"}, control.Permissions{}, any)); text != "" {
		t.Errorf("found %q", text)
	}
	if text := warned(o.api.Delete(ctx, lun, control.Permissions{Yes: true}, any)); !strings.Contains(text, "volumes.one") || strings.Contains(text, "volumes.two") {
		t.Errorf("found %q, expected that nothing uses the first any more", text)
	}
}
