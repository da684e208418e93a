package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/internal/cli"
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

// TestNoteOfNumbers: versions before NAA identifiers of 16 bytes noted them as numbers;
// what they can have is still noted so, for a downgrade.
func TestNoteOfNumbers(t *testing.T) {
	const earlier = `{"File":"/etc/c.yaml","Volumes":[
{"Name":"disk","Type":"file","Driver":"","Path":"/d","Size":4194304,"BlockSize":512,"Direct":false,"MayBuffer":false,"Write":"through","ReadOnly":false,"Protection":0,"ProtectionFile":"","Encryption":null,"Threads":0,"Serial":"","NAA":0,"Cache":null,"Vendor":"","Product":"","PhysicalBlockSize":0,"Removable":false,"SanitizeRate":0,"SoftThreshold":0},
{"Name":"named","Type":"file","Driver":"","Path":"/n","Size":4194304,"BlockSize":512,"Direct":false,"MayBuffer":false,"Write":"through","ReadOnly":false,"Protection":0,"ProtectionFile":"","Encryption":null,"Threads":0,"Serial":"","NAA":3458764513820540929,"Cache":null,"Vendor":"","Product":"","PhysicalBlockSize":0,"Removable":false,"SanitizeRate":0,"SoftThreshold":0}],
"Sizes":{"disk":4194304},"Targets":null,"PortalGroups":null}`
	var note *applied
	if err := durable.Strict([]byte(earlier), &note); err != nil {
		t.Fatal(err)
	}
	if v := note.Volumes; len(v) != 2 || v[0].Name != "disk" || v[0].NAA != "" || v[1].NAA != "3000000000000001" || v[1].Path != "/n" {
		t.Errorf("found %+v", v)
	}
	var was, is any
	again, err := json.Marshal(note)
	if err = errors.Join(err, json.Unmarshal([]byte(earlier), &was), json.Unmarshal(again, &is)); err != nil || !reflect.DeepEqual(was, is) {
		t.Errorf("%v: found %s", err, again)
	}
	note.Volumes[0].NAA, note.Volumes[0].Revision, note.Volumes[0].Designators = "6024c550000000000000000000000001", "2", []string{"0103"}
	for _, key := range []string{"Members", "Map", "Held", "Window", "Excess", "ExcessSize", "ExcessWrites", "Ceph", "Image"} { // each comes back
		v := reflect.ValueOf(&note.Volumes[0]).Elem().FieldByName(key)
		switch v.Kind() {
		case reflect.Slice:
			v.Set(reflect.ValueOf([]string{"/a", "/b"}))
		case reflect.String:
			v.SetString("/x")
		default:
			v.SetInt(7)
		}
	}
	again, err = json.Marshal(note)
	var read *applied
	if err = errors.Join(err, durable.Strict(again, &read)); err != nil || !reflect.DeepEqual(read, note) {
		t.Errorf("%v: found %+v, expected %+v", err, read, note)
	}
}

// TestCheckApplied: a version that cannot read what the one before has noted would not
// start, and a check says so, before an upgrade restarts the server.
func TestCheckApplied(t *testing.T) {
	dir := t.TempDir()
	file, state := filepath.Join(dir, "tgtd.yaml"), filepath.Join(dir, "state")
	writeFile(t, file, `{portal-groups: {a: {listen: ["127.0.0.1:0"]}}, volumes: {v: {type: ram, size: 1MiB}}, targets: {"iqn.2026-11.test:t": {auth-group: none, luns: {0: v}}}}`)
	note := appliedFile(state)
	if err := note.Save(&applied{}); err != nil {
		t.Fatal(err)
	}
	check := func() (int, string) {
		var out bytes.Buffer
		return run(t.Context(), []string{"check", file, "--state-dir", state}, cli.Console{Out: &out, Err: &out}), out.String()
	}
	if status, said := check(); status != cli.ExitOK {
		t.Fatalf("found %d: %s", status, said)
	}
	if err := os.WriteFile(note.Path(), durable.Seal(note.Kind, []byte(`{"Volumes":[{"Name":7}]}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, said := check(); status != cli.ExitFailure || !strings.Contains(said, "what was applied last") {
		t.Errorf("found %d: %s", status, said)
	}
}
