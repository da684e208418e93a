package rbd

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
)

// Open opens an image, and takes its exclusive lock unless it is read-only.
func Open(c Config) (*Store, error) {
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.BlockSize == 0 {
		c.BlockSize = sector
	}
	s := &Store{Config: c, clients: c.Clients, what: "rbd image " + c.Image.String()}
	began := time.Now()
	err := c.Clients.awaitLate(c.attempt(), c.Patience)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.what, err)
	}
	if c.Instance != "" {
		s.instance, err = c.Clients.acquireAt(c.Instance)
	} else {
		s.instance, err = c.Clients.acquire(c.Account, c.Patience)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.what, err)
	}
	over := make(chan struct{})
	s.image, err = within(max(s.Patience-time.Since(began), time.Millisecond), s.start, func(late Image, err error) { // nobody is left to be told
		if err == nil {
			_ = late.Close()
		}
		_ = c.Clients.release(s.instance, s.Patience)
		close(over)
	})
	switch {
	case err == nil:
		s.watcher.Go(s.follow)
		return s, nil
	case !errors.Is(err, ErrLate):
		err = errors.Join(err, c.Clients.release(s.instance, s.Patience))
	default: // the instance is in use until that ends
		c.Clients.isLate(c.attempt(), over)
		if s.stage.CompareAndSwap(looking, abandoned) {
			err = fmt.Errorf("%v: %w", err, errAbandoned)
		}
	}
	return nil, fmt.Errorf("%s: %w", s.what, err)
}

// The stages of an Open. From claiming on it may take the lock, whoever has given it up.
const (
	looking int32 = iota
	claiming
	abandoned
)

// errAbandoned ends an Open that was given up before it could change anything.
var errAbandoned = errors.New("its opening was given up")

// start is Open with an instance. What a rollback was doing with the image's name comes to an
// end first.
func (s *Store) start() (image Image, err error) {
	const steps = 3 // of a rollback that is ended
	for range steps {
		if image, err = s.take(); !errors.Is(err, errNames) {
			break
		}
	}
	return image, err
}

func (s *Store) take() (image Image, err error) {
	image, err = s.instance.Open(s.Image, s.ReadOnly)
	if errors.Is(err, unix.ENOENT) && !s.ReadOnly {
		if err = s.forward(err); err == nil {
			return nil, errNames
		}
	}
	if err != nil {
		if errors.Is(err, unix.ESHUTDOWN) {
			s.clients.banish(s.instance)
		}
		return nil, explain(err, s)
	}
	if err = s.settle(image); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	return image, nil
}

// settle judges the image and takes its lock.
func (s *Store) settle(image Image) error {
	g, err := image.Geometry()
	if err != nil {
		return err
	}
	s.identity = fmt.Sprintf("rbd %s/%d/%s", s.instance.Cluster(), g.Pool, g.ID)
	info, err := s.describe(&g)
	if err != nil {
		return err
	}
	s.info.Store(info)
	if s.ReadOnly {
		return s.met()
	}
	if !g.Lockable {
		return fmt.Errorf("found an image without the feature exclusive-lock, by which others are kept from writing: rbd feature enable %s exclusive-lock", s.Image)
	}
	if err := s.judgeSettings(image); err != nil {
		return err
	}
	return s.claim(image)
}

func (s *Store) describe(g *Geometry) (*backstore.Info, error) {
	if g.Size <= 0 || g.Size%int64(s.BlockSize) != 0 {
		return nil, fmt.Errorf("found %d bytes, expected a positive multiple of the block size %d", g.Size, s.BlockSize)
	}
	info := Describe(s.Image, g.Size)
	if info.ReadOnly = s.ReadOnly; s.ReadOnly || g.StripeUnit%atomicSpan != 0 {
		info.MaxAtomic, info.AtomicUnit = 0, 0
	}
	return &info, nil
}

// Describe is what an image of so many bytes is like, unless it is striped in small units.
func Describe(image Name, size int64) backstore.Info {
	return backstore.Info{
		Size: size, BlockSize: 1, PhysicalBlock: 4096, MaxAtomic: atomicSpan, AtomicUnit: atomicSpan,
		Discard: true, DiscardGran: discardGran, DiscardZeroes: true, Thin: true,
		Describe: "rbd image " + image.String(),
	}
}

// settings are what librbd must not have otherwise, and what would come of it.
var settings = []struct{ option, value, harm string }{
	{"rbd_cache", "false", "acknowledged writes could be lost"},
	{"rbd_persistent_cache_mode", "disabled", "acknowledged writes could be lost"},
	{"rbd_blocklist_on_break_lock", "true", "who has lost the lock could write still"},
	{"rbd_blacklist_on_break_lock", "true", "who has lost the lock could write still"}, // until Ceph 15
}

// judgeSettings refuses an image that has librbd keep what it has acknowledged, or break a
// lock without a fence: what an image or a pool says goes before what the instance was told.
func (s *Store) judgeSettings(image Image) error {
	for _, o := range settings {
		value, known, err := image.Setting(o.option)
		if err != nil {
			return err
		}
		if known && value != o.value {
			return fmt.Errorf("found %s = %s for this image or its pool, with which %s: rbd config image set %s %s %s", o.option, value, o.harm, s.Image, o.option, o.value)
		}
	}
	return nil
}

// met has Before judge what was found.
func (s *Store) met() error {
	if s.Before == nil {
		return nil
	}
	return s.Before(s)
}

// claim takes the lock.
func (s *Store) claim(image Image) error {
	err := s.lock(image, func(c *scene) error {
		s.opened = found(c, s.identity)
		return s.met()
	})
	if err == nil {
		err = s.straighten(image)
	}
	if err == nil {
		err = s.enter(image)
	}
	if err != nil {
		return err
	}
	return image.Annotate(OwnerNote, owned{s.Server, s.instance.Address()}.String())
}

// lock takes the lock of an image if it may be had. met hears of it before; nil: nobody does.
func (s *Store) lock(image Image, met func(*scene) error) error {
	c, err := s.look(image)
	if err != nil {
		return err
	}
	what, err := c.judge()
	if err == nil && met != nil {
		err = met(c)
	}
	if err != nil {
		return err
	}
	if !s.stage.CompareAndSwap(looking, claiming) && s.stage.Load() == abandoned {
		return errAbandoned
	}
	if what == seize {
		s.Logger.Warn("the owner of an image's lock is dead: it is fenced", "image", s.Image, "owner", c.owner)
		if err := image.Break(c.owner); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("fence the dead owner %s (caps mon 'profile rbd' are needed): %w", c.owner, err)
		}
	}
	if err := image.Acquire(); err != nil {
		return fmt.Errorf("take the exclusive lock: %w", err)
	}
	return nil
}

// enter notes the epoch with the image, under its lock.
func (s *Store) enter(image Image) error {
	if s.Epoch == 0 {
		return nil
	}
	note, err := image.Note(EpochNote)
	if err != nil {
		return err
	}
	last, err := strconv.ParseUint(note, 10, 64)
	if err != nil && note != "" {
		return fmt.Errorf("found %q as its metadata %s, expected a number: rbd image-meta remove %s %s if no server of a cluster has the image open", note, EpochNote, s.Image, EpochNote)
	}
	if note == "" && s.Fresh != nil {
		if err := s.meetFresh(image); err != nil {
			return err
		}
	}
	g, err := image.Geometry()
	if err != nil {
		return err
	}
	of, err := image.Note(epochOfNote) // earlier versions did not note it
	if err != nil {
		return err
	}
	if last > s.Epoch && (of == "" || of == g.ID) {
		return fmt.Errorf("found that it was open for claim %d of its cluster, expected none after %d", last, s.Epoch)
	}
	if err := image.Annotate(EpochNote, s.claimed()); err != nil || of == g.ID {
		return err
	}
	return image.Annotate(epochOfNote, g.ID) // the last: before, the epoch is that of another image
}

// meetFresh has Fresh hear of an image that holds nothing.
func (s *Store) meetFresh(image Image) error {
	empty, err := blank(image, s.Info().Size)
	if err != nil || !empty {
		return err
	}
	header, err := image.Note(HeaderNote)
	if err != nil {
		return err
	}
	return s.Fresh(header)
}

// look finds out whose the image is.
func (s *Store) look(image Image) (c *scene, err error) {
	c = &scene{server: s.Server, self: s.instance.Address(), superseded: s.Superseded}
	if c.owner, err = image.Owner(); err != nil {
		return nil, err
	}
	if c.watchers, err = image.Watchers(); err != nil {
		return nil, err
	}
	note, err := image.Note(OwnerNote)
	c.noted = parseOwned(note)
	if err == nil && s.Epoch != 0 {
		c.epoch, err = image.Note(EpochNote)
	}
	return c, err
}

// claimed is what enter has noted; empty: nothing.
func (s *Store) claimed() string {
	if s.Epoch == 0 {
		return ""
	}
	return strconv.FormatUint(s.Epoch, 10)
}

// explain says what can be done about an image that cannot be opened.
func explain(err error, s *Store) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("found no such pool or image; rbd create --size SIZE %s makes one: %w", s.Image, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("client.%s may not open it; it needs caps mon 'profile rbd' osd 'profile rbd pool=%s': %w", s.Account.User, s.Image.Pool, err)
	}
	return err
}
