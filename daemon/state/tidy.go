package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"lunar/conf"
	"lunar/internal/durable"
)

// Tidy removes the small files of a state directory that somebody was writing who was
// killed. Nobody else may use the directory meanwhile.
func Tidy(dir string) error {
	var errs []error
	for _, name := range conf.StateNames {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, ".json") {
			errs = append(errs, removeFile(path+durable.Half))
		}
		entries, _ := os.ReadDir(path) // of a file there are none; whoever needs a directory tells of it
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".json"+durable.Half) {
				errs = append(errs, removeFile(filepath.Join(path, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// removeFile removes a file, if there is one.
func removeFile(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return os.Remove(path)
}
