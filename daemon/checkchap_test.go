package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestCheckCHAP: check names each group once that allows MD5 beside something stronger,
// be it by default, and no other.
func TestCheckCHAP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tgtd.yaml")
	writeFile(t, file, `
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
auth-groups:
  default: {chap: [{user: a, secret: "the first secret"}, {user: b, secret: "another secret"}]}
  mixed: {chap: [{user: a, secret: "the first secret"}], algorithms: [md5, sha256]}
  strong: {chap: [{user: a, secret: "the first secret"}], algorithms: [sha3-256, sha1]}
  weak: {chap: [{user: a, secret: "the first secret"}], algorithms: [md5]}
  nobody: {initiators: ["iqn.2026-11.test:a"]}
`)
	var out, log eventually.Output
	if status := run(t.Context(), []string{"check", file}, cli.Console{Out: &out, Err: &log}); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, &log)
	}
	for _, want := range []string{
		"auth-groups.default.algorithms: found md5 beside sha3-256, sha256, sha1: ",
		"auth-groups.mixed.algorithms: found md5 beside sha256: ",
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("found\n%s\nexpected once %q", &out, want)
		}
	}
	if n := strings.Count(out.String(), "found md5"); n != 2 {
		t.Errorf("found %d notes, expected 2:\n%s", n, &out)
	}
}
