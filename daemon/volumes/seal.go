package volumes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/rbd"
	"lunar/cluster"
	"lunar/cluster/heritage"
	"lunar/cluster/seal"
	"lunar/conf"
)

// sealing is where the header of an encrypted volume is kept while this server owns it: in the
// cluster's state, which refuses what a superseded owner stores. It implements crypt.Place.
type sealing struct {
	seal.Seal // as it is stored; without a header there is none
	ledger    *heritage.Ledger
	ctx       context.Context // of the claim
	name      string          // of the image, as the configuration has it
	image     *rbd.Store      // that is open
	id        crypt.ID
	mark      string // of the master key in the header
	log       *slog.Logger
}

// unseal reads the header of a volume that is to be encrypted, and tries the keys: nothing was
// asked of Ceph yet. nil: it is not encrypted.
func (s *Shared) unseal(ctx context.Context, epoch uint64) (*sealing, error) {
	e := s.encryption.Load()
	if e == nil {
		return nil, nil
	}
	key := s.set.Cluster.Keys.Header(s.volume.Name)
	ledger, value, err := s.set.Cluster.Inherit(ctx, s.volume.Name, epoch, key)
	if err != nil {
		return nil, fmt.Errorf("the header of its encryption: %w", err)
	}
	p := &sealing{ledger: ledger, name: s.volume.Image, log: s.image.Logger}
	if p.Seal, err = seal.Parse(value); err != nil {
		return nil, fmt.Errorf("the header of its encryption, which is the key %q of the cluster's state: %w", key, err)
	}
	if err = belongs(&p.Seal, &s.volume); err == nil {
		_, _, p.id, p.mark, err = unwrapped(e, s.volume.BlockSize, p.Header)
	}
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	return p, nil
}

// belongs refuses the header of another image.
func belongs(s *seal.Seal, v *conf.Volume) error {
	if s.Image == "" || s.Image == v.Image {
		return nil
	}
	return fmt.Errorf("found the header of image %s in the cluster's state, expected that of %s: save it (lunar cluster header save %s FILE), remove it (lunar cluster header remove %[3]s), and restore that of %[2]s if it has one", s.Image, v.Image, v.Name)
}

// unwrapped reads the keys of an encryption, and tries them on a header; nil: there is none yet. Old
// is nil if there is none, or none is needed.
func unwrapped(e *conf.VolumeEncryption, block int, header []byte) (key, old *crypt.Key, id crypt.ID, mark string, err error) {
	if key, err = crypt.ReadKey(e.KeyFile); err != nil {
		return nil, nil, id, "", err
	}
	var lacking error // matters only if the old key is needed
	if e.OldKeyFile != "" {
		old, lacking = crypt.ReadKey(e.OldKeyFile)
	}
	if header == nil {
		return key, old, id, "", nil
	}
	if id, mark, err = crypt.Unwrap(header, key, old, block); err != nil {
		err = errors.Join(fmt.Errorf("header in the cluster's state: %w", err), lacking)
	}
	return key, old, id, mark, err
}

// encipher puts encryption around the image of a volume that is to have it. It owns the image,
// also on failure.
func (s *Shared) encipher(image *rbd.Store, p *sealing) (backstore.Store, error) {
	store, err := s.enciphered(image, p)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("encryption: %w", err), image.Close())
	}
	return store, nil
}

func (s *Shared) enciphered(image *rbd.Store, p *sealing) (backstore.Store, error) {
	if p == nil {
		return image, imageInClear(image)
	}
	p.image = image
	key, old, _, _, err := unwrapped(s.encryption.Load(), s.volume.BlockSize, p.Header)
	if err == nil && p.Header == nil {
		err = p.begin(key, &s.volume)
	}
	if err == nil {
		err = p.fits()
	}
	if err != nil {
		return nil, err
	}
	cipher, err := crypt.Open(crypt.Config{Data: image, Header: p, Key: key, OldKey: old, Block: s.volume.BlockSize, Logger: p.log})
	if err != nil {
		return nil, err
	}
	s.cipher.Store(cipher)
	return cipher, nil
}

// imageInClear refuses to serve cipher text as if it were data.
func imageInClear(image *rbd.Store) error {
	note, err := image.Header()
	if err == nil && note != "" {
		err = fmt.Errorf("found that %s is enciphered (its metadata %s is %q), and no encryption in the configuration: it would be served as cipher text, and spoilt by writes. Put encryption back", image.Info().Describe, rbd.HeaderNote, note)
	}
	return err
}

// begin makes the first header of a volume that has nothing to lose.
func (p *sealing) begin(key *crypt.Key, v *conf.Volume) error {
	blank, err := p.image.Blank()
	if err != nil {
		return err
	}
	note, err := p.image.Header()
	switch {
	case err != nil:
		return err
	case !blank && note != "":
		return fmt.Errorf("found that image %s is enciphered with header %s, which the cluster's state does not have: restore it from its copy (lunar cluster header restore %s FILE, or the state's backup); without it nothing gives the data back", p.name, note, v.Name)
	case !blank:
		return fmt.Errorf("found data in clear in image %s, expected an image that holds nothing: encrypt them by sending the volume to another one that has encryption (docs/bulk-moves.md)", p.name)
	}
	header, mark := crypt.First(key, v.BlockSize)
	if p.id, _, err = crypt.Unwrap(header, key, nil, v.BlockSize); err != nil {
		return err
	}
	if err := p.save(header); err != nil {
		return err
	}
	p.mark = mark
	p.log.Info("the header of an encrypted volume has been made, in the cluster's state: keep a backup of that, and of the key file; without either the data are lost", "header", p.id)
	return p.note(mark)
}

// fits refuses a header that is not the image's: with its master key the data would read as
// noise, and what is written would be lost with the right one.
func (p *sealing) fits() error {
	note, err := p.image.Header()
	if err != nil {
		return err
	}
	words := strings.Fields(note)
	switch {
	case note == "":
		return p.adopt()
	case words[0] != p.id.String():
		return fmt.Errorf("found header %v in the cluster's state, expected %s, with which image %s is enciphered: restore that (lunar cluster header save, remove and restore); if the image is to be given up, give the volume an image that holds nothing", p.id, words[0], p.name)
	case !slices.Contains(words[1:], p.mark):
		return fmt.Errorf("found another master key in the header of the cluster's state than image %s has since a cryptographic erase: restore a copy of the header that was made later (lunar cluster header save, remove and restore)", p.name)
	case len(words) > 2:
		return p.note(p.mark) // an erasure was broken off
	}
	return nil
}

// adopt takes an image that does not say with which header it is enciphered, if it has nothing
// to lose: the header was made, and the image not told.
func (p *sealing) adopt() error {
	blank, err := p.image.Blank()
	switch {
	case err != nil:
		return err
	case !blank:
		return fmt.Errorf("found data in image %s, which does not say with which header they are enciphered: if it is that of the cluster's state, rbd image-meta set %[1]s %s %q", p.name, rbd.HeaderNote, noteOf(p.id, p.mark))
	}
	return p.note(p.mark)
}

// noteOf is the note of an image: which header it is enciphered with, and which master keys that
// may have.
func noteOf(id crypt.ID, marks ...string) string {
	return id.String() + " " + strings.Join(marks, " ")
}

func (p *sealing) note(marks ...string) error { return p.image.NoteHeader(noteOf(p.id, marks...)) }

// Load implements crypt.Place.
func (p *sealing) Load() ([]byte, error) { return p.Header, nil }

// Settle implements crypt.Place. A change is made wholly or not at all.
func (p *sealing) Settle() error { return nil }

// Store implements crypt.Place. With another master key the image is told before that it may have
// either: whoever opens it next refuses an older header, and takes the one that is stored.
func (p *sealing) Store(next []byte, mark string) error {
	if mark == p.mark {
		return p.save(next)
	}
	if err := p.note(p.mark, mark); err != nil {
		return err
	}
	err := p.save(next)
	if err == nil {
		p.mark = mark
	}
	if !errors.Is(err, crypt.ErrDoubt) {
		if late := p.note(p.mark); late != nil { // the next start does it
			p.log.Warn("the image still names two master keys", "error", late)
		}
	}
	return err
}

// save stores a header.
func (p *sealing) save(header []byte) error {
	next := seal.Seal{Image: p.name, Header: header}
	switch err := p.ledger.Store(p.ctx, next.Encode()); {
	case errors.Is(err, heritage.ErrSuperseded), errors.Is(err, cluster.ErrUnknown):
		return errors.Join(crypt.ErrDoubt, err)
	case err != nil:
		return fmt.Errorf("nothing has changed: %w", err)
	}
	p.Seal = next
	return nil
}

// Close implements crypt.Place.
func (p *sealing) Close() error { return nil }

// Reseal has the volume be opened with other key files from now on, and its header wrapped with
// the new one at once if this server owns it. It returns what takes that back.
func (s *Shared) Reseal(e *conf.VolumeEncryption) (undo func() error, err error) {
	was, cipher := s.encryption.Swap(e), s.cipher.Load()
	back := func() error { s.encryption.Store(was); return nil }
	if cipher == nil || was == nil || e == nil || was.KeyFile == e.KeyFile {
		return back, nil
	}
	key, err := crypt.ReadKey(e.KeyFile)
	var before *crypt.Key
	if err == nil {
		before, err = cipher.Rewrap(key)
	}
	if err != nil {
		return nil, errors.Join(err, back())
	}
	return func() error {
		_, err := cipher.Rewrap(before)
		return errors.Join(err, back())
	}, nil
}

// mark tells the master key of the volume; empty: it has none, or is not open here.
func (s *Shared) mark() string {
	if c := s.cipher.Load(); c != nil {
		return c.Mark()
	}
	return ""
}
