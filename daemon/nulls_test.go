package daemon

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"lunar/control"
	"lunar/internal/cli"
)

// TestNoAnswerHasNull: the description of the API allows null nowhere, so the lists of a
// server that has nothing are empty. The paths are those that the description names.
func TestNoAnswerHasNull(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "c.yaml"), "volumes: {a: {type: ram, size: 1MiB}}\nportal-groups: {p: {listen: ['127.0.0.1:0']}}\n")
	s := serve(t, "-c", filepath.Join(dir, "c.yaml"), "--state-dir", dir)
	api, err := control.Dial(filepath.Join(dir, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	var description struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal([]byte(raw(t, api, "/openapi.json")), &description); err != nil {
		t.Fatal(err)
	}
	read := 0
	for path, methods := range description.Paths {
		if methods["get"] == nil || path == "/v1/cache" || strings.HasPrefix(path, control.ClusterPath) || path == control.ClusterPromisesPath {
			continue // nothing to read, or 404 without a cache or cluster
		}
		switch {
		case path == control.ExplanationPath:
			path = control.ExplainPath("iqn.2026-11.test:nobody")
		case path == control.EventsPath:
			path += "?follow=false"
		case path == control.WhyPath:
			path += "?initiator=iqn.2026-11.test:nobody&target=iqn.2026-11.test:none"
		case strings.Contains(path, "{"):
			continue // of an object; there is none
		}
		if text := raw(t, api, path); strings.Contains(text, "null") {
			t.Errorf("%s: found null in\n%s", path, text)
		}
		read++
	}
	if read < 6 {
		t.Errorf("%d paths were read, expected all of the description: %v", read, description.Paths)
	}
	if s.stop() != cli.ExitOK {
		t.Errorf("the server failed:\n%s", s.log)
	}
}
