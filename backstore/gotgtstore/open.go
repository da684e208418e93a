package gotgtstore

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/gostor/gotgt/pkg/api"
	"github.com/gostor/gotgt/pkg/scsi"
	_ "github.com/gostor/gotgt/pkg/scsi/backingstore" // registers "file" and "null"
	"github.com/sirupsen/logrus"

	"lunar/backstore"
)

const (
	sector = 512
	page   = 4096
)

// Open opens a store of the driver that gotgt has registered under a name. With a
// Path, the driver serves that file, which must exist and whose size it takes. Without
// one it keeps nothing and has c.Size: what it does not read is zeroes.
//
// Direct and Sync have no effect. A driver opens its file for writing also when
// ReadOnly is set, but nothing is written then.
func Open(driver string, c backstore.FileConfig) (backstore.Store, error) {
	plugin, err := scsi.NewBackingStore(driver)
	if err == nil && plugin == nil {
		err = errors.New("no name is given")
	}
	if err != nil {
		return nil, fmt.Errorf("gotgt driver %q: %w", driver, err)
	}
	s, err := open(plugin, "gotgt "+driver, c)
	if err != nil {
		return nil, fmt.Errorf("gotgt driver %s: %w", driver, err)
	}
	return s, nil
}

// open initialises and opens plugin, and owns it from then on, also when it fails. It
// must be safe for concurrent calls, as for gotgt, and must not keep the buffer of a
// Write.
func open(plugin api.BackingStore, describe string, c backstore.FileConfig) (backstore.Store, error) {
	logrus.SetOutput(io.Discard) // drivers log errors that they return as well
	s := &store{plugin: plugin, block: int64(max(c.BlockSize, sector)), log: c.Logger, zeroes: make([]byte, zeroChunk)}
	s.count = s.changes.Add()
	if s.log == nil {
		s.log = slog.Default()
	}
	if c.Path == "" {
		return s, s.openBlank(describe, c.Size)
	}
	f := &fileStore{store: s}
	return f, f.open(describe, c)
}

// openBlank opens a driver that has neither file nor size.
func (s *store) openBlank(describe string, size int64) error {
	s.blank = true
	if size <= 0 || size%s.block != 0 {
		return fmt.Errorf("size %d: expected a positive multiple of %d", size, s.block)
	}
	s.describe(backstore.Info{Size: size, PhysicalBlock: page, Describe: describe})
	return s.start("")
}

// describe sets what the store says of itself, without what drivers cannot.
func (s *store) describe(info backstore.Info) {
	info.BlockSize = 1
	s.info.Store(&info)
}

// start has the driver open path.
func (s *store) start(path string) error {
	if err := s.plugin.Init(&s.device, ""); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := s.plugin.Open(&s.device, path); err != nil {
		return errors.Join(fmt.Errorf("open: %w", err), s.plugin.Exit(&s.device))
	}
	return nil
}

// end closes what start has opened.
func (s *store) end() error {
	return errors.Join(s.plugin.Close(&s.device), s.plugin.Exit(&s.device))
}
