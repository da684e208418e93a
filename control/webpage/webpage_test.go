package webpage

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func get(method, path, tag string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("If-None-Match", tag)
	if !Serve(w, r) {
		return nil
	}
	return w
}

// TestServe: each file comes with its type and with what keeps it to itself, and once more
// only if it has changed.
func TestServe(t *testing.T) {
	for path, kind := range map[string]string{"/page/": "text/html; charset=utf-8", "/page/page.js": "text/javascript; charset=utf-8", "/page/page.css": "text/css; charset=utf-8", "/page/icon.svg": "image/svg+xml"} {
		w := get(http.MethodGet, path, "")
		if w == nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != kind || w.Body.Len() == 0 {
			t.Fatalf("%s: found %+v", path, w)
		}
		for _, header := range []string{"Content-Security-Policy", "X-Frame-Options", "X-Content-Type-Options", "Referrer-Policy"} {
			if w.Header().Get(header) == "" {
				t.Errorf("%s: found no %s", path, header)
			}
		}
		if w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: found a cookie", path)
		}
		if again := get(http.MethodGet, path, w.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s: found %d the second time", path, again.Code)
		}
	}
	for _, path := range []string{"/page", "/page/none", "/page/LICENSE-lit-html", "/v1/status", "/page/../page/page.js"} {
		if get(http.MethodGet, path, "") != nil {
			t.Errorf("%s is served", path)
		}
	}
	if get(http.MethodPost, "/page/", "") != nil {
		t.Error("POST is served")
	}
	if w := get(http.MethodGet, "/", ""); w.Header().Get("Location") != Path {
		t.Errorf("/ leads to %q", w.Header().Get("Location"))
	}
}

// elsewhere is what would make a browser ask somebody else, or run or apply a text of the
// document, which the policy refuses.
var elsewhere = regexp.MustCompile(`(?i)(src|href|action)\s*=\s*["']?(https?:)?//|url\(\s*["']?(https?:)?//|@import|\sstyle=["']|\son[a-z]+=["']|javascript:|innerHTML|eval\(|localStorage|document\.cookie`)

// TestNothingElsewhere: the page's own files ask nobody else, have no text that the policy
// refuses, and keep nothing beyond the tab.
func TestNothingElsewhere(t *testing.T) {
	for path, f := range files {
		if strings.HasSuffix(path, "lit-html.js") {
			continue // it makes its templates of constants of the page
		}
		if found := elsewhere.FindString(string(f.text)); found != "" {
			t.Errorf("%s: found %q", path, found)
		}
	}
	if n := strings.Count(string(files[Path].text), "<script"); n != 1 {
		t.Errorf("index.html: found %d scripts, expected one with a file", n)
	}
}

// TestLibrary: lit-html is the file of the published package, byte for byte. A newer one has
// other numbers here, in docs/internals/dependencies.md and in scripts/webpage/library.sh.
func TestLibrary(t *testing.T) {
	const version, digest = "3.3.3", "b878e7f95dec8a9b6e9b217faca6b6a11bad82ebc44c0caa77419ed83edd81f2"
	if got := fmt.Sprintf("%x", sha256.Sum256(files[Path+"lit-html.js"].text)); got != digest {
		t.Errorf("found lit-html.js with digest %s, expected that of version %s, %s", got, version, digest)
	}
	text, err := os.ReadFile("../../scripts/webpage/library.sh")
	if err != nil || !strings.Contains(string(text), "lit-html@"+version) {
		t.Errorf("scripts/webpage/library.sh fetches another version than %s (%v)", version, err)
	}
	if license, err := os.ReadFile("LICENSE-lit-html"); err != nil || !strings.Contains(string(license), "BSD 3-Clause") {
		t.Errorf("the license of lit-html: %v", err)
	}
}

// TestFigures runs what the page makes of figures, which knows of no document.
func TestFigures(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node, which scripts/setup installs for make test: ", err)
	}
	out, err := exec.CommandContext(t.Context(), node, "--test", "--test-reporter=tap", "testdata/figures.test.mjs").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
