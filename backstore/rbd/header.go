package rbd

import "fmt"

// HeaderNote is the name of the metadata by which an image tells with which header it is
// enciphered. A clone has its parent's notes, and its data.
const HeaderNote = "lunar-header"

// keyNote begins the name of the metadata by which an image has with which key one of its
// snapshots is enciphered.
const keyNote = "lunar-key-"

// Header returns what NoteHeader has noted; empty: the image is not enciphered.
func (s *Store) Header() (note string, err error) {
	return ask(s, "note of the header", func(i Image) (string, error) { return i.Note(HeaderNote) })
}

// NoteHeader notes with which header the image is enciphered.
func (s *Store) NoteHeader(note string) error {
	_, err := ask(s, "note the header", func(i Image) (struct{}, error) { return struct{}{}, i.Annotate(HeaderNote, note) })
	return err
}

// Blank reports whether the image holds nothing, so that nothing is lost when it is
// enciphered from now on.
func (s *Store) Blank() (bool, error) {
	return ask(s, "what it holds", func(i Image) (bool, error) { return blank(i, s.Info().Size) })
}

func blank(i Image, size int64) (bool, error) {
	for at := int64(0); at < size; {
		mapped, n, err := i.Mapped(at, size-at)
		if err != nil || mapped || n <= 0 {
			return false, err
		}
		at += n
	}
	return true, nil
}

// ask calls the open image, for as long as the cluster may take to answer.
func ask[T any](s *Store, what string, f func(Image) (T, error)) (out T, err error) {
	out, err = within(s.Patience, func() (out T, err error) {
		err = s.use(func(i Image) error { out, err = f(i); return err })
		return out, err
	}, nil)
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", s.what, what, err)
	}
	return out, err
}

// noteKey notes with which key a snapshot is enciphered, which is about to be made; empty: with
// none.
func noteKey(i Image, snapshot, key string) error {
	if key == "" {
		return nil
	}
	return i.Annotate(keyNote+snapshot, key)
}

// keysOf are the keys of the snapshots that an image has.
func keysOf(i Image, all []Snapshot) (map[string]string, error) {
	enciphered, err := i.Note(HeaderNote)
	if enciphered == "" || err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, s := range all {
		if keys[s.Name], err = i.Note(keyNote + s.Name); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
