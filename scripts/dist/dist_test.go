// Package dist makes packages and a container image (dist.sh); its tests look into them.
package dist

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// version is that of the packages of the tests.
const version = "9.8.7"

// made are the files of this tree for this machine, made once if a test needs them.
var made = sync.OnceValues(func() (said string, err error) {
	return makeDist(madeIn)
})

var madeIn string // directory of what made makes

func TestMain(m *testing.M) {
	var err error
	if madeIn, err = os.MkdirTemp("", "dist"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(madeIn)
	os.Exit(status)
}

// makeDist runs dist.sh with more of an environment.
func makeDist(dir string, environment ...string) (string, error) {
	run := exec.Command("./dist.sh", dir)
	run.Env = append(append(os.Environ(), "VERSION="+version, "ARCHITECTURES="+runtime.GOARCH, "SOURCE_DATE_EPOCH=1700000000", "PACKAGES=lunar"), environment...)
	out, err := run.CombinedOutput()
	return string(out), err
}

// distFiles returns the directory of the files.
func distFiles(t *testing.T) string {
	t.Helper()
	if said, err := made(); err != nil {
		t.Fatalf("dist.sh: %v\n%s", err, said)
	}
	return madeIn
}

// TestReproducible: another place, time zone, mask and home make the same bytes.
func TestReproducible(t *testing.T) {
	first, again := distFiles(t), t.TempDir()
	if out, err := makeDist(again, "TMPDIR="+t.TempDir(), "TZ=Asia/Tokyo", "LC_ALL=C"); err != nil {
		t.Fatalf("dist.sh: %v\n%s", err, out)
	}
	names, err := filepath.Glob(first + "/*")
	if err != nil || len(names) != 4 {
		t.Fatalf("found %q, expected a deb, an rpm, an image and checksums", names)
	}
	for _, name := range names {
		one, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(again, filepath.Base(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, other) {
			t.Errorf("%s: the second one differs", filepath.Base(name))
		}
	}
}

// need skips a test without a program.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("no %s: run scripts/setup/packages.sh test", program)
	}
}

// unpacked is what the Debian package has.
func unpacked(t *testing.T) string {
	t.Helper()
	need(t, "dpkg-deb")
	debs, _ := filepath.Glob(distFiles(t) + "/*.deb")
	dir := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-R", debs[0], dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// TestPackage: the programs are of the version and beside those of the package tgt, the
// configuration is right, and nobody else may read it.
func TestPackage(t *testing.T) {
	root := unpacked(t)
	for _, test := range []struct{ program, want string }{{"usr/libexec/lunar/tgtd", "tgtd " + version}, {"usr/bin/lunar", "lunar " + version}} {
		out, err := exec.Command(filepath.Join(root, test.program), "version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), test.want+" ") {
			t.Errorf("%s: found %q, %v, expected %s", test.program, out, err, test.want)
		}
	}
	config := filepath.Join(root, "etc/lunar/tgtd.yaml")
	out, err := exec.Command(filepath.Join(root, "usr/libexec/lunar/tgtd"), "check", config, "--state-dir", t.TempDir()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ok: 0 targets") {
		t.Errorf("the configuration: %v, %s", err, out)
	}
	if info, err := os.Stat(config); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the configuration: found %v, %v, expected mode 640", info, err)
	}
	text, err := os.ReadFile(filepath.Join(root, "DEBIAN/conffiles"))
	if err != nil || strings.TrimSpace(string(text)) != "/etc/lunar/tgtd.yaml" {
		t.Errorf("conffiles: found %q, %v", text, err)
	}
	for _, other := range []string{"usr/sbin/tgtd", "usr/bin/tgtd", "usr/share/man/man8/tgtd.8.gz", "etc/tgt"} { // of tgt
		if _, err := os.Lstat(filepath.Join(root, other)); err == nil {
			t.Errorf("found /%s, which is the package tgt's", other)
		}
	}
	for _, step := range []string{"postinst", "prerm", "postrm"} {
		if out, err := exec.Command("sh", "-n", filepath.Join(root, "DEBIAN", step)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", step, err, out)
		}
	}
}

// TestManual: man pages and completions name every command, and those who read them find
// no mistake.
func TestManual(t *testing.T) {
	root := unpacked(t)
	for _, test := range []struct {
		program string
		args    []string
		file    string
	}{
		{"mandoc", []string{"-Tlint", "-Wwarning"}, "usr/share/man/man8/lunar.8"},
		{"mandoc", []string{"-Tlint", "-Wwarning"}, "usr/share/man/man8/lunar-tgtd.8"},
		{"bash", []string{"-n"}, "usr/share/bash-completion/completions/lunar"},
		{"zsh", []string{"-n"}, "usr/share/zsh/vendor-completions/_lunar"},
		{"fish", []string{"-n"}, "usr/share/fish/vendor_completions.d/lunar.fish"},
	} {
		t.Run(test.program+" "+filepath.Base(test.file), func(t *testing.T) {
			need(t, test.program)
			path := filepath.Join(root, test.file)
			if out, err := exec.Command("gunzip", path+".gz").CombinedOutput(); strings.Contains(test.file, "/man/") && err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if out, err := exec.Command(test.program, append(test.args, path)...).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			words := []string{"apply", "reservations", "json"}
			if strings.Contains(test.file, "tgtd") {
				words = []string{"serve", "check", "config"}
			}
			for _, word := range words {
				if !strings.Contains(string(text), word) {
					t.Errorf("found no %s", word)
				}
			}
		})
	}
}

// TestCompletion: bash completes commands, flags and their values.
func TestCompletion(t *testing.T) {
	root := unpacked(t)
	for line, want := range map[string][]string{
		"lunar qos s":        {"show", "set"},
		"lunar appl":         {"apply"},
		"lunar apply --dry":  {"--dry-run"},
		"lunar-tgtd se":      {"serve"},
		"lunar-tgtd serve x": nil,
	} {
		words := strings.Fields(line)
		script := `source "$1"; COMP_WORDS=(${@:2}); COMP_CWORD=$(($# - 2)); _${2//-/_} 2>/dev/null; printf '%s\n' "${COMPREPLY[@]}"`
		args := append([]string{"-c", script, "bash", filepath.Join(root, "usr/share/bash-completion/completions", words[0])}, words...)
		out, err := exec.Command("bash", args...).Output()
		if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: found %q, %v, expected %q", line, got, err, want)
		}
	}
}
