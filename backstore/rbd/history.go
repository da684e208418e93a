package rbd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/backstore/images"
)

// earlierNote is the name of the metadata by which an image has the images that were in its
// place before rollbacks, the newest first: they have snapshots of the volume. Its first word is
// the image's ID, for a clone has its parent's notes.
const earlierNote = "lunar-earlier"

// earlierMost is of how many such images a volume may have snapshots. Each rollback to a newer
// one makes reads that reach what the snapshot had go through one image more.
const earlierMost = 16

// own is what a note says of the image that has it; nil: it is another's, of which this one is
// a clone.
func own(note, id string) []string {
	words := strings.Fields(note)
	if len(words) == 0 || words[0] != id {
		return nil
	}
	return words[1:]
}

// earlier are the images that were in the place of an open one.
func earlier(i Image) (names []string, err error) {
	g, err := i.Geometry()
	if err != nil {
		return nil, err
	}
	note, err := i.Note(earlierNote)
	return own(note, g.ID), err
}

func noteEarlier(i Image, names []string) error {
	g, err := i.Geometry()
	switch {
	case err != nil:
		return err
	case len(names) == 0:
		return i.Annotate(earlierNote, "")
	}
	return i.Annotate(earlierNote, g.ID+" "+strings.Join(names, " "))
}

// beside is an image of the same pool and namespace.
func (n Name) beside(name string) Name {
	n.Image = name
	return n
}

// holder is an image that has snapshots of a volume.
type holder struct {
	name string // empty: it is the volume's
	all  []Snapshot
	keys map[string]string // with which they are enciphered, by name; nil: with none
}

// read fills in what an image has.
func (h *holder) read(of Image) (err error) {
	if h.all, err = of.Snapshots(); err == nil {
		h.keys, err = keysOf(of, h.all)
	}
	return err
}

// holders are all images that have snapshots of the volume; the volume's comes first. One that
// somebody has removed has none.
func (s *snapshots) holders(i Image) (all []holder, err error) {
	var mine holder
	if err := mine.read(i); err != nil {
		return nil, err
	}
	all = []holder{mine}
	names, err := earlier(i)
	for _, name := range names {
		if err == nil {
			h := holder{name: name}
			err = s.with(name, true, h.read)
			all = append(all, h)
		}
		if errors.Is(err, unix.ENOENT) {
			err = nil
		}
	}
	return all, err
}

// holds is the image that has a snapshot.
func (s *snapshots) holds(i Image, snapshot string) (name string, of Snapshot, err error) {
	all, err := s.holders(i)
	for _, h := range all {
		if n := slices.IndexFunc(h.all, func(o Snapshot) bool { return o.Name == snapshot }); n >= 0 {
			return h.name, h.all[n], nil
		}
	}
	if err == nil {
		err = images.ErrNone
	}
	return "", of, err
}

// with calls f with another image of the volume's pool, open for so long.
func (s *snapshots) with(name string, readOnly bool, f func(Image) error) error {
	i, err := s.instance.Open(s.Image.beside(name), readOnly)
	if err != nil {
		return err
	}
	return errors.Join(f(i), i.Close())
}

// on calls f with the image that has a snapshot, for i is the volume's.
func (s *snapshots) on(i Image, snapshot string, readOnly bool, f func(Image) error) (holder string, err error) {
	holder, _, err = s.holds(i, snapshot)
	switch {
	case err != nil:
		return "", err
	case holder == "":
		return "", f(i)
	}
	return holder, s.with(holder, readOnly, f)
}

// discard gives back what an image takes that was in the volume's place: all of it, if it has no
// snapshots and nothing depends on it. What it held last is nobody's, unless a snapshot has it.
func (s *snapshots) discard(name string) error {
	var all []Snapshot
	err := s.with(name, true, func(of Image) (err error) { all, err = of.Snapshots(); return err })
	if err == nil && len(all) == 0 {
		err = s.instance.Remove(s.Image.beside(name))
	}
	switch {
	case err == nil && len(all) > 0, errors.Is(err, unix.EBUSY), errors.Is(err, unix.ENOTEMPTY): // clones live on it
		err = s.with(name, false, empty)
	case errors.Is(err, unix.ENOENT):
		return nil
	}
	if err != nil {
		err = fmt.Errorf("give back image %s, which was in its place before: %w", s.Image.beside(name), err)
	}
	return err
}

// empty gives back what an image holds, but not its snapshots.
func empty(i Image) error {
	g, err := i.Geometry()
	if err != nil || g.Size == 0 {
		return err
	}
	return i.Resize(0)
}

// forget discards images without snapshots, and forgets those that are not there any more. The
// image has its lock.
func (s *snapshots) forget(i Image) error {
	names, err := earlier(i)
	if len(names) == 0 || err != nil {
		return err
	}
	all, err := s.holders(i)
	left := slices.Clone(names)
	for _, h := range all[min(1, len(all)):] {
		if len(h.all) > 0 {
			continue
		}
		if wrong := s.discard(h.name); wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		gone := s.with(h.name, true, func(Image) error { return nil })
		if errors.Is(gone, unix.ENOENT) {
			left = slices.DeleteFunc(left, func(n string) bool { return n == h.name })
		}
	}
	if err != nil || len(left) == len(names) {
		return err
	}
	return noteEarlier(i, left)
}
