package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"lunar/control"
)

// TestOpenAPIFile: the document that is checked in is the one that is served.
func TestOpenAPIFile(t *testing.T) {
	const path = "../openapi.json"
	_, c := serve(t, control.Status{})
	_, _, body := request(t, c, "GET", "http://control/openapi.json")
	var got bytes.Buffer
	if err := json.Indent(&got, []byte(body), "", " "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is stale (%v): go test ./control/server -run TestOpenAPIFile -update writes it anew; read the difference", path, err)
	}
}
