package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse: no text makes the parser panic, what it accepts means the same
// when it is read again, and when it is printed and that is read, and every error has a message.
func FuzzParse(f *testing.F) {
	f.Add(DefaultFile)
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range append(printFiles, diffFile) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "secret-file") {
			return // it would read whatever the fuzzer names
		}
		c, _, err := Parse("fuzz", data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a message")
			}
			return
		}
		if again, _, _ := Parse("fuzz", data); !reflect.DeepEqual(c, again) {
			t.Error("two readings differ")
		}
		text, again := roundTrip(t, c)
		if differ := Diff(unshown(c), unshown(again)); len(differ) > 0 {
			t.Errorf("it differs in %q, printed as\n%s", differ, text)
		}
	})
}

// TestTruncated: every prefix of a valid file is either valid or has a
// message, and none shows the secret.
func TestTruncated(t *testing.T) {
	text := "log: {level: info}\nauth-groups:\n  g:\n    chap:\n      - user: a\n        secret: \"hunter2hunter2\"\n      - {user: b, secret: 'hunter2hunter3', x: 1}\n"
	for i := range len(text) {
		if _, _, err := Parse("cut", []byte(text[:i])); err != nil && strings.Contains(err.Error(), "hunter") {
			t.Fatalf("cut at byte %d, a secret shows:\n%v", i, err)
		}
	}
}
