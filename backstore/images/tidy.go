package images

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"lunar/internal/durable"
)

// Tidy implements Images.
func (f *files) Tidy(serves func(path string) bool) error {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	half := map[string]bool{}
	for _, e := range entries {
		for _, suffix := range []string{makingSuffix, placeSuffix, placeSuffix + durable.Half} {
			hidden, made := strings.CutSuffix(e.Name(), suffix)
			if name, ok := strings.CutPrefix(hidden, "."); made && ok {
				half[name] = true
			}
		}
	}
	for name := range half {
		if name == ofRestore {
			err = errors.Join(err, f.tidyRestoration())
		} else {
			err = errors.Join(err, f.tidy(name, serves))
		}
		err = errors.Join(err, durable.Remove(f.at("."+name+placeSuffix+durable.Half)))
	}
	return err
}

// tidy removes what is half-made of one name. What is locked is still being made.
func (f *files) tidy(name string, serves func(path string) bool) error {
	note := f.at("." + name + placeSuffix)
	text, err := os.ReadFile(note)
	places := strings.Split(string(text), betweenPlaces)
	place := places[0]
	placed := err == nil && sameFile(place, f.making(name))
	if placed && serves(place) { // and has it locked
		return errors.Join(os.Remove(f.making(name)), os.Remove(note))
	}
	if placed {
		if err := removeUnlocked(place); err != nil {
			return err
		}
		for _, with := range places[1:] {
			if err := durable.Remove(with); err != nil {
				return err
			}
		}
	}
	if err := removeUnlocked(f.making(name)); err != nil && !errors.Is(err, ErrUsed) {
		return err
	}
	return durable.Remove(note)
}
