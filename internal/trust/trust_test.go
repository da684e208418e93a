package trust

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestJudge is the rule for a server of user 7, group 7.
func TestJudge(t *testing.T) {
	const none, slight, grave = "none", "slight", "grave"
	for _, test := range []struct {
		name     string
		mode     uint32
		uid, gid uint32
		itself   string // the verdict on what is relied upon
		above    string // and on a directory above it
	}{
		{"own", 0o700, 7, 7, none, none},
		{"root's, readable", 0o755, 0, 0, none, none},
		{"everybody's", 0o757, 7, 7, grave, grave},
		{"everybody's, sticky", 0o1777, 0, 0, grave, none},
		{"its own group's", 0o770, 7, 7, slight, slight},
		{"root's group's", 0o775, 0, 0, none, none},
		{"another group's", 0o770, 7, 8, grave, slight},
		{"another user's", 0o700, 9, 9, slight, none},
		{"another user's, for everybody", 0o777, 9, 9, grave, grave},
		{"of a user without a number", 0o700, overflow, overflow, none, none},
	} {
		verdict := func(above bool) string {
			stat := &syscall.Stat_t{Mode: test.mode, Uid: test.uid, Gid: test.gid}
			switch d, doubtful := (step{"/p", stat, above}).judge(7, 7); {
			case d.Grave:
				return grave
			case doubtful:
				return slight
			}
			return none
		}
		if got := verdict(false); got != test.itself {
			t.Errorf("%s: found %s, expected %s", test.name, got, test.itself)
		}
		if got := verdict(true); got != test.above {
			t.Errorf("%s, above: found %s, expected %s", test.name, got, test.above)
		}
	}
}

// place makes directories and files below a temporary directory, by mode.
func place(t *testing.T, modes ...any) string {
	root := t.TempDir()
	for i := 0; i < len(modes); i += 2 {
		path, mode := filepath.Join(root, modes[i].(string)), os.FileMode(modes[i+1].(int))
		var err error
		if filepath.Ext(path) == "" {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, nil, 0o600)
		}
		if err = errors.Join(err, syscall.Chmod(path, uint32(mode))); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestCheck on a file system.
func TestCheck(t *testing.T) {
	root := place(t,
		"open", 0o777, "open/f.yaml", 0o600, "open/d", 0o700,
		"sticky", 0o1777, "sticky/f.yaml", 0o600, "sticky/bad.yaml", 0o666,
		"safe", 0o755, "safe/f.yaml", 0o644)
	link := func(to, at string) {
		if err := os.Symlink(to, filepath.Join(root, at)); err != nil {
			t.Fatal(err)
		}
	}
	link("../open/f.yaml", "safe/leads-out.yaml")
	link(filepath.Join(root, "safe"), "safe/absolute")
	link("../safe/./f.yaml", "open/leads-in.yaml")
	link("loop", "safe/loop")
	for path, culprit := range map[string]string{
		"safe/f.yaml":           "",
		"safe/absolute/f.yaml":  "",
		"safe/missing/deep":     "",
		"sticky/f.yaml":         "",
		"sticky":                "sticky",
		"sticky/bad.yaml":       "sticky/bad.yaml",
		"open/f.yaml":           "open",
		"open/d":                "open",
		"open/missing":          "open",
		"safe/leads-out.yaml":   "open",
		"open/leads-in.yaml":    "open",
		"safe/../open/d/../d/.": "open",
	} {
		err := Check(filepath.Join(root, "safe")+"/../"+path, nil)
		var grave Error
		switch {
		case culprit == "" && err != nil:
			t.Errorf("%s: %v", path, err)
		case culprit != "" && (!errors.As(err, &grave) || grave.Path != filepath.Join(root, culprit)):
			t.Errorf("%s: found %v, expected %s to be the reason", path, err, culprit)
		}
	}
	if err := Check(filepath.Join(root, "safe/loop"), nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
	if err := Check("/dev/null", nil); err != nil {
		t.Errorf("a device: %v", err)
	}
}

// TestDirectoriesBehindLinksAreSeen: every directory that a link leads through is seen.
func TestDirectoriesBehindLinksAreSeen(t *testing.T) {
	root := place(t, "a", 0o700, "b", 0o700, "b/c", 0o700, "b/c/f.yaml", 0o600)
	if err := os.Symlink("../b/c/f.yaml", filepath.Join(root, "a/f.yaml")); err != nil {
		t.Fatal(err)
	}
	var seen []string
	err := walk(filepath.Join(root, "a/f.yaml"), func(s step) { seen = append(seen, s.path) })
	for _, want := range []string{"/", "a", "b", "b/c", "b/c/f.yaml"} {
		if want != "/" {
			want = filepath.Join(root, want)
		}
		if err != nil || !slices.Contains(seen, want) {
			t.Errorf("found %v, %v, expected %s among it", seen, err, want)
		}
	}
}
