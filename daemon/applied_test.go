package daemon

import (
	"encoding/json"
	"os"
	"testing"

	"lunar/conf"
	"lunar/internal/durable"
)

// TestNoteOfEarlierVersion: what was noted by a version that lacked any of today's keys is
// read, or no start after an upgrade would succeed.
func TestNoteOfEarlierVersion(t *testing.T) {
	cfg, _, err := conf.Parse("earlier", []byte(`
portal-groups: {local: {listen: ["127.0.0.1:0"]}}
volumes: {v: {type: ram, size: 1MiB}}
targets:
  iqn.2026-11.test:t: {auth-group: none, luns: [{lun: 0, volume: v}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(applied{Volumes: cfg.Volumes, Targets: cfg.Targets, PortalGroups: cfg.PortalGroups})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := appliedFile(dir).Save(&applied{}); err != nil { // with its mark
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	left := 0
	withoutEach(whole, func(key string) {
		left++
		earlier, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		file := appliedFile(dir)
		if err := os.WriteFile(file.Path(), durable.Seal(file.Kind, earlier), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := file.Peek(); err != nil {
			t.Errorf("without %s: %v", key, err)
		}
	})
	if left < 20 {
		t.Errorf("found %d keys, expected those of a volume, a target and a portal group", left)
	}
}

// withoutEach calls see with each key of nested objects left out, one at a time.
func withoutEach(v any, see func(key string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			delete(v, key)
			see(key)
			v[key] = value
			withoutEach(value, see)
		}
	case []any:
		for _, value := range v {
			withoutEach(value, see)
		}
	}
}
