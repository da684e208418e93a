package webpage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// Path is where the page is.
const Path = "/page/"

//go:embed files
var tree embed.FS

// headers are sent with each file. Nothing but the page's own files and its own server's
// answers is used, nobody may have it in a frame, and no text becomes a script; lit-html
// makes its templates under a name of its own.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types lit-html",
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-cache",
}

// types are those of the files, whatever the system knows.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

type file struct {
	text []byte
	kind string
	tag  string // which browsers have it by
}

// files are the page's, by path.
var files = load()

func load() map[string]file {
	all := map[string]file{}
	err := fs.WalkDir(tree, "files", func(name string, d fs.DirEntry, err error) error {
		kind := types[path.Ext(name)]
		if err != nil || kind == "" {
			return err
		}
		text, err := tree.ReadFile(name)
		all[Path+strings.TrimPrefix(name, "files/")] = file{text, kind, fmt.Sprintf(`"%x"`, sha256.Sum256(text))}
		return err
	})
	if err != nil {
		panic(err) // they are in the program
	}
	all[Path] = all[Path+"index.html"]
	return all
}

// Serve answers a request for one of the page's files; false: it is for something else, and
// nothing was answered. Whoever reaches the server may have them: they hold nothing of it.
func Serve(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if r.URL.Path == "/" {
		http.Redirect(w, r, Path, http.StatusSeeOther)
		return true
	}
	f, ok := files[r.URL.Path]
	if !ok {
		return false
	}
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.text))
	return true
}
