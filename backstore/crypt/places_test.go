package crypt_test

import (
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/crypt/crypttest"
)

// TestHeaderFile: a header in a file is as any other.
func TestHeaderFile(t *testing.T) {
	crypttest.Run(t, func(t *testing.T) crypttest.Subject {
		dir := t.TempDir()
		path := filepath.Join(dir, "header")
		return crypttest.Subject{Open: func(t *testing.T, key, old string) (*crypt.Store, func() error, error) {
			c := crypt.Config{Path: path, Block: 512}
			var err error
			if c.Key, err = crypt.ReadKey(key); err == nil && old != "" {
				c.OldKey, err = crypt.ReadKey(old)
			}
			var there bool
			if err == nil {
				there, err = crypt.HasHeader(path)
			}
			if err == nil && !there {
				err = crypt.Create(path, c.Key, c.Block)
			}
			if err == nil {
				c.Data, err = backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "data"), Size: 64 << 10, BlockSize: 512})
			}
			if err != nil {
				return nil, nil, err
			}
			s, err := crypt.Open(c)
			if err != nil {
				_ = c.Data.Close()
				return nil, nil, err
			}
			return s, s.Close, nil
		}}
	})
}
