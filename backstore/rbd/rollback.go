package rbd

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// A rollback has a clone of a snapshot change names with the volume's image. Each of both has a
// note of it before any name changes, by which whoever opens the volume next ends what was
// broken off, under the image's lock. librbd gives an image its name in three steps: it may have
// been broken off between them, and the image has two names then, of which the pool's list
// has one.

// rollbackNote is the name of the metadata of an image that takes part in a rollback.
const rollbackNote = "lunar-rollback"

// Endings of names of images beside a volume's.
const (
	freshEnding   = ".lunar-new" // of the clone, until it is in the volume's place
	earlierEnding = ".lunar-"    // of the image that was there before, with its ID
)

// part is what an image does in a rollback.
type part struct {
	takes   bool   // it is the clone, which takes the volume's name; else the image that gives it
	earlier string // name that the image which gives has afterwards
	keep    string // of the snapshot with what that holds; noKeep: there is none
}

const noKeep = "-"

func (p part) note(id string) string {
	does := "gives"
	if p.takes {
		does = "takes"
	}
	return strings.Join([]string{id, does, p.earlier, p.keep}, " ")
}

// partOf is what an open image does in a rollback; nil: it takes no part in one.
func partOf(i Image) (p *part, id string, err error) {
	g, err := i.Geometry()
	if err != nil {
		return nil, "", err
	}
	note, err := i.Note(rollbackNote)
	if words := own(note, g.ID); err == nil && len(words) == 3 {
		p = &part{words[0] == "takes", words[1], words[2]}
	}
	return p, g.ID, err
}

func (s *Store) fresh() Name { return s.Image.beside(s.Image.Image + freshEnding) }

// errNames says that the volume's name was taken from an image that does not have it any more.
var errNames = errors.New("names of images have changed")

// straighten ends or undoes a change of names that was broken off. The image is the one that was
// found by the volume's name, and has its lock.
func (s *Store) straighten(i Image) error {
	p, id, err := partOf(i)
	if p == nil || err != nil {
		return err
	}
	other := s.Image.beside(p.earlier)
	if p.takes {
		other = s.fresh()
	}
	listed := s.Image.Image
	twin, err := s.instance.Open(other, true)
	if err == nil {
		err = twin.Close()
		if err == nil {
			listed, err = s.instance.Listed(s.Image, id)
		}
	} else if errors.Is(err, unix.ENOENT) { // the usual: it has one name
		err = nil
	}
	switch {
	case err != nil:
		return err
	case listed == s.Image.Image && p.takes:
		return errors.Join(s.instance.Unname(other, id), i.Annotate(rollbackNote, ""))
	case listed == s.Image.Image: // snapshots.Tidy does the rest
		return s.instance.Unname(other, id)
	case listed == other.Image:
		return errors.Join(errNames, s.instance.Unname(s.Image, id))
	default:
		return fmt.Errorf("found it listed as %q amid a rollback, expected %s or %s", listed, s.Image.Image, other.Image)
	}
}

// forward ends a rollback between whose changes of names it was broken off: nothing has the
// volume's name. why is returned if there was none.
func (s *Store) forward(why error) error {
	i, err := s.instance.Open(s.fresh(), false)
	if errors.Is(err, unix.ENOENT) {
		return why
	}
	if err != nil {
		return err
	}
	p, _, err := partOf(i)
	switch {
	case err == nil && (p == nil || !p.takes):
		err = why
	case err == nil:
		if err = s.lock(i, nil); err == nil {
			err = s.instance.Rename(s.fresh(), s.Image)
		}
		if err == nil {
			s.Logger.Warn("a rollback that was broken off has been ended: the image holds what the snapshot has", "image", s.Image)
			err = i.Annotate(rollbackNote, "")
		}
	}
	return errors.Join(err, i.Close())
}
