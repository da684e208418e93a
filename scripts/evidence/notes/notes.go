// Package notes keeps the results of the checks of scripts/evidence, by name, as JSON that
// is checked in, and renders the documents that report them.
package notes

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// Read returns results by check; none if there is no file yet.
func Read[T any](path string) (map[string]T, error) {
	results := map[string]T{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &results)
	}
	return results, err
}

// Write replaces the file, and makes its directory if there is none.
func Write[T any](path string, results map[string]T) error {
	text, err := json.MarshalIndent(results, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, append(text, '\n'), 0o644))
}

// Render writes the document that a text/template makes of the contents.
func Render(path, text string, contents any) error {
	var out strings.Builder
	if err := template.Must(template.New(path).Parse(text)).Execute(&out, contents); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(out.String()), 0o644)
}
