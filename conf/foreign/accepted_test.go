package foreign

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/daemon"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// rounds is how many files of each format are made.
const rounds = 30

// TestCheckAccepts: tgtd check accepts what is made of any file, and nothing but the
// settings of the file that is made has a secret.
func TestCheckAccepts(t *testing.T) {
	for _, format := range Formats {
		t.Run(format, func(t *testing.T) {
			made := 0
			for seed := range uint64(rounds) {
				dir := t.TempDir()
				text := generators[format](&source{rand.New(rand.NewPCG(seed, 1)), t, dir, 0})
				c, err := Convert(format, File{"f", []byte(text)}, nil)
				if err != nil {
					if strings.Contains(err.Error(), secretMark) {
						t.Fatalf("seed %d: the error has a secret: %v", seed, err)
					}
					if !strings.Contains(err.Error(), "nothing of it") {
						t.Fatalf("seed %d: %v\n%s", seed, err, text)
					}
					continue
				}
				for _, n := range c.Notes {
					if strings.Contains(n.String(), secretMark) {
						t.Fatalf("seed %d: a note has a secret: %v", seed, n)
					}
				}
				made += accepted(t, seed, dir, c, text)
			}
			if made < rounds/2 {
				t.Errorf("%d targets were made of %d files: the test proves nothing", made, rounds)
			}
		})
	}
}

// accepted has tgtd check a file, and returns how many targets it has.
func accepted(t *testing.T, seed uint64, dir string, c *Converted, text string) int {
	t.Helper()
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, c.YAML, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, log eventually.Output
	if err := (daemon.CheckOptions{File: file, StateDir: filepath.Join(dir, "state")}).Check(cli.Console{Out: &out, Err: &log}); err != nil {
		t.Fatalf("seed %d: %v\n%s\nmade of\n%s", seed, err, c.YAML, text)
	}
	cfg, _, err := conf.ParseDraft("f", c.YAML)
	if err != nil {
		t.Fatal(err)
	}
	for _, tgt := range cfg.Targets {
		for _, r := range tgt.Access {
			if r.AuthGroup == "" && strings.Contains(text, fmt.Sprintf(`"wwn": %q, "tpgs": [{"tag": 1, "attributes": {"authentication": 1`, tgt.Name)) {
				t.Fatalf("seed %d: target %s became open", seed, tgt.Name)
			}
		}
	}
	return len(cfg.Targets)
}

// FuzzConvert: whatever a file has in it, Convert makes a configuration that conf accepts
// or returns an error. Its memory is bounded by the length of the file.
func FuzzConvert(f *testing.F) {
	for i, format := range Formats {
		f.Add(i, sample(f, format))
	}
	f.Add(1, []byte("<target x>\nbacking-store NONE:\\\n</target>"))
	f.Add(4, []byte("lun \"a\" { } target eui.0123456789abcdef { auth-group no-authentication lun 0 a }"))
	f.Fuzz(func(t *testing.T, format int, data []byte) {
		if format < 0 || format >= len(Formats) || len(data) > 1<<16 {
			return
		}
		c, err := Convert(Formats[format], File{"f", data}, drop)
		if err != nil {
			if strings.Contains(err.Error(), "does not accept") {
				t.Fatal(err)
			}
			return
		}
		if _, _, err := conf.ParseDraft("f", c.YAML); err != nil {
			t.Fatalf("%v\n%s", err, c.YAML)
		}
	})
}
